import datetime
import zoneinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.ingest.xmltv.times import parse_time


def micros(*parts: int) -> int:
    return int(datetime.datetime(*parts, tzinfo=datetime.UTC).timestamp()) * 1_000_000


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("20250331", (2025, 3, 31)),
        ("2025033119", (2025, 3, 31, 19)),
        ("202503311930", (2025, 3, 31, 19, 30)),
        ("20250331193015", (2025, 3, 31, 19, 30, 15)),
        ("20250331193015 +0000", (2025, 3, 31, 19, 30, 15)),
        ("20250331193000 +0100", (2025, 3, 31, 18, 30)),
        ("20250331193000+01:00", (2025, 3, 31, 18, 30)),
        ("20250331193000 -0330", (2025, 3, 31, 23, 0)),
        ("20250331193000 +5", (2025, 3, 31, 14, 30)),
        ("20250331193000 GMT+2", (2025, 3, 31, 17, 30)),
        ("20250331193000 Z", (2025, 3, 31, 19, 30)),
        ("20250331193000 utc", (2025, 3, 31, 19, 30)),
        ("20250331193000 BST", (2025, 3, 31, 18, 30)),
        ("20250331193000 ACST", (2025, 3, 31, 10, 0)),
        ("20250101000000 +1400", (2024, 12, 31, 10, 0)),
        ("20250331240000", (2025, 4, 1)),
        ("20240229120000", (2024, 2, 29, 12)),
        ("20250329193000 Europe/Paris", (2025, 3, 29, 18, 30)),
        ("20250330193000 Europe/Paris", (2025, 3, 30, 17, 30)),
        ("  20250331193000 +0000 ", (2025, 3, 31, 19, 30)),
    ],
)  # fmt: skip
def test_valid_times(text: str, parts: tuple[int, ...]) -> None:
    assert parse_time(text) == micros(*parts)


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "2025", "202503", "202503311", "20250332", "20250229120000", "20250331250000",
        "20250331240001", "20250331196000", "20250331193060", "20250331193000 +2400",
        "20250331193000 +9900", "20250331193000 -1300", "20250331193000 +0160", "20250331193000 IST",
        "20250331193000 Mars/Base", "20250331193000 ../etc/passwd", "00000000000000", "18991231",
        "22000101", "٢٠٢٥٠٣٣١", "2025-03-31", "20250331193000 +0000 x", "20250331193000 Europe/",
    ],
)  # fmt: skip
def test_invalid_times(text: str) -> None:
    assert parse_time(text) is None


@given(
    st.datetimes(datetime.datetime(1901, 1, 1), datetime.datetime(2199, 12, 30)).map(
        lambda moment: moment.replace(microsecond=0)
    ),
    st.integers(-12 * 60, 14 * 60),
    st.booleans(),
)
def test_any_time_with_any_offset_round_trips(moment: datetime.datetime, minutes: int, colon: bool) -> None:
    zone = datetime.timezone(datetime.timedelta(minutes=minutes))
    offset = (
        f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}{':' if colon else ''}{abs(minutes) % 60:02d}"
    )
    parsed = parse_time(f"{moment:%Y%m%d%H%M%S} {offset}")
    assert parsed is not None
    assert datetime.datetime.fromtimestamp(parsed // 1_000_000, datetime.UTC) == moment.replace(tzinfo=zone)


@given(
    st.datetimes(datetime.datetime(1980, 1, 1), datetime.datetime(2037, 12, 30)),
    st.sampled_from(["Europe/London", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]),
)
def test_named_zones_agree_with_zoneinfo(moment: datetime.datetime, name: str) -> None:
    moment = moment.replace(microsecond=0, fold=0)
    assert (
        parse_time(f"{moment:%Y%m%d%H%M%S} {name}")
        == int(moment.replace(tzinfo=zoneinfo.ZoneInfo(name)).timestamp()) * 1_000_000
    )


@given(st.text(max_size=30))
def test_any_text_is_a_time_or_none(text: str) -> None:
    assert parse_time(text) is None or isinstance(parse_time(text), int)


@pytest.mark.parametrize(
    ("text", "zone", "parts"),
    [
        ("20250331193000", "Europe/Paris", (2025, 3, 31, 17, 30)),
        ("20250131193000", "Europe/Paris", (2025, 1, 31, 18, 30)),
        ("20250131193000", "-0500", (2025, 2, 1, 0, 30)),
        ("20250131193000 +0000", "Europe/Paris", (2025, 1, 31, 19, 30)),
        ("20251026023000", "Europe/Paris", (2025, 10, 26, 0, 30)),  # comes twice: the first
        ("20251026030000", "Europe/Paris", (2025, 10, 26, 2, 0)),
        ("20250330023000", "Europe/Paris", (2025, 3, 30, 1, 30)),  # never comes: half past three
        ("20250331", "Europe/Paris", (2025, 3, 30, 22, 0)),
    ],
)
def test_default_zones(text: str, zone: str, parts: tuple[int, ...]) -> None:
    assert parse_time(text, zone) == micros(*parts)
