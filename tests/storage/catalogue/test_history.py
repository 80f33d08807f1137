"""Grabs replace each other and nothing is forgotten: small schedules that a person can follow, and any order
of reading them."""

import datetime
import itertools
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage.catalogue.connection import FILE, Catalogue
from storage.catalogue.feeds import Counts, find_unchanged
from storage.catalogue.ledger import reading
from storage.catalogue.rows import CHANNELS, DETAILS, PROGRAMMES
from storage.catalogue.snapshots import Choice, snapshot, snapshot_digest
from tests.storage.catalogue.stored import migrate_home

NOON = datetime.datetime(2025, 3, 1, 12)
HOUR = datetime.timedelta(hours=1)
NOTHING = {"categories": [], "episode_numbers": [], "episode_systems": []}


def day(number: int) -> datetime.datetime:
    return datetime.datetime(2025, 2, number, tzinfo=datetime.UTC)


def read(
    catalogue: Catalogue,
    grabbed: int,
    schedule: str,
    source: str = "s",
    description: str = "",
    names: dict[str, list[str]] | None = None,
) -> Counts:
    """Reads a schedule such as "a1x a2y b1z": channel, hour, title; ``names`` of the channels that are
    listed."""
    rows = [
        {
            "channel": said[0],
            "start": NOON + int(said[1]) * HOUR,
            "stop": NOON + (int(said[1]) + 1) * HOUR,
            "title": said[2:],
            **NOTHING,
        }
        for said in schedule.split()
    ]
    details = pa.RecordBatch.from_pylist(
        [{"row": 0, "description": description}] if description else [], schema=DETAILS
    )
    with reading(
        catalogue,
        source=source,
        content_digest=schedule + description,
        size=1,
        read_at=day(28),
        grabbed_at=day(grabbed),
    ) as draft:
        draft.add_programmes(pa.RecordBatch.from_pylist(rows, schema=PROGRAMMES), details)
        if names:
            listed = [
                {"channel": channel, "name": given[0], "names": given, "urls": []}
                for channel, given in names.items()
            ]
            draft.add_channels(pa.RecordBatch.from_pylist(listed, schema=CHANNELS))
        return draft.finish()


def known(catalogue: Catalogue, at: int, source: str = "s") -> str:
    """The schedule as of a day, in the same notation."""
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
        assert known(catalogue, 1) == "a1x a2y a3z b1x b2y"
        assert known(catalogue, 2) == "a1x a2y a3new a4more b1x b2y"
        assert known(catalogue, 2, "t") == "a2other"
        assert catalogue.connection.execute(
            "SELECT title, feed_id, replaced_by FROM programmes "
            "WHERE title IN ('y', 'z') AND channel = 'a' ORDER BY title"
        ).fetchall() == [
            ("y", 1, None),
            ("z", 1, 3),
        ]
        assert read(catalogue, 3, "a1x a3z") == Counts(
            seen=2, stored=1, duplicates=1, rejected=0
        )  # z is back, y is gone
        assert known(catalogue, 3) == "a1x a3z a4more b1x b2y"
        assert [known(catalogue, at) for at in (1, 2)] == [
            "a1x a2y a3z b1x b2y",
            "a1x a2y a3new a4more b1x b2y",
        ]
        assert catalogue.connection.execute(
            "SELECT count(*) FROM schedule WHERE source = 's'"
        ).fetchall() == [(5,)]


def test_other_words_on_the_same_programme_replace_it(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        read(catalogue, 1, "a1x a2y", description="first words")
        assert read(catalogue, 2, "a1x a2y", description="first words").stored == 0
        assert read(catalogue, 3, "a1x a2y", description="other words") == Counts(
            seen=2, stored=1, duplicates=1, rejected=0
        )
        assert catalogue.connection.execute(
            "SELECT title, description FROM schedule ORDER BY start"
        ).fetchall() == [("x", "other words"), ("y", None)]


def test_the_same_bytes_are_needless_only_while_they_are_the_last_word(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        read(catalogue, 1, "a1x")
        assert find_unchanged(catalogue, "s", "a1x") is not None
        read(catalogue, 2, "a1y")
        assert find_unchanged(catalogue, "s", "a1x") is None
        assert (
            find_unchanged(catalogue, "s", "a1x", day(1)) is not None
            and find_unchanged(catalogue, "s", "a1x", day(3)) is None
        )
        read(catalogue, 3, "a1x")
        assert [known(catalogue, at) for at in (1, 2, 3)] == ["a1x", "a1y", "a1x"]


GRABS = {1: "a1x a2y a3z", 2: "a2y a3w a4v", 3: "a1x a2u a3w", 4: "a2y a3w"}
EXPECTED = ["a1x a2y a3z", "a1x a2y a3w a4v", "a1x a2u a3w a4v", "a1x a2y a3w a4v"]


ORDERS = list(itertools.permutations(GRABS))


@pytest.mark.parametrize(
    "orders", [ORDERS[::5], pytest.param(ORDERS, marks=pytest.mark.slow)], ids=["some", "all"]
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
    "orders", [ORDERS[::5], pytest.param(ORDERS, marks=pytest.mark.slow)], ids=["some", "all"]
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
            found = [
                dict(
                    catalogue.connection.execute(asked, [str(order), day(at).replace(tzinfo=None)]).fetchall()
                )
                for at in GRABS
            ]
            assert found == NAMES, order


def test_snapshots_as_of_a_date(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        read(catalogue, 1, "a1x a2y")
        then = Choice(as_of=day(1))
        digest = snapshot_digest(catalogue, then)
        read(catalogue, 2, "a1x a2z")
        assert snapshot_digest(catalogue, then) == digest  # what was known then is known for good
        assert (
            len({digest, snapshot_digest(catalogue), snapshot_digest(catalogue, Choice(as_of=day(2)))}) == 3
        )
        titles = {}
        for name, choice in {"then": then, "now": Choice(), "before": Choice(as_of=day(1) - HOUR)}.items():
            (tmp_path / name).mkdir()
            snapshot(catalogue, tmp_path / name, choice)
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
def test_where_sources_overlap_one_is_heard(
    tmp_path: Path, priority: tuple[str, ...], heard: list[tuple[str, str]]
) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        read(catalogue, 1, "a1x a2y")
        read(catalogue, 2, "a1u a2v a3w b1only", source="t")
        snapshot(catalogue, tmp_path, Choice(priority=priority))
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
def test_one_channel_is_the_same_id_with_a_name_in_common(
    tmp_path: Path, channel: str, one: list[str], other: list[str], same: bool
) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        read(catalogue, 1, f"{channel}1x {channel}2y", names={channel: one} if one else None)
        read(
            catalogue,
            2,
            f"{channel}0before {channel}1u {channel}2v {channel}4after",
            source="t",
            names={channel: other} if other else None,
        )
        snapshot(catalogue, tmp_path)
    titles = pq.read_table(tmp_path / "programmes.parquet").column("title").to_pylist()
    assert titles == ["x", "y", "before", *([] if same else ["u", "v"]), "after"]


def test_a_home_of_the_first_version_keeps_everything(tmp_path: Path) -> None:
    migrate_home(tmp_path, 1)
    with duckdb.connect(str(tmp_path / FILE)) as connection:
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
