"""Playlists as providers write them."""

from pathlib import Path

import pytest

from tasks.merge.errors import MergeError
from tasks.merge.playlist import HOUR, PlaylistChannel, parse_playlist, read_playlist


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            '#EXTINF:-1 tvg-id="BBC1.uk" tvg-name="BBC One",BBC 1',
            PlaylistChannel("BBC1.uk", ("BBC One", "BBC 1")),
        ),
        ('#EXTINF:-1 tvg-id="a",One, two and three', PlaylistChannel("a", ("One, two and three",))),
        (
            '#EXTINF:-1 tvg-name="News, Sport" group-title="a,b",N',
            PlaylistChannel("News, Sport", ("News, Sport", "N")),
        ),
        ("#EXTINF:-1 tvg-id=BBC1.uk tvg-shift=-0.5,BBC", PlaylistChannel("BBC1.uk", ("BBC",), -HOUR // 2)),
        ("#EXTINF:-1 tvg-id='x y' tvg-shift='+1',X", PlaylistChannel("x y", ("X",), HOUR)),
        ('#extinf:-1 TVG-ID="a" TVG-Shift="2",A', PlaylistChannel("a", ("A",), 2 * HOUR)),
        ("#EXTINF:0,Only=a name", PlaylistChannel("Only=a name", ("Only=a name",))),
        ('#EXTINF:-1 tvg-id="" tvg-name="",Plain', PlaylistChannel("Plain", ("Plain",))),
        ('#EXTINF:-1 tvg-id="a" tvg-shift="nan",A', PlaylistChannel("a", ("A",))),
        ('#EXTINF:-1 tvg-id="a" tvg-shift="900",A', PlaylistChannel("a", ("A",))),
        ("#EXTINF:-1 tvg-name=Dave's,Dave's", PlaylistChannel("Dave's", ("Dave's",))),
        ('#EXTINF:-1   tvg-id = "spaced" ,Name', PlaylistChannel("Name", ("Name",))),
        ('#EXTINF:-1 tvg-id="open,Name', None),
        ("#EXTINF:-1,", None),
    ],
)
def test_lines(line: str, expected: PlaylistChannel | None) -> None:
    found = list(parse_playlist(f"#EXTM3U\n{line}\nhttp://stream\n"))
    if expected is None:
        assert all(entry.names for entry in found)
    else:
        assert found == [expected]


def test_shift_of_the_header_applies_to_channels_without_one() -> None:
    text = '#EXTM3U tvg-shift="2"\n#EXTINF:-1 tvg-id="a",A\nu\n#EXTINF:-1 tvg-id="b" tvg-shift="0",B\nu\n'
    assert [entry.shift for entry in parse_playlist(text)] == [2 * HOUR, 0]


def test_byte_order_mark_crlf_and_other_lines(tmp_path: Path) -> None:
    text = '\ufeff#EXTM3U\r\n#EXTINF:-1 tvg-id="é",É\r\n#EXTVLCOPT:x=1\r\n#EXTGRP:g\r\nhttp://s\r\n'
    file = tmp_path / "list.m3u"
    for content in (text.encode(), text.lstrip("\ufeff").encode("cp1252")):
        file.write_bytes(content)
        assert read_playlist(file) == ([PlaylistChannel("é", ("É",))], [])


def test_entries_of_one_id_are_one_channel(tmp_path: Path) -> None:
    file = tmp_path / "list.m3u"
    file.write_text('#EXTM3U\n#EXTINF:-1 tvg-id="a",A\nu\n#EXTINF:-1 tvg-id="a" tvg-shift="1",A +1\nu\n')
    entries, warnings = read_playlist(file)
    assert entries == [PlaylistChannel("a", ("A", "A +1"))] and "+0 and +1 hours" in warnings[0]


@pytest.mark.parametrize("content", ["", "#EXTM3U\nhttp://stream\n"])
def test_a_file_without_a_channel_is_an_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "list.m3u").write_text(content)
    with pytest.raises(MergeError, match="no channel; expected lines such as"):
        read_playlist(tmp_path / "list.m3u")
    with pytest.raises(MergeError, match="cannot be read"):
        read_playlist(tmp_path / "missing.m3u")
