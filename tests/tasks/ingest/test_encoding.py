"""Invalid bytes are dropped; feeds in other encodings are detected."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from guides import guide, only, read, real_data, rows

from storage.catalogue.feeds import read_status
from tasks.ingest.encoding import SAMPLE_SIZE, Encoding, show_invalid

TEXTS = {
    "German": "Größe und Mühe über Köln",
    "Cyrillic": "Вечерний маяк у моря",
    "Greek": "Το φως της ημέρας",
    "Chinese": "联通晚间新闻",
}
PROGRAMME = '<programme channel="{}" start="2025030{}100000"><title>{}</title><desc>{}</desc></programme>'


def schedule(home: Path) -> list[tuple[str, str]]:
    return rows(home, "SELECT title, description FROM schedule ORDER BY start, channel")


@pytest.mark.parametrize("language", TEXTS)
def test_a_cut_letter_is_dropped(tmp_path: Path, language: str) -> None:
    text = TEXTS[language]
    cut = text[: text.rindex(next(letter for letter in reversed(text) if not letter.isascii()))]
    content = guide(PROGRAMME.format("a", 1, text, text), PROGRAMME.format("a", 2, text, "CUT"))
    lead = text[len(cut)].encode()[:-1]
    outcome = only(tmp_path, content.replace(b"CUT", cut.encode() + lead))
    assert schedule(tmp_path) == [(text, text), (text, cut.strip())]
    assert outcome.counts.invalid_bytes == len(lead)
    shown = "".join(f"\\x{byte:02X}" for byte in lead)
    assert rows(tmp_path, "SELECT element, text FROM originals") == [("description", cut + shown)]


@pytest.mark.parametrize(
    ("language", "codec", "declared"),
    [
        ("German", "latin-1", "ISO-8859-1"),
        ("German", "latin-1", "UTF-8"),
        ("German", "cp1252", "UTF-8"),
        ("Cyrillic", "cp1251", "windows-1251"),
        ("Cyrillic", "koi8-r", "KOI8-R"),
        ("Greek", "iso8859-7", "ISO-8859-7"),
        ("Chinese", "gbk", "GBK"),
        ("Chinese", "big5", "Big5"),
    ],
)  # fmt: skip
def test_a_feed_in_another_encoding(tmp_path: Path, language: str, codec: str, declared: str) -> None:
    text = TEXTS[language] if codec != "big5" else "晚間新聞與氣象"
    content = guide(*(PROGRAMME.format("a", day, text, f"{text} {day}") for day in range(1, 9)))
    outcome = only(tmp_path, content.decode().replace("UTF-8", declared, 1).encode(codec))
    assert schedule(tmp_path) == [(text, f"{text} {day}") for day in range(1, 9)]
    assert outcome.counts.invalid_bytes == 0


@pytest.mark.parametrize("declared", ["UTF-8", "ISO-8859-1", "windows-1251"])
def test_damaged_utf_8_is_read_as_utf_8(tmp_path: Path, declared: str) -> None:
    content = guide(*(PROGRAMME.format(channel, 1, TEXTS["Cyrillic"], "x") for channel in "abc"))
    content = content.decode().replace("UTF-8", declared, 1).encode().replace("у".encode(), b"\xd1", 1)
    assert only(tmp_path, content).counts.invalid_bytes == 1
    assert [title for title, _ in schedule(tmp_path)] == [
        TEXTS["Cyrillic"].replace("у ", " ").replace("  ", " "),
        TEXTS["Cyrillic"],
        TEXTS["Cyrillic"],
    ]


def test_invalid_bytes_in_extra_and_ids(tmp_path: Path) -> None:
    """Bytes that Windows-1252 does not define are included."""
    programme = (
        '<programme channel="c\xff" start="20250301" x="\xfe"><title>Größe Ärger ÖL</title>'
        '<review>r\xfd</review><credits><actor role="\xfc">A\xfb</actor></credits></programme>'
    )
    raw = guide(programme).decode()
    content = b"".join(
        letter.encode("latin-1") if letter in "\xfb\xfd\xfe\xff" and place > 0 else letter.encode()
        for place, letter in enumerate(raw.replace("\xfc", "ü"))
    )
    assert only(tmp_path, content).counts.invalid_bytes == 4
    ((channel, extra, credits),) = rows(tmp_path, "SELECT channel, extra, credits FROM schedule")
    assert channel == "c\\xFF"
    assert json.loads(extra) == {"@x": "\\xFE", "review": ["r\\xFD"]}
    assert credits == [{"role": "actor", "name": "A", "character": "ü"}]
    assert rows(tmp_path, "SELECT channel FROM channels") == [("c\\xFF",)]
    (tmp_path / "cp1252").mkdir()
    content = guide(PROGRAMME.format("a", 1, "Größe", "a\x81b")).decode().encode("latin-1")
    assert only(tmp_path / "cp1252", content).counts.invalid_bytes == 1
    assert schedule(tmp_path / "cp1252") == [("Größe", "ab")]


def test_invalid_bytes_are_counted(tmp_path: Path) -> None:
    damaged = guide(PROGRAMME.format("a", 1, "Größe Größe", "x#")).replace(b"#", b"\xc3\xc3")
    files = [tmp_path / name for name in ("a.xml", "b.xml")]
    for file in files:
        file.write_bytes(damaged)
    outcomes = read(tmp_path, *files)
    assert [str(outcome).endswith("0 rejected, 2 invalid bytes") for outcome in outcomes] == [True, True]
    feeds: Sequence[dict] = read_status(tmp_path)["feeds"]  # type: ignore[assignment]
    assert [feed["invalid_bytes"] for feed in feeds] == [2, 2]
    assert [outcome.counts.invalid_bytes for outcome in read(tmp_path, *files)] == [2, 2]


def test_a_line_of_json_with_an_invalid_byte_is_read(tmp_path: Path) -> None:
    line = '{"channel": "a", "start": "2025-03-01T10:00:00Z", "title": "Größe Ö?"}\n'
    (tmp_path / "g.json").write_bytes(line.encode().replace(b"?", b"\xc3"))
    (outcome,) = read(tmp_path, tmp_path / "g.json")
    assert (outcome.counts.stored, outcome.counts.invalid_bytes) == (1, 1)
    assert rows(tmp_path, "SELECT title, text FROM programmes JOIN originals USING (programme_id)") == [
        ("Größe Ö", "Größe Ö\\xC3")
    ]


def test_only_a_sample_is_read_to_detect_the_encoding() -> None:
    blocks = iter([("ö" * SAMPLE_SIZE).encode(), b"\xff" * 2 * SAMPLE_SIZE])
    assert Encoding("utf-8", lambda: blocks).codec == "utf-8"
    assert next(blocks) == b"\xff" * 2 * SAMPLE_SIZE


def test_valid_text_needs_no_detection() -> None:
    def fail() -> list[bytes]:
        raise AssertionError("the feed was read again")

    content = "".join(TEXTS.values()).encode()
    assert Encoding("cp1251", fail).decode(content) == (content, 0)
    assert show_invalid("Größe \U0010fec3") == "Größe \\xC3"


@pytest.mark.parametrize("name", ["43-cut-utf8-letter.xml", "43b-cut-utf8-cyrillic.xml"])
def test_the_reports_of_cut_letters(tmp_path: Path, name: str) -> None:
    (outcome,) = read(tmp_path, real_data() / "reports" / name)
    assert outcome.counts.invalid_bytes == 1
    expected = {
        "43-cut-utf8-letter.xml": ("Größe und Mühe", "Ein langer Text über das Caf"),
        "43b-cut-utf8-cyrillic.xml": ("Вечерний маяк", "Длинное описани..."),
    }
    assert schedule(tmp_path)[0] == expected[name]
