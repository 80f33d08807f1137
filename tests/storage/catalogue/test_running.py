"""A programme that is on air when a newer grab begins is replaced only if it was rescheduled."""

import itertools
from pathlib import Path

import pytest

from storage.catalogue.connection import Catalogue
from storage.catalogue.feeds import rename_sources
from tests.storage.catalogue.stored import airing, day, read_rows

OLD = ("19:00-20:00 News", "20:00-22:00 Film", "22:00-23:00 Late")


def hours(clock: str) -> float:
    """Converts hours after noon to a time."""
    return int(clock[:2]) - 12 + int(clock[3:]) / 60


def read(catalogue: Catalogue, grabbed: int, schedule: tuple[str, ...], source: str = "s") -> None:
    """Reads lines of one channel such as "20:00-22:00 Film"; "20:00 Film" has no known stop."""
    rows = []
    for line in schedule:
        (start, _, stop), title = line.split()[0].partition("-"), line.split()[1]
        row = airing("c", hours(start), title, hours(stop) - hours(start) if stop else 0)
        rows.append(row if stop else row | {"stop": None, "stop_note": "missing"})
    read_rows(catalogue, grabbed, rows, source)


def titles(catalogue: Catalogue, at: int, source: str = "s") -> str:
    query = "SELECT strftime(start, '%H:%M'), title FROM programmes_as_of(?) WHERE source = ? ORDER BY ALL"
    found = catalogue.connection.execute(query, [day(at).replace(tzinfo=None), source]).fetchall()
    return " ".join(f"{start} {title}" for start, title in found)


@pytest.mark.parametrize(
    ("newer", "expected"),
    [
        (("20:10-22:10 Film", "22:10-23:10 Late"), "19:00 News 20:10 Film 22:10 Late"),  # rescheduled
        (("21:50-23:50 Film",), "19:00 News 21:50 Film"),
        (("20:10-22:10 Other",), "19:00 News 20:10 Other"),  # cancelled
        (("21:45-23:00 Other",), "19:00 News 20:00 Film 21:45 Other"),  # cut short
        (("22:00-23:00 Late",), "19:00 News 20:00 Film 22:00 Late"),  # running and omitted
        (("22:00-23:00 Other",), "19:00 News 20:00 Film 22:00 Other"),  # ends when the window begins
        (("22:30-23:30 Film",), "19:00 News 20:00 Film 22:30 Film"),  # shown again, instead of Late
    ],
)
def test_a_running_programme_is_replaced_only_if_displaced(
    tmp_path: Path, newer: tuple[str, ...], expected: str
) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        read(catalogue, 1, OLD)
        read(catalogue, 2, newer)
        assert titles(catalogue, 2) == expected
        assert titles(catalogue, 1) == "19:00 News 20:00 Film 22:00 Late"


def test_parts_listed_with_a_programme_do_not_displace_it(tmp_path: Path) -> None:
    whole = ("06:00-10:00 Breakfast", "07:00-07:05 Weather", "08:00-08:05 Weather")
    with Catalogue.open(tmp_path) as catalogue:
        read(catalogue, 1, whole)
        read(catalogue, 2, whole[1:])
        assert titles(catalogue, 2) == "06:00 Breakfast 07:00 Weather 08:00 Weather"
        read(catalogue, 3, ("07:10-07:15 Sport",))  # a part that was not listed before
        assert titles(catalogue, 3) == "07:00 Weather 07:10 Sport 08:00 Weather"


def test_an_inferred_stop_counts_and_an_unknown_one_does_not(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        read(catalogue, 1, ("20:00 Film", "22:00 Late"))
        read(catalogue, 2, ("20:10-22:10 Film",))
        assert titles(catalogue, 2) == "20:10 Film"
        read(catalogue, 1, ("20:00 Film",), "t")
        read(catalogue, 2, ("20:10-22:10 Film",), "t")
        assert titles(catalogue, 2, "t") == "20:00 Film 20:10 Film"


def test_other_sources_and_repeats_stay(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        read(catalogue, 1, OLD)
        read(catalogue, 1, OLD, "t")
        read(catalogue, 2, ("20:10-22:10 Film",))
        read(catalogue, 3, OLD)  # back to the first plan
        assert titles(catalogue, 3, "t") == titles(catalogue, 3) == "19:00 News 20:00 Film 22:00 Late"
        assert titles(catalogue, 2) == "19:00 News 20:10 Film"


GRABS = {
    1: OLD,
    2: ("20:10-22:10 Film", "22:10-23:10 Late"),
    3: ("19:00-20:00 News", "20:00-22:00 Film", "22:00-23:00 Late"),
    4: ("21:00-23:00 Special",),
    5: ("23:00-23:30 Night",),
}
EXPECTED = [
    "19:00 News 20:00 Film 22:00 Late",
    "19:00 News 20:10 Film 22:10 Late",
    "19:00 News 20:00 Film 22:00 Late",
    "19:00 News 21:00 Special",
    "19:00 News 21:00 Special 23:00 Night",
]
ORDERS = list(itertools.permutations(GRABS))


@pytest.mark.parametrize(
    "orders", [ORDERS[::30], pytest.param(ORDERS, marks=pytest.mark.soak)], ids=["some", "all"]
)
def test_the_order_of_reading_changes_no_history(tmp_path: Path, orders: list[tuple[int, ...]]) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        for order in orders:
            for grabbed in order:
                read(catalogue, grabbed, GRABS[grabbed], str(order))
            assert [titles(catalogue, at, str(order)) for at in GRABS] == EXPECTED, order


def test_sources_that_become_one_displace_each_other(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        read(catalogue, 1, OLD, "old")
        read(catalogue, 2, GRABS[2], "new")
        rename_sources(catalogue, {"old": "s", "new": "s"})
        assert [titles(catalogue, at) for at in (1, 2)] == EXPECTED[:2]
