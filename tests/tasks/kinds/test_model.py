"""Training on titles that state their kind, thresholds, and predictions for titles that state nothing."""

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage.formats.programme_kinds import read_kind_arrays, read_title_kinds
from tasks.kinds.classifier import RISK, KindClassifier, Validation
from tasks.kinds.evidence import read_evidence
from tasks.kinds.files import write_kinds
from tasks.kinds.kinds import KINDS
from tasks.kinds.model import KindModel
from tasks.kinds.scores import score_kind, score_kinds

FILM, SERIES = KINDS.index("film"), KINDS.index("series")
START = datetime.datetime(2026, 1, 5, 20)


class Airing(NamedTuple):
    title: str
    minutes: int
    categories: Sequence[str] = ()
    channel: str = "one"
    sub_title: str | None = None
    number: str = ""
    date: str | None = None
    day: int = 0


def write_guide(folder: Path, airings: Sequence[Airing]) -> list[str]:
    """Writes programmes, titles and variants; every raw title is a title. Returns the titles."""
    folder.mkdir(exist_ok=True)
    starts = [START + datetime.timedelta(days=airing.day) for airing in airings]
    stops = [start + datetime.timedelta(minutes=airing.minutes) for start, airing in zip(starts, airings)]
    texts = pa.list_(pa.string())
    columns = {
        "source": pa.array(["feed"] * len(airings)),
        "start": pa.array(starts, pa.timestamp("us")),
        "stop": pa.array(stops, pa.timestamp("us")),
        "zone": pa.array(["UTC"] * len(airings)),
        "categories": pa.array([[*airing.categories] for airing in airings], texts),
        "episode_numbers": pa.array([[airing.number] if airing.number else [] for airing in airings], texts),
        "episode_systems": pa.array([["onscreen"] if airing.number else [] for airing in airings], texts),
    }
    for name in ("title", "channel", "sub_title", "date"):
        columns[name] = pa.array([getattr(airing, name) for airing in airings], pa.string())
    pq.write_table(pa.table(columns), folder / "programmes.parquet")
    titles = sorted({airing.title for airing in airings})
    ids = pa.array(range(len(titles)), pa.int32())
    pq.write_table(pa.table({"raw_title": titles, "title_id": ids}), folder / "variants.parquet")
    about = {"title": titles, "show_key": [title.casefold() for title in titles], "family": titles}
    pq.write_table(pa.table({**about, "split": ["train"] * len(titles)}), folder / "titles.parquet")
    return titles


def films(count: int, *categories: str) -> list[Airing]:
    return [
        Airing(f"Film {n} of {len(categories)}", 90 + n % 40, categories, date="1999") for n in range(count)
    ]


def series(count: int, *categories: str) -> list[Airing]:
    return [
        Airing(f"Series {n} of {len(categories)}", 25 + n % 20, categories, sub_title=f"Part {day}", day=day)
        for n in range(count)
        for day in range(3)
    ]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Home with 150 films and 150 series that state their kind, and 20 of each that do not."""
    folder = tmp_path_factory.mktemp("kinds")
    write_guide(folder, [*films(150, "Movie"), *series(150, "Series"), *films(20), *series(20)])
    write_kinds(folder, folder, folder, {})
    return folder


def kinds_by_title(folder: Path) -> dict[str, tuple[list[str], list[str]]]:
    titles = pq.read_table(folder / "titles.parquet")["title"].to_pylist()
    rows = read_title_kinds(folder).to_pylist()
    return {title: (row["programme_kinds"], row["kind_sources"]) for title, row in zip(titles, rows)}


def test_titles_without_categories_get_the_kind_of_similar_titles(home: Path) -> None:
    by_title = kinds_by_title(home)
    assert all(by_title[f"Film {n} of 0"] == (["film"], ["predicted"]) for n in range(20))
    assert all(by_title[f"Series {n} of 0"] == (["series"], ["predicted"]) for n in range(20))
    assert by_title["Film 3 of 1"] == (["film"], ["guide"])


def test_a_model_predicts_for_other_guides(home: Path, tmp_path: Path) -> None:
    """A title of the home, and an episode number. One channel in the home gives no threshold for new ones."""
    guide = [
        Airing("New film", 100, date="2001"),
        Airing("Film elsewhere", 100, channel="two", date="2001"),
        Airing("Numbered", 100, channel="two", date="2001", number="S1 E4"),
        Airing("Film 3 of 1", 20, channel="two"),
        Airing("Stated", 100, ("Sport",), channel="two", date="2001"),
    ]
    titles = write_guide(tmp_path, guide)
    keys = [title.casefold() for title in titles]
    files = tmp_path / "programmes.parquet", tmp_path / "variants.parquet"
    kinds = KindModel.open(home).predict(*files, titles, keys, tmp_path)
    by_title = {title: [each.kind for each in kinds[row]] for row, title in enumerate(titles)}
    expected = {"New film": ["film"], "Numbered": ["series"], "Film 3 of 1": ["film"], "Stated": ["sport"]}
    assert by_title == {**expected, "Film elsewhere": []}
    (film,) = kinds[titles.index("New film")]
    assert film.source == "predicted" and 0.8 <= film.probability <= 1
    strict = KindModel.open(home, dict.fromkeys(KINDS, 0.999)).predict(*files, titles, keys, tmp_path)
    assert not strict[titles.index("New film")]


def test_a_category_that_never_occurs_with_films_is_a_negative_example(tmp_path: Path) -> None:
    talks = [Airing(f"Talk {n}", 100 if n < 5 else 30, ("Views",), date="1999") for n in range(40)]
    long = [Airing(f"Tale {n}", 100, ("Drame",), date="1999") for n in range(40)]
    titles = write_guide(tmp_path, [*films(60, "Movie"), *talks, *long])
    files = tmp_path / "programmes.parquet", tmp_path / "variants.parquet"
    labels = read_evidence(*files, tmp_path).evidence.labels()[:, FILM]
    by_title = dict(zip(titles, labels.tolist(), strict=True))
    assert by_title["Talk 0"] == 0 and by_title["Tale 0"] == -1 and by_title["Film 0 of 1"] == 1


def test_titles_of_a_topic_channel_are_no_negative_examples_of_its_kind(tmp_path: Path) -> None:
    """Titles that state another kind are no examples against news on a news channel; films remain so."""
    news = [Airing(f"News {n}", 30, ("News",)) for n in range(3)]
    others = [Airing("Talk", 30, ("Talk show",)), Airing("Story", 90, ("Movie",))]
    elsewhere = [Airing("Quiz", 30, ("Game show",), channel="two")]
    titles = write_guide(tmp_path, [*news, *others, *elsewhere])
    guide_evidence = read_evidence(tmp_path / "programmes.parquet", tmp_path / "variants.parquet", tmp_path)
    labels = guide_evidence.training_labels()[:, KINDS.index("news")]
    by_title = dict(zip(titles, labels.tolist(), strict=True))
    assert by_title == {"News 0": 1, "News 1": 1, "News 2": 1, "Talk": -1, "Story": -1, "Quiz": 0}
    assert guide_evidence.evidence.labels()[titles.index("Talk"), KINDS.index("news")] == 0


def test_a_series_as_long_as_a_film_is_no_example_against_films(tmp_path: Path) -> None:
    airings = [
        Airing("Long", 100, ("Series",)),
        Airing("Parts", 100, ("Series",), sub_title="Part 1"),
        Airing("Short", 30, ("Series",)),
    ]
    write_guide(tmp_path, airings)
    guide_evidence = read_evidence(tmp_path / "programmes.parquet", tmp_path / "variants.parquet", tmp_path)
    assert guide_evidence.training_labels()[:, FILM].tolist() == [-1, 0, 0]


def test_children_and_episode_numbers_are_no_examples_of_series(tmp_path: Path) -> None:
    airings = [Airing("Toys", 90, ("Kids",)), Airing("Cook", 30, ("Cooking",), number="E3")]
    write_guide(tmp_path, airings)
    files = tmp_path / "programmes.parquet", tmp_path / "variants.parquet"
    evidence = read_evidence(*files, tmp_path).evidence
    assert evidence.labels()[:, [FILM, SERIES]].tolist() == [[0, -1], [-1, -1]]


def test_a_guide_without_kinds_has_no_classifier(tmp_path: Path) -> None:
    write_guide(tmp_path, films(30))
    write_kinds(tmp_path, tmp_path, tmp_path, {})
    assert not any(kinds for kinds, _ in kinds_by_title(tmp_path).values())
    assert KindModel.open(tmp_path).classifier is None


def test_bounds_are_those_of_clopper_and_pearson() -> None:
    """99 films without an error: the lower bound is risk ** (1 / 99)."""
    margins = np.arange(100, 0, -1, dtype=np.float32)[:, None]
    labels = (margins > 1).astype(np.int8)
    zeros = np.zeros(100, np.int8)
    validation = Validation.from_margins(np.arange(100), labels, zeros, margins, zeros)
    assert validation.bounds[98, 0] == pytest.approx(RISK ** (1 / 99), abs=1e-6)
    assert validation.bounds[99, 0] < 0.98 and validation.probabilities[99, 0] == 0


def test_nothing_is_predicted_on_channels_without_labels(tmp_path: Path) -> None:
    airings = films(80, "Movie") + series(80, "Series")
    unlabelled = [Airing(f"Night {number}", 110, channel="silent") for number in range(20)]
    write_guide(tmp_path, airings + unlabelled)
    write_kinds(tmp_path, tmp_path, tmp_path, {})
    arrays, settings = read_kind_arrays(tmp_path) or ({}, {})
    assert settings["channels"] == ["one"]
    margins = arrays["title.margins"]
    assert np.isinf(margins).all(axis=1).sum() == len(unlabelled)
    kinds = kinds_by_title(tmp_path)
    assert not any(kinds[airing.title][0] for airing in unlabelled)


def test_scores_use_titles_that_neither_model_nor_threshold_used(home: Path) -> None:
    arrays, settings = read_kind_arrays(home) or ({}, {})
    classifier = KindClassifier.from_arrays(arrays, settings)
    assert classifier is not None
    scores = score_kinds(classifier, ["train"] * 340)
    assert scores["film"]["all"]["n"] == 300 and scores["film"]["all"]["titles"] == 150
    assert scores["film"]["all"]["precision"] == 1 and scores["film"]["all"]["recall"] > 0.9
    assert scores["film"]["unseen_show"]["n"] == 0
    half = score_kind(np.array([3.0, 2, 1, 0]), np.array([1, 0, 1, -1]), np.array([True, True, False, True]))
    expected = {"n": 3, "titles": 2, "average_precision": pytest.approx((1 + 2 / 3) / 2)}
    assert half == {**expected, "precision": 0.5, "recall": 0.5}
