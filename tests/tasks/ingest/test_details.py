import datetime
from pathlib import Path

from guides import guide, only, read, rows

RICH = """<programme channel="one" start="20250301100000 +0000" stop="20250301113000 +0000">
<title lang="en">First</title><title lang="de">Erster</title><title> </title>
<sub-title lang="en">Sub</sub-title><sub-title lang="de">Unter</sub-title>
<desc lang="en">Long &amp;amp; <b>bold</b></desc><desc lang="de">Lang</desc><keyword>war</keyword>
<keyword>sea</keyword><date>2024</date>
<credits><director>Dee</director><actor role="Lead">Ann Actor<image>x.jpg</image></actor><actor> </actor>
</credits>
<language>English</language><orig-language lang="fr">French</orig-language>
<length units="hours">1,5</length><icon src="p.png"/><url>u1</url><url>u2</url><country>GB</country>
<subtitles type="onscreen"><language>Welsh</language></subtitles><rating system="MPAA"><value>PG</value>
</rating><star-rating><value>3/4</value></star-rating>
<previously-shown start="20240101"/><new/><premiere>first</premiere><live/></programme>"""


def test_all_details_of_a_programme(tmp_path: Path) -> None:
    only(tmp_path, guide(RICH, programmes=3))
    columns = (
        "description, translations, keywords, credits, is_new, is_premiere, is_live, previously_shown, "
        "previously_shown_at, star_ratings, ratings, length_minutes"
    )
    contents = rows(
        tmp_path,
        f"SELECT title, {columns}, language, original_language, countries, icon, urls FROM schedule "
        f"WHERE description IS NOT NULL",
    )
    assert contents == [
        (
            "First", "Long & bold",
            [
                {"element": "title", "text": "Erster", "language": "de"},
                {"element": "sub_title", "text": "Unter", "language": "de"},
                {"element": "description", "text": "Lang", "language": "de"},
            ],
            ["war", "sea"],
            [{"role": "director", "name": "Dee", "character": None},
             {"role": "actor", "name": "Ann Actor", "character": "Lead"}],
            True, True, True, True, datetime.datetime(2024, 1, 1), [{"system": None, "value": "3/4"}],
            [{"system": "MPAA", "value": "PG"}], 90.0,
            "English", "French", ["GB"], "p.png", ["u1", "u2"],
        )
    ]  # fmt: skip
    assert rows(tmp_path, "SELECT count(*) FROM details") == [(1,)]
    assert rows(tmp_path, "SELECT element, text FROM originals") == [("description", "Long &amp; bold")]


def test_icons_of_ratings_are_not_icons_of_the_programme(tmp_path: Path) -> None:
    badges = (
        '<rating><value>PG</value><icon src="pg.png"/></rating><star-rating><value>1/5</value><icon '
        'src="*.png"/></star-rating>'
    )
    rated = '<programme channel="{}" start="20250301"><title>a</title>{}' + badges + "</programme>"
    only(tmp_path, guide(rated.format("1", ""), rated.format("2", '<icon src="p.png"/>')))
    query = "SELECT channel, icon FROM schedule ORDER BY channel"
    assert rows(tmp_path, query) == [("1", None), ("2", "p.png")]


def test_all_details_of_a_channel(tmp_path: Path) -> None:
    channel = (
        '<channel id="one"><display-name>One</display-name><display-name lang="de">Eins</display-name>'
        '<icon src="i.png"/><lcn>7</lcn><url>u</url></channel>'
    )
    only(tmp_path, guide(channel, programmes=1))
    assert rows(tmp_path, "SELECT name, names, icon, lcn, urls FROM channels") == [
        ("One", ["One", "Eins"], "i.png", "7", ["u"])
    ]


def test_originals_of_cleaned_texts_are_stored(tmp_path: Path) -> None:
    dirty = (
        '<programme channel="{}" start="20250301"><title>{}</title><category>a</category><category>'
        "{}</category></programme>"
    )
    only(
        tmp_path,
        guide(
            dirty.format("1", "Cap\u00c3\u00adtulo", "plain"),
            dirty.format("", "rejected\u200b", "x\u200by"),  # rows after it move up
            dirty.format("2", " white space alone ", "x\u200by"),
            dirty.format("3", "Tom &amp;amp; Jerry", "plain"),
            programmes=5,
        ),
    )
    contents = rows(
        tmp_path,
        "SELECT channel, title, element, text FROM originals JOIN programmes USING (programme_id) "
        "ORDER BY ALL",
    )
    assert contents == [
        ("1", "Capítulo", "title", "Cap\u00c3\u00adtulo"),
        ("2", "white space alone", "category", "x\u200by"),
        ("3", "Tom & Jerry", "title", "Tom &amp; Jerry"),
    ]


def test_missing_stops_are_the_next_start_within_a_day(tmp_path: Path) -> None:
    starts = ["20250301100000", "20250301113000", "20250301113000", "20250301120000", "20250303120000"]
    programmes = [
        f'<programme channel="one" start="{start}"><title>t{number}</title></programme>'
        for number, start in enumerate(starts)
    ]
    only(tmp_path, guide(*reversed(programmes)))
    hours = [(11, 30), (12, 0), (12, 0), None, None]
    expected = [(datetime.datetime(2025, 3, 1, *hour) if hour else None, "missing") for hour in hours]
    assert rows(tmp_path, "SELECT stop, stop_note FROM programmes ORDER BY title") == expected


def test_times_without_a_zone_are_in_the_zone_of_the_feed(tmp_path: Path) -> None:
    content = guide(
        '<programme channel="one" start="20250701100000" stop="20250701110000 +0000"><title>'
        'a</title><previously-shown start="20250101"/></programme>'
    )
    for name in ("paris.xml", "other.xml"):
        (tmp_path / name).write_bytes(content)
        read(tmp_path, tmp_path / name, zones=("*/paris*=Europe/Paris", "*=UTC"))
    assert rows(
        tmp_path,
        "SELECT hour(start), hour(stop), hour(previously_shown_at) FROM schedule ORDER BY source DESC",
    ) == [(8, 11, 23), (10, 11, 0)]


def test_a_feed_with_a_changed_zone_is_read_again(tmp_path: Path) -> None:
    programme = (
        '<programme channel="one" start="202503011{}0000" stop="202503011{}0000"><title>t{}</title>'
        "</programme>"
    )
    (tmp_path / "g.xml").write_bytes(guide(*(programme.format(hour, hour + 1, hour) for hour in range(3))))
    for zones, hours in (
        ((), [10, 11, 12]),
        (("*=Europe/Paris",), [9, 10, 11]),
        (("*=-0300",), [13, 14, 15]),
        ((), [10, 11, 12]),
    ):
        unchanged = [read(tmp_path, tmp_path / "g.xml", zones=zones)[0].unchanged for _ in range(2)]
        assert unchanged == [False, True]
        assert rows(tmp_path, "SELECT hour(start), title FROM schedule ORDER BY start") == [
            (hour, f"t{number}") for number, hour in enumerate(hours)
        ]
