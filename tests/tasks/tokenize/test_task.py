"""From a Guide folder to a Vocabulary, by the task itself."""

import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage.workspace import Workspace
from tasks.tokenize.settings import TokenizeSettings
from tasks.tokenize.shows import gather_shows
from tasks.tokenize.splits import SPLITS, TRAIN, SplitSettings
from tasks.tokenize.words import KINDS, Words
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


def test_a_title_is_a_show(vocabulary: Path):
    titles = {title["show_key"]: title for title in read(vocabulary, "titles")}
    roses = titles["rote rosen"]
    assert roses["title"] == "Rote Rosen" and roses["raw_title"] == "Rote Rosen (889)"  # the most aired raw form
    assert roses["airings"] == 4 and roses["first_airing"] == START and roses["family"] == "rote"
    assert titles["late arrival"]["language"] == "de" and titles["late arrival"]["split"] == "next_period"
    assert titles["no information"]["split"] == "placeholder"
    assert list(titles) == sorted(titles)


def test_variants_lead_to_their_title(vocabulary: Path):
    titles = read(vocabulary, "titles")
    variants = {row["raw_title"]: titles[row["title_id"]]["show_key"] for row in read(vocabulary, "variants")}
    assert len(variants) == 2 * 270 + 3 + 6
    assert {raw for raw, key in variants.items() if key == "rote rosen"} == {"Rote Rosen (888)", "Rote Rosen (889)", "ROTE ROSEN (889)"}


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


def test_ids_fall_with_frequency_and_weights_rise(vocabulary: Path):
    tokens = read(vocabulary, "tokens")
    assert [row["token_id"] for row in tokens] == list(range(len(tokens)))
    frequencies = [row["document_frequency"] for row in tokens]
    assert frequencies == sorted(frequencies, reverse=True)
    weights = [row["weight"] for row in tokens]
    assert weights == sorted(weights) and 0.2 <= weights[0] < 1 < weights[-1] <= 5
    assert all(row["term_frequency"] >= row["document_frequency"] for row in tokens)
    assert {row["kind"] for row in tokens} <= set(KINDS)
    assert min(row["document_frequency"] for row in tokens if row["kind"] in ("ngram", "bigram", "edge")) == 2  # thinned
    assert min(row["document_frequency"] for row in tokens if row["kind"] == "word") == 1


def test_an_empty_guide_is_an_empty_vocabulary(tmp_path: Path, without_run):
    from tasks.tokenize.task import tokenize

    made = without_run(tokenize, str(tmp_path), publish_guide(tmp_path, []), TokenizeSettings())
    assert made.counts["titles"] == 0 and made.counts["tokens"] == 0
    assert Workspace(tmp_path).details(made)["next_period_reason"] == "the guide holds no titles"


def test_settings_are_another_vocabulary(tmp_path: Path, without_run):
    from tasks.tokenize.task import tokenize

    guide = publish_guide(tmp_path, programmes(20))
    plain = without_run(tokenize, str(tmp_path), guide, TokenizeSettings())
    words = without_run(tokenize, str(tmp_path), guide, TokenizeSettings(tokenizer=Words()))
    assert plain.path != words.path and words.counts["tokens"] < plain.counts["tokens"]
    assert without_run(tokenize, str(tmp_path), guide, TokenizeSettings()) == plain  # the same bytes again


def test_most_aired_form_wins_then_the_shorter():
    raw = pa.table(
        {
            "raw_title": ["Maus (2)", "Maus [R]", "MAUS"],
            "airings": [5, 5, 1],
            "first_airing": [30, 20, 10],
            "last_airing": [40, 50, 60],
            "language": ["de", None, "xx"],
        }
    )
    shows = gather_shows(raw, SplitSettings())
    assert shows.show_keys == ["maus"] and shows.displays == ["Maus"] and shows.languages in (["de"], [None])
    assert shows.airings == [11] and shows.first_airings.tolist() == [10]
    assert shows.split.codes.tolist() == [TRAIN] and shows.split.codes.dtype == np.int8
