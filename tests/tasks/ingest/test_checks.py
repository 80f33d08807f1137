import datetime
from pathlib import Path

from guides import guide

from storage.home.workspace import Workspace
from tasks.ingest.checks import check_guide
from tasks.ingest.settings import IngestSettings
from tasks.ingest.task import check, ingest

DAYS = [datetime.date(2025, 3, 1) + datetime.timedelta(days=day) for day in range(9)]
PROGRAMME = (
    '<programme channel="{}" start="{:%Y%m%d}{:02d}0000 +0000" stop="{:%Y%m%d}{:02d}0000 +0000"><title '
    'lang="en">{}</title>{}</programme>'
)


def week(silent: str = "", bare_day: int = -1) -> bytes:
    """Two channels, ten programmes a day each, on the fifth day a new title; faults on the eighth day, or on
    the one named."""
    return guide(
        *(
            PROGRAMME.format(
                channel,
                day,
                hour,
                day,
                hour + 1,
                "new" if number == 4 and hour == 0 else f"t{hour}",
                "" if number == bare_day else "<category>c</category>",
            )
            for number, day in enumerate(DAYS)
            for channel in "ab"
            if not (channel == silent and number == 7)
            for hour in range(10)
        )
    )


def checked(tmp_path: Path, content: bytes):
    (tmp_path / "g.xml").write_bytes(content)
    found = ingest.fn(str(tmp_path / "home"), [str(tmp_path / "g.xml")], IngestSettings())
    return found, check_guide(Workspace(tmp_path / "home").folder(found))


def test_a_usual_week_has_no_anomaly(tmp_path: Path) -> None:
    published, found = checked(tmp_path, week())
    assert found.anomalies == []
    assert [
        (day["day"], day["programmes"], day["channels"], day["category_share"], day["gaps"], day["overlaps"])
        for day in found.days
    ][:2] == [
        ("2025-03-01", 20, 2, 1.0, 2, 0),  # from ten in the morning to midnight nothing is on
        ("2025-03-02", 20, 2, 1.0, 2, 0),
    ]
    assert [day["new_titles"] for day in found.days] == [0, 0, 0, 0, 1, 0, 0, 0, 0]
    assert found.days[0]["languages"] == "en 20"
    assert found.metrics["guide/programmes"] == 180 and found.metrics["guide/anomalies"] == 0
    assert (
        len(check.fn(str(tmp_path / "home"), published)) == 1
    )  # the reading's: the guide ended before today


def test_a_silent_channel_is_named(tmp_path: Path) -> None:
    _, found = checked(tmp_path, week(silent="b"))
    assert "g.xml 2025-03-08: channel b fell silent" in found.anomalies
    assert [bool(day["anomalies"]) for day in found.days] == [False] * 7 + [True, False]


def test_a_guide_that_ends_in_the_morning_silences_no_evening_channel(tmp_path: Path) -> None:
    content = guide(
        *(
            PROGRAMME.format(channel, day, hour, day, hour + 1, f"t{hour}", "<category>c</category>")
            for number, day in enumerate(DAYS)
            for channel in ("a", "b", "c", "evening")
            for hour in range(18 if channel == "evening" else 0, 20)
            if number < 8 or hour < 6
        )
    )
    assert checked(tmp_path, content)[1].anomalies == []


def test_lost_categories_are_named(tmp_path: Path) -> None:
    _, found = checked(tmp_path, week(bare_day=6))
    assert found.anomalies == ["g.xml 2025-03-07: category share 0, usually 1"]


def test_an_empty_guide_is_checked_too(tmp_path: Path) -> None:
    _, found = checked(tmp_path, guide())
    assert found.days == [] and found.anomalies == [] and found.metrics["guide/programmes"] == 0
