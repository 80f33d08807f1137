"""Grabs replace each other, and the history remains, in any order of reading."""

import itertools
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from storage.catalogue.connection import CATALOGUE_FILE, Catalogue
from storage.catalogue.feeds import Counts, find_unchanged
from storage.catalogue.snapshots import SnapshotOptions, snapshot_digest, write_snapshot
from tests.storage.catalogue.stored import HOUR, NOON, airing, day, migrate_home, read_rows


def read(catalogue: Catalogue, grabbed: int, schedule: str, description: str = "", **options) -> Counts:
    """Reads a schedule such as "a1x a2y b1z": channel, hour, title."""
    rows = [airing(word[0], int(word[1]), word[2:]) for word in schedule.split()]
    return read_rows(
        catalogue, grabbed, rows, descriptions={0: description} if description else None, **options
    )


def known(catalogue: Catalogue, at: int, source: str = "s") -> str:
    """Returns the schedule that was known on a day, in the same notation."""
    rows = catalogue.connection.execute(
        "SELECT channel, date_diff('hour', ?, start), title "
        "FROM programmes_as_of(?) WHERE source = ? ORDER BY ALL",
        [NOON, day(at).replace(tzinfo=None), source],
    ).fetchall()
    return " ".join(f"{channel}{hour}{title}" for channel, hour, title in rows)


def test_a_newer_grab_replaces_its_channels_and_times_and_nothing_else(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        read(catalogue, 1, "a1x a2y a3z b1x b2y")
        read(catalogue, 1, "a2other", source="t")
        assert read(catalogue, 2, "a2y a3new a4more") == Counts(seen=3, stored=2, duplicates=1, rejected=0)
        assert known(catalogue, 2, "t") == "a2other"
        query = (
            "SELECT title, feed_id, replaced_by FROM programmes WHERE channel = 'a' AND title IN ('y', 'z')"
        )
        assert sorted(catalogue.connection.execute(query).fetchall()) == [("y", 1, None), ("z", 1, 3)]
        # z is back, y is gone
        assert read(catalogue, 3, "a1x a3z") == Counts(seen=2, stored=1, duplicates=1, rejected=0)
        expected = ["a1x a2y a3z b1x b2y", "a1x a2y a3new a4more b1x b2y", "a1x a3z a4more b1x b2y"]
        assert [known(catalogue, at) for at in (1, 2, 3)] == expected
        query = "SELECT count(*) FROM schedule WHERE source = 's'"
        assert catalogue.connection.execute(query).fetchall() == [(5,)]


def test_a_changed_programme_replaces_its_earlier_version(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        read(catalogue, 1, "a1x a2y", description="first words")
        assert read(catalogue, 2, "a1x a2y", description="first words").stored == 0
        assert read(catalogue, 3, "a1x a2y", description="other words") == Counts(
            seen=2, stored=1, duplicates=1, rejected=0
        )
        assert catalogue.connection.execute(
            "SELECT title, description FROM schedule ORDER BY start"
        ).fetchall() == [("x", "other words"), ("y", None)]


def test_equal_content_is_skipped_only_if_it_is_the_newest(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        for grabbed, schedule in ((1, "a1x"), (2, "a1y"), (3, "a1x")):
            read(catalogue, grabbed, schedule)
        assert [known(catalogue, at) for at in (1, 2, 3)] == ["a1x", "a1y", "a1x"]
        digests = dict(catalogue.connection.execute("SELECT feed_id, content_digest FROM feeds").fetchall())
        assert find_unchanged(catalogue, "s", digests[3]) and not find_unchanged(catalogue, "s", digests[2])
        assert find_unchanged(catalogue, "s", digests[2], day(2))
        assert not find_unchanged(catalogue, "s", digests[2], day(3))
        assert not find_unchanged(catalogue, "t", digests[3])


GRABS = {1: "a1x a2y a3z", 2: "a2y a3w a4v", 3: "a1x a2u a3w", 4: "a2y a3w"}
EXPECTED = ["a1x a2y a3z", "a1x a2y a3w a4v", "a1x a2u a3w a4v", "a1x a2y a3w a4v"]


ORDERS = list(itertools.permutations(GRABS))


@pytest.mark.parametrize(
    "orders", [ORDERS[::12], pytest.param(ORDERS, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_the_order_of_reading_changes_no_history(tmp_path: Path, orders: list[tuple[int, ...]]) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        for order in orders:
            for grabbed in order:
                counts = read(catalogue, grabbed, GRABS[grabbed], source=str(order))
                assert counts.seen == counts.stored + counts.duplicates
            assert [known(catalogue, at, str(order)) for at in GRABS] == EXPECTED


LISTED = {
    1: {"a": ["One"]},
    2: {"a": ["One"], "b": ["B"]},
    3: {"a": ["Two"], "b": ["B"]},
    4: {"a": ["One"], "b": ["B", "Bee"]},
}
NAMES = [
    {"a": ["One"], "b": ["b"]},
    {"a": ["One"], "b": ["B"]},
    {"a": ["Two"], "b": ["B"]},
    {"a": ["One"], "b": ["B", "Bee"]},
]


@pytest.mark.parametrize(
    "orders", [ORDERS[::12], pytest.param(ORDERS, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_the_order_of_reading_changes_no_channel(tmp_path: Path, orders: list[tuple[int, ...]]) -> None:
    asked = """
        SELECT channel, names
        FROM channel_history
        JOIN feeds USING (feed_id, source)
        WHERE source = ? AND grabbed_at <= ?
        QUALIFY row_number() OVER (PARTITION BY channel ORDER BY grabbed_at DESC, feed_id DESC) = 1
    """
    with Catalogue.open(tmp_path) as catalogue:
        for order in orders:
            for grabbed in order:
                read(catalogue, grabbed, "a1x b1y", source=str(order), names=LISTED[grabbed])
            instants = [day(at).replace(tzinfo=None) for at in GRABS]
            found = [catalogue.connection.execute(asked, [str(order), at]).fetchall() for at in instants]
            assert [*map(dict, found)] == NAMES, order


def test_snapshots_as_of_a_date(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        read(catalogue, 1, "a1x a2y")
        then = SnapshotOptions(as_of=day(1))
        digest = snapshot_digest(catalogue, then)
        read(catalogue, 2, "a1x a2z")
        assert snapshot_digest(catalogue, then) == digest  # what was known then is known for good
        assert (
            len(
                {
                    digest,
                    snapshot_digest(catalogue),
                    snapshot_digest(catalogue, SnapshotOptions(as_of=day(2))),
                }
            )
            == 3
        )
        titles = {}
        for name, choice in {
            "then": then,
            "now": SnapshotOptions(),
            "before": SnapshotOptions(as_of=day(1) - HOUR),
        }.items():
            (tmp_path / name).mkdir()
            write_snapshot(catalogue, tmp_path / name, choice)
            titles[name] = pq.read_table(tmp_path / name / "programmes.parquet").column("title").to_pylist()
        assert titles == {"then": ["x", "y"], "now": ["x", "z"], "before": []}
        assert pq.read_table(tmp_path / "then" / "feeds.parquet").num_rows == 1


@pytest.mark.parametrize(
    ("priority", "heard"),
    [
        ((), [("s", "x"), ("s", "y"), ("t", "w")]),  # s was read first
        (("t",), [("t", "u"), ("t", "v"), ("t", "w")]),
        (("nobody", "?"), [("s", "x"), ("s", "y"), ("t", "w")]),
    ],
)
def test_one_source_is_chosen_where_sources_overlap(
    tmp_path: Path, priority: tuple[str, ...], heard: list[tuple[str, str]]
) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        read(catalogue, 1, "a1x a2y")
        read(catalogue, 2, "a1u a2v a3w b1only", source="t")
        write_snapshot(catalogue, tmp_path, SnapshotOptions(priority=priority))
    rows = pq.read_table(tmp_path / "programmes.parquet").to_pylist()
    assert [(row["source"], row["title"]) for row in rows if row["channel"] == "a"] == heard
    assert [row["title"] for row in rows if row["channel"] == "b"] == ["only"]


@pytest.mark.parametrize(
    ("channel", "one", "other", "same"),
    [
        ("1", ["BBC One"], ["Das Erste"], False),  # two guides that number their channels
        ("1", ["BBC One"], ["bbc-one!", "Eins"], True),
        ("1", ["1"], ["1"], False),
        ("1", [], [], False),
        ("1", ["BBC One"], [], False),
        ("a", ["BBC One"], [], True),
        ("a", ["a"], ["A one"], True),
        ("a", ["BBC One"], ["BBC Two"], False),
        ("a", ["One", "Uno"], ["Eins", "UNO"], True),
        ("ü", [], [], True),
    ],
)
def test_channels_with_equal_ids_and_a_common_name_are_one(
    tmp_path: Path, channel: str, one: list[str], other: list[str], same: bool
) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        read(catalogue, 1, f"{channel}1x {channel}2y", names={channel: one} if one else None)
        schedule = f"{channel}0before {channel}1u {channel}2v {channel}4after"
        read(catalogue, 2, schedule, source="t", names={channel: other} if other else None)
        write_snapshot(catalogue, tmp_path)
    titles = pq.read_table(tmp_path / "programmes.parquet").column("title").to_pylist()
    assert titles == ["x", "y", "before", *([] if same else ["u", "v"]), "after"]


def test_a_home_of_the_first_version_keeps_everything(tmp_path: Path) -> None:
    migrate_home(tmp_path, 1)
    with duckdb.connect(str(tmp_path / CATALOGUE_FILE)) as connection:
        connection.execute("INSERT INTO feeds VALUES (1, 's', 'd', 10, '2025-02-01', 3, 2, 1, 0)")
        connection.execute("INSERT INTO channels VALUES ('s', 'a', 'A'), ('s', 'b', 'B')")
        connection.execute(
            "INSERT INTO programmes VALUES (1, 's', 'a', '2025-03-01 13:00', '2025-03-01 14:00', "
            "NULL, 'x', 'en', NULL, ['c'], ['S1E2'], '2024')"
        )
        connection.execute(
            "INSERT INTO programmes VALUES "
            "(1, 's', 'a', '2025-03-01 14:00', NULL, 'missing', 'y', NULL, NULL, [], [], NULL)"
        )
        connection.execute("INSERT INTO rejects VALUES (1, 7, 'bad_start', '<p>')")
    with Catalogue.open(tmp_path) as catalogue:
        ask = catalogue.connection.execute
        assert ask(
            "SELECT programme_id, title, stop_note, categories FROM schedule ORDER BY start"
        ).fetchall() == [(1, "x", None, ["c"]), (2, "y", "missing", [])]
        assert ask("SELECT source, channel, name FROM channels ORDER BY channel").fetchall() == [
            ("s", "a", "A"),
            ("s", "b", "B"),
        ]
        assert ask("SELECT season, episode FROM episodes").fetchall() == [(1, 2)]
        assert ask("SELECT read_at = grabbed_at, seen FROM feeds").fetchall() == [(True, 3)]
        assert ask("SELECT count(*) FROM rejects").fetchall() == [(1,)]
        assert known(catalogue, 1) == "a1x a2y"
        read(catalogue, 2, "a1x a2w")  # x comes with its episode and year no more: other words
        assert known(catalogue, 1) == "a1x a2y" and known(catalogue, 2) == "a1x a2w"
