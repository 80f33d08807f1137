import datetime
import itertools
from pathlib import Path

import pytest
from guides import guide, only, read, real_data, rows

NINE = datetime.datetime(2025, 3, 1, 9)


def test_all_columns(tmp_path: Path) -> None:
    only(
        tmp_path,
        guide(
            '<channel id="one"><display-name> </display-name><display-name>Channel  '
            "One</display-name></channel>",
            '<programme channel="one" start="20250301100000 +0100" stop="20250301103000 +0100">'
            '<title lang="en">First</title><title lang="de">Erster</title>'
            "<sub-title>The &amp; beginning</sub-title><desc>long</desc><credits><actor>Ann</actor>"
            "</credits><date>2024</date><category>Drama</category><category> </category>"
            '<category lang="de">Krimi</category><episode-num system="xmltv_ns">0.1.</episode-num>'
            '<episode-num system="onscreen">S1E2</episode-num></programme>',
            '<programme channel="two" start="20250301100000 +0100"><title> </title><title>Second '
            "&lt;b&gt;bold&lt;/b&gt;</title></programme>",
        ),
    )
    extra = '{"category":[{},{"@lang":"de"}]}'
    assert rows(
        tmp_path,
        "SELECT * EXCLUDE (programme_id, feed_id, replaced_by, source) FROM programmes ORDER BY channel",
    ) == [
        (
            "one",
            NINE,
            NINE + datetime.timedelta(minutes=30),
            None,
            "First",
            "en",
            "The & beginning",
            ["Drama", "Krimi"],
            ["0.1.", "S1E2"],
            ["xmltv_ns", "onscreen"],
            "2024",
            extra,
            *(1, None, 2, None, None, None),  # season 1, episode 2
        ),
        ("two", NINE, None, "missing", "Second bold", None, None, [], [], [], *[None] * 8),
    ]
    assert rows(tmp_path, "SELECT channel, name FROM channels ORDER BY channel") == [
        ("one", "Channel One"),
        ("two", "two"),
    ]


def test_rejects_with_line_reason_and_excerpt(tmp_path: Path) -> None:
    outcome = only(
        tmp_path,
        guide(
            '<programme start="20250301100000"><title>a</title></programme>',
            '<programme channel="one" start="20250301100000"><title></title></programme>',
            f'<programme channel="one" start="soon"><title>{"x" * 500}</title></programme>',
            '<programme channel="one" start="20250301100000 +9900"><title>a</title></programme>',
            programmes=20,
        ),
    )
    assert outcome.reasons == {"no_channel": 1, "no_title": 1, "bad_start": 2}
    contents = rows(tmp_path, "SELECT line, reason, excerpt FROM rejects ORDER BY line")
    assert [row[:2] for row in contents] == [
        (23, "no_channel"),
        (24, "no_title"),
        (25, "bad_start"),
        (26, "bad_start"),
    ]
    assert contents[0][2] == '<programme start="20250301100000"><title>a</title></programme>'
    assert len(contents[2][2]) == 200 and contents[2][2].startswith(
        '<programme channel="one" start="soon"><title>xxx'
    )


def test_odd_stops_are_stored_with_a_note(tmp_path: Path) -> None:
    stops = {
        "null": "unreadable",
        "20250301100000": "not_after_start",
        "20250301090000": "not_after_start",
        "20250302100001": "over_a_day",
        "20250302100000": None,
    }
    only(
        tmp_path,
        guide(
            *(
                f'<programme channel="{i}" start="20250301100000" stop="{stop}"><title>a</title></programme>'
                for i, stop in enumerate(stops)
            )
        ),
    )
    contents = rows(tmp_path, "SELECT stop_note, stop IS NULL FROM programmes ORDER BY channel")
    assert contents == [(note, note == "unreadable") for note in stops.values()]


def twin(channel: str, stop: str, more: str = "") -> str:
    stop = f' stop="{stop}"' if stop else ""
    return f'<programme channel="{channel}" start="20250301100000"{stop}><title>a</title>{more}</programme>'


@pytest.mark.parametrize("batch_rows", [1, 100])
@pytest.mark.parametrize("has_earlier", [False, True])
def test_of_duplicates_the_one_with_more_content_is_stored(
    tmp_path: Path, has_earlier: bool, batch_rows: int
) -> None:
    """A Finnish guide has a programme without length followed by one with the actual stop."""
    real, none = "20250301103000", "20250301100000"
    extra_elements = "<desc>long</desc><category>c</category>"
    pairs = {
        "length": [twin("length", none, extra_elements), twin("length", real)],
        "missing": [twin("missing", "", extra_elements), twin("missing", real)],
        "details": [twin("details", real), twin("details", real, extra_elements)],
        "stop first": [twin("stop first", real), twin("stop first", none, extra_elements)],
        "order": [twin("order", real, "<desc>first</desc>"), twin("order", real, "<desc>second</desc>")],
        "nothing": [twin("nothing", real, extra_elements), twin("nothing", real, "<desc/><category/><new>")],
        "three": [
            twin("three", none),
            twin("three", real, "<desc>x</desc>"),
            twin("three", real, extra_elements),
        ],
    }
    if has_earlier:
        read_first = only(tmp_path, guide(programmes=2))
        assert read_first.counts.stored == 2
    outcome = only(tmp_path, guide(*itertools.chain(*pairs.values())), batch_rows=batch_rows)
    assert outcome.counts.duplicates == len(pairs) + 1
    contents = {
        channel: further
        for channel, *further in rows(
            tmp_path,
            "SELECT channel, stop_note, description FROM programmes LEFT JOIN details USING "
            "(programme_id) WHERE title = 'a'",
        )
    }
    assert contents == {
        "length": [None, None], "missing": [None, None], "details": [None, "long"],
        "stop first": [None, None],
        "order": [None, "first"], "nothing": [None, "long"], "three": [None, "long"],
    }  # fmt: skip
    again = only(tmp_path, guide(*itertools.chain(*reversed(pairs.values()))))
    assert again.counts.stored == 0  # said again word for word


def test_duplicates_within_a_feed_and_of_an_earlier_reading(tmp_path: Path) -> None:
    first = (
        '<programme channel="one" start="20250301100000"><title>a</title><category>first</category>'
        "</programme>"
    )
    # the same instant
    again = (
        '<programme channel="one" start="20250301110000 +0100"><title>a</title><category>'
        "second</category></programme>"
    )
    assert only(tmp_path, guide(first, again, programmes=3)).counts.duplicates == 1
    assert rows(tmp_path, "SELECT categories FROM programmes WHERE title = 'a'") == [(["first"],)]
    counts = only(tmp_path, guide(first, again, programmes=5)).counts
    assert (counts.seen, counts.stored, counts.duplicates) == (7, 2, 5)
    other = only(tmp_path, guide(first, programmes=5), "other.xml").counts
    assert other.duplicates == 0  # another source says it for itself


@pytest.mark.parametrize("batch_rows", [1, 7, 100_000])
def test_batch_sizes_do_not_matter(tmp_path: Path, batch_rows: int) -> None:
    content = guide(
        *(
            f'<programme channel="{i % 7}" start="202503{i % 28 + 1:02d}"><title>t {i % 9}</title>'
            f"<category>{i % 5}</category></programme>"
            for i in range(5000)
        )
    )
    outcome = only(tmp_path, content, batch_rows=batch_rows)
    expected = {(str(i % 7), i % 28 + 1, f"t {i % 9}") for i in range(5000)}
    assert outcome.counts.stored == len(expected)
    assert set(rows(tmp_path, "SELECT channel, day(start), title FROM programmes")) == expected


def test_every_edge_case_adds_up(tmp_path: Path) -> None:
    for file in sorted((real_data() / "edge-cases").iterdir()):
        if file.name != "corrupt-crlf_epgshare.xml.gz":
            check_file(tmp_path, file)


def test_two_real_guides_add_up(tmp_path: Path) -> None:
    for name in ("epgshare01_ZA1_2025-03.xml.gz", "epgshare01_DK1_2025-03.xml.gz"):
        check_file(tmp_path, real_data() / "guides" / name)


@pytest.mark.soak
def test_every_real_guide_adds_up(tmp_path: Path) -> None:
    files = sorted((real_data() / "guides").glob("*.xml.gz"))
    assert sum(check_file(tmp_path, file) for file in files) > 580_000
    assert all(outcome.unchanged for outcome in read(tmp_path, real_data() / "guides"))


def check_file(home: Path, file: Path) -> int:
    """Compares the counts with the number of start tags and with the catalogue."""
    import gzip

    content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    outcome = read(home, file)[0]
    counts = outcome.counts
    starts = content.count(b"<programme ") + content.count(b"<programme\n")
    assert (
        counts.seen
        == counts.stored + counts.duplicates + counts.rejected
        == starts + outcome.reasons.get("truncated", 0)
    )
    assert counts.rejected == sum(outcome.reasons.values())
    assert rows(
        home, f"SELECT count(*) FROM programmes JOIN feeds USING (feed_id) WHERE feeds.source = '{file}'"
    ) == [(counts.stored,)]
    return counts.seen


def test_channel_ids_are_stored_unchanged(tmp_path: Path) -> None:
    ids = ["A  B", " c\u00a0", "d&amp;amp;e", "&lt;b&gt;f", "Ã©", "e\u0301", "g\\n", "\u200b"]
    channels = [f'<channel id="{name}"><display-name>Name</display-name></channel>' for name in ids]
    programme = '<programme channel="{}" start="20250301"><title>a</title></programme>'
    programmes = [programme.format(name) for name in ids]
    blank = [programme.format(name) for name in ("", "  ")]
    for name, content in {"parsed": (*channels, *programmes), "scanned": programmes}.items():
        outcome = only(tmp_path, guide(*content, *blank), f"{name}.xml", max_reject_share=0.5)
        assert outcome.reasons == {"no_channel": 2}
    expected = [(name.replace("&amp;amp;", "&amp;").replace("&lt;b&gt;", "<b>"),) for name in ids]
    for table, file in (("programmes", "parsed"), ("channels", "parsed"), ("programmes", "scanned")):
        contents = rows(
            tmp_path, f"SELECT channel FROM {table} WHERE source LIKE '%{file}%' ORDER BY channel"
        )
        assert contents == sorted(expected)
    assert rows(tmp_path, "SELECT count(*) FROM schedule WHERE channel_name = 'Name'") == [(len(ids),)]
