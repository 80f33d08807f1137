"""From a Guide folder to a Vocabulary, by the task itself."""

import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage.catalogue.connection import temporary_database
from storage.formats.vocabulary import SPLITS, TRAIN
from storage.home.workspace import Workspace
from tasks.pool import open_pool
from tasks.text.words import KINDS, Words
from tasks.tokenize.pieces import gather_shows, write_titles
from tasks.tokenize.settings import TokenizeSettings
from tasks.tokenize.shows import write_raw_titles
from tasks.tokenize.splits import SplitSettings
from tests.worlds import START, Programme, programmes, publish_guide

DAY = datetime.timedelta(days=1)


def read(folder: Path, name: str) -> list[dict]:
    return pq.read_table(folder / f"{name}.parquet").to_pylist()


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vocabulary of the toy world and a few titles with quirks."""
    from prefect.logging import disable_run_logger

    from tasks.tokenize.task import tokenize

    home = tmp_path_factory.mktemp("home")
    quirks = [
        *(
            Programme("Rote Rosen (888)", start=START + 2 * DAY),
            Programme("Rote Rosen (889)", start=START + DAY),
            Programme("ROTE ROSEN (889)", start=START + DAY),
            Programme("Rote Rosen (889)"),
        ),
        *(Programme("No information", start=START + number * DAY) for number in range(3)),
        Programme(". . . .", start=START),
        *(Programme(f"{rare} Hour", start=START) for rare in ("Quagga", "Xylophone", "Zeppelin")),
        Programme("Late Arrival", start=START + 10 * DAY, language="de"),
    ]
    with disable_run_logger():
        made = tokenize.fn(str(home), publish_guide(home, programmes() + quirks), TokenizeSettings())
    assert made.counts["titles"] == 270 + 7 and made.counts["placeholder"] == 2
    assert sum(made.counts[name] for name in SPLITS) == made.counts["titles"]
    return Workspace(home).folder(made)


def test_the_row_of_a_title_describes_its_show(vocabulary: Path):
    titles = {title["show_key"]: title for title in read(vocabulary, "titles")}
    roses = titles["rote rosen"]
    assert (
        roses["title"] == "Rote Rosen" and roses["raw_title"] == "Rote Rosen (889)"
    )  # the most aired raw form
    assert roses["airings"] == 4 and roses["first_airing"] == START and roses["family"] == "rote"
    assert titles["late arrival"]["language"] == "de" and titles["late arrival"]["split"] == "next_period"
    assert titles["no information"]["split"] == "placeholder"
    assert list(titles) == sorted(titles)


def test_variants_map_raw_titles_to_titles(vocabulary: Path):
    titles = read(vocabulary, "titles")
    variants = {row["raw_title"]: titles[row["title_id"]]["show_key"] for row in read(vocabulary, "variants")}
    assert len(variants) == 2 * 270 + 3 + 6
    assert {raw for raw, key in variants.items() if key == "rote rosen"} == {
        "Rote Rosen (888)",
        "Rote Rosen (889)",
        "ROTE ROSEN (889)",
    }


def test_only_training_titles_are_counted(vocabulary: Path):
    """The law of held-out sets: a word that only they hold has no row."""
    training, held_out = set(), set()
    for title in read(vocabulary, "titles"):
        (training if title["split"] == "train" else held_out).update(title["title"].casefold().split())
    words = {row["token"]: row for row in read(vocabulary, "tokens") if row["kind"] == "word"}
    assert {"late", "arrival", "information"} <= held_out - training
    assert set(words) == training
    counts: dict[str, int] = {}
    for title in read(vocabulary, "titles"):
        if title["split"] == "train":
            for word in set(title["title"].casefold().split()):
                counts[word] = counts.get(word, 0) + 1
    assert {word: row["document_frequency"] for word, row in words.items()} == counts


def test_ids_are_ordered_by_frequency_and_weights_increase(vocabulary: Path):
    tokens = read(vocabulary, "tokens")
    assert [row["token_id"] for row in tokens] == list(range(len(tokens)))
    frequencies = [row["document_frequency"] for row in tokens]
    assert frequencies == sorted(frequencies, reverse=True)
    weights = [row["weight"] for row in tokens]
    assert weights == sorted(weights) and 0.2 <= weights[0] < 1 < weights[-1] <= 5
    assert all(row["term_frequency"] >= row["document_frequency"] for row in tokens)
    assert {row["kind"] for row in tokens} <= set(KINDS)
    assert (
        min(row["document_frequency"] for row in tokens if row["kind"] in ("ngram", "bigram", "edge")) == 2
    )  # thinned
    assert min(row["document_frequency"] for row in tokens if row["kind"] == "word") == 1


def test_an_empty_guide_is_an_empty_vocabulary(tmp_path: Path, without_run):
    from tasks.tokenize.task import tokenize

    made = without_run(tokenize, str(tmp_path), publish_guide(tmp_path, []), TokenizeSettings())
    assert made.counts["titles"] == 0 and made.counts["tokens"] == 0
    assert Workspace(tmp_path).details(made)["next_period_reason"] == "the guide has no titles"


def test_other_settings_give_another_vocabulary(tmp_path: Path, without_run):
    from tasks.tokenize.task import tokenize

    guide = publish_guide(tmp_path, programmes(20))
    plain = without_run(tokenize, str(tmp_path), guide, TokenizeSettings())
    words = without_run(tokenize, str(tmp_path), guide, TokenizeSettings(tokenizer=Words()))
    assert plain.path != words.path and words.counts["tokens"] < plain.counts["tokens"]
    assert without_run(tokenize, str(tmp_path), guide, TokenizeSettings()) == plain  # the same bytes again


def test_raw_titles(tmp_path: Path):
    languages = "en", None, "de", "de"
    rows = [Programme("Maus", start=START + n * DAY, language=code) for n, code in enumerate(languages)]
    guide = tmp_path / publish_guide(tmp_path, [*rows, Programme("News", language=None)]).path
    with temporary_database(tmp_path) as connection:
        write_raw_titles(connection, guide, tmp_path / "raw.parquet", 1000)
    times = [int((START + n * DAY).replace(tzinfo=datetime.UTC).timestamp() * 1e6) for n in (0, 3)]
    rows = [list(row.values()) for row in pq.read_table(tmp_path / "raw.parquet").to_pylist()]
    assert rows == [["Maus", 4, *times, "de"], ["News", 1, times[0], times[0], None]]


def test_most_aired_form_wins_then_the_shorter(tmp_path: Path):
    raw = pa.table(
        {
            "raw_title": ["MAUS", "Maus (2)", "Maus [R]"],
            "airings": [1, 5, 5],
            "first_airing": [10, 30, 20],
            "last_airing": [60, 40, 50],
            "language": pa.array(["xx", "de", None], pa.string()),
        }
    )
    (tmp_path / "work").mkdir()
    pq.write_table(raw, tmp_path / "work" / "raw.parquet", row_group_size=2)
    with open_pool("processes", 0) as submit, temporary_database(tmp_path / "work") as connection:
        raw = tmp_path / "work" / "raw.parquet"
        shows = gather_shows(connection, raw, tmp_path, submit)
    split = write_titles(shows, SplitSettings(), tmp_path / "titles.parquet", 2)
    (row,) = read(tmp_path, "titles")
    assert (
        row["show_key"] == "maus"
        and row["title"] == "Maus"
        and row["raw_title"] == "Maus [R]"
        and row["language"] is None
    )
    assert row["airings"] == 11 and row["first_airing"] == datetime.datetime(1970, 1, 1, 0, 0, 0, 10)
    assert split.codes.tolist() == [TRAIN] and split.codes.dtype == np.int8
    assert read(tmp_path, "variants") == [
        {"raw_title": text, "title_id": 0} for text in ("MAUS", "Maus (2)", "Maus [R]")
    ]


def test_the_size_of_pieces_changes_no_token(tmp_path: Path, without_run):
    from tasks.tokenize.task import tokenize

    guide = publish_guide(tmp_path, programmes(40))
    whole, cut = (
        without_run(tokenize, str(tmp_path), guide, TokenizeSettings(piece=piece)) for piece in (20_000, 7)
    )
    folders = [Workspace(tmp_path).folder(made) for made in (whole, cut)]
    assert len(list(folders[0].glob("dictionary-*"))) == 1 and len(
        list(folders[1].glob("dictionary-*"))
    ) == -(-120 // 7)
    for name in ("tokens", "titles", "variants", "contexts"):
        assert read(folders[0], name) == read(folders[1], name)
    assert not list(folders[1].glob("work-*"))


@pytest.mark.slow
@pytest.mark.parametrize("pool", ["processes", "dask"])
def test_two_workers_give_the_same_bits(tmp_path: Path, without_run, pool: str):
    """The vocabulary made by two processes, and by two workers of Dask on loopback, is that made here, bit
    for bit."""
    if pool == "dask":
        pytest.importorskip(
            "distributed", reason="two Dask workers need the package distributed (extra dask)"
        )
    from tasks.tokenize.task import tokenize

    first, second = (
        home / without_run(tokenize, str(home), publish_guide(home, programmes(40)), settings).path
        for home, settings in (
            (tmp_path / "alone", TokenizeSettings(piece=25, workers=0)),
            (tmp_path / "together", TokenizeSettings(piece=25, workers=2, pool=pool)),
        )
    )
    assert first.name == second.name  # the pool is not part of the cache key
    names = sorted(file.name for file in first.iterdir() if file.suffix == ".parquet")
    assert len(names) == 4 + 2 * 5 and names == sorted(
        file.name for file in second.iterdir() if file.suffix == ".parquet"
    )
    assert [name for name in names if (first / name).read_bytes() != (second / name).read_bytes()] == []
