"""Models of earlier nights: used again if few titles differ, by the stages themselves on the toy world."""

import dataclasses
import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from flows.trained_models import TrainedModel, find_reusable_model, find_trained_models
from storage.artifacts import Corpus, Vocabulary
from storage.home.workspace import Workspace
from tasks.cluster.settings import ClusterSettings
from tasks.evaluate.settings import EvaluateSettings
from tasks.preprocess.categories import LabelSources, read_mapping
from tasks.settings import Settings
from tasks.tokenize.reuse import TOKENS_OF
from tests.worlds import START, TRAINING, Programme, programmes, publish_guide

SETTINGS = Settings(train=TRAINING, evaluate=EvaluateSettings(baselines=EvaluateSettings().baselines[:1]))
SOURCES = LabelSources(mapping=read_mapping())
LATE = datetime.timedelta(days=3, hours=10)
WORLD = [*programmes(), Programme("Midnight verdict", ("Crime",), START + LATE)]  # is in next_period


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Home in which the model of the toy world has been trained."""
    from prefect.logging import disable_run_logger

    from tasks.augment.task import augment
    from tasks.evaluate.task import score_baselines
    from tasks.train.task import train

    home = tmp_path_factory.mktemp("trained") / "home"
    vocabulary, corpus = prepare(home, WORLD)
    assert not [*find_trained_models(str(home), SETTINGS, SOURCES)]
    with disable_run_logger():
        checkpoint = train.fn(str(home), corpus, SETTINGS.train)
        augment.fn(str(home), vocabulary, corpus, checkpoint, SETTINGS.train.encoder, SETTINGS.augment)
        score_baselines.fn(str(home), corpus, SETTINGS.evaluate)
    return home


def prepare(home: Path, rows: list[Programme], settings: Settings = SETTINGS) -> tuple[Vocabulary, Corpus]:
    """The first stages of a night, in the order of the flow."""
    from prefect.logging import disable_run_logger

    from tasks.preprocess.task import preprocess
    from tasks.tokenize.task import tokenize

    guide = publish_guide(home, rows)
    newest = next(find_trained_models(str(home), settings, SOURCES), None)
    with disable_run_logger():
        vocabulary = tokenize.fn(str(home), guide, settings.tokenize, newest and newest.vocabulary)
        inputs = guide, vocabulary, settings.tokenize.splits.salt, settings.preprocess, SOURCES
        return vocabulary, preprocess.fn(str(home), *inputs)


def changed(count: int, **changes: Any) -> list[Programme]:
    """The toy world with changes of the airings of the first ``count`` titles."""
    return [dataclasses.replace(row, **changes) for row in WORLD[: 2 * count]] + WORLD[2 * count :]


def model_of(
    home: Path, night: tuple[Vocabulary, Corpus], settings: Settings = SETTINGS
) -> TrainedModel | None:
    return find_reusable_model(str(home), *night, settings, SOURCES)


def test_few_changes_use_the_model_and_its_tokens(home: Path):
    rows = [*WORLD[2:], Programme("Zanzibar murder", ("Crime",), WORLD[5].start)]
    vocabulary, corpus = prepare(home, rows)
    model = model_of(home, (vocabulary, corpus))
    assert model is not None
    folder = Workspace(home).folder
    assert Workspace(home).details(vocabulary)[TOKENS_OF] == model.vocabulary.digest
    tokens = [(folder(each) / "tokens.parquet").read_bytes() for each in (vocabulary, model.vocabulary)]
    assert tokens[0] == tokens[1]
    now, then = (
        {row["show_key"]: (row["split"], row["context"]) for row in pq.read_table(file).to_pylist()}
        for file in (folder(each) / "titles.parquet" for each in (corpus, model.corpus))
    )
    assert len(now.keys() - then.keys()) == 1 and len(then.keys() - now.keys()) == 1
    assert all(now[show] == then[show] for show in now.keys() & then.keys())


def test_vectors_and_neighbours_of_unchanged_titles_are_equal(
    home: Path, without_run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
):
    from tasks.embed.task import embed
    from tasks.neighbours import task
    from tasks.neighbours.task import find_nearest

    night = prepare(home, WORLD[2:])
    model = model_of(home, night)
    assert model is not None
    before, now = (without_run(embed, str(home), each, model.encoder) for each in (model.corpus, night[1]))
    folder = Workspace(home).folder
    shows = [
        pq.read_table(folder(each) / "titles.parquet")["show_key"].to_pylist()
        for each in (model.corpus, night[1])
    ]
    rows = [shows[0].index(show) for show in shows[1]]
    for name in ("vectors", "full", "similarity"):
        then, today = (np.load(folder(each) / f"{name}.npy") for each in (before, now))
        np.testing.assert_array_equal(then[rows], today)
    compared = ClusterSettings().strategy.neighbours, ClusterSettings().search
    previous = without_run(find_nearest, str(home), model.corpus, before, *compared)
    results = []
    updates, update_neighbours = [], task.update_neighbours
    monkeypatch.setattr(
        task, "update_neighbours", lambda *inputs: updates.append(update_neighbours(*inputs)) or updates[-1]
    )
    for earlier in (None, previous):
        nearest = without_run(find_nearest, str(home), night[1], now, *compared, earlier)
        results.append({file.name: file.read_bytes() for file in folder(nearest).glob("*.[np]*")})
    assert len(results[0]) == 6 and results[0] == results[1]
    assert len(updates) == 2 and all(updates)  # of vectors with context, and of similarity vectors


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(WORLD[40:], id="titles"),
        pytest.param([*changed(20, channel="three"), WORLD[0]], id="context"),
    ],
)
def test_many_changes_train_again(home: Path, rows: list[Programme]):
    vocabulary, corpus = prepare(home, rows)
    assert TOKENS_OF not in Workspace(home).details(vocabulary)
    assert model_of(home, (vocabulary, corpus)) is None


def test_many_other_categories_train_again(home: Path):
    night = prepare(home, [*changed(20, categories=("Football",)), WORLD[0]])
    assert TOKENS_OF in Workspace(home).details(night[0])
    assert model_of(home, night) is None


def test_other_settings_train_again(home: Path):
    for settings in (
        dataclasses.replace(SETTINGS, train=dataclasses.replace(TRAINING, epochs=5)),
        dataclasses.replace(SETTINGS, tokenize=dataclasses.replace(SETTINGS.tokenize, reuse_share=0.0)),
    ):
        assert not [*find_trained_models(str(home), settings, SOURCES)]


def test_no_training_title_of_the_model_is_held_out(home: Path):
    """A training title that now airs first in next_period stays in the training set."""
    model, folder = next(find_trained_models(str(home), SETTINGS, SOURCES)), Workspace(home).folder
    then = {
        row["show_key"]: row["split"]
        for row in pq.read_table(folder(model.vocabulary) / "titles.parquet").to_pylist()
    }
    number = next(n for n in range(0, len(WORLD), 2) if then[WORLD[n].title.lower()] == "train")
    show, late = WORLD[number].title.lower(), dataclasses.replace(WORLD[number + 1], start=START + LATE)
    night = prepare(home, [*WORLD[:number], late, *WORLD[number + 2 :]])
    assert model_of(home, night) == model
    table = pq.read_table(folder(night[0]) / "titles.parquet").to_pylist()
    now = {row["show_key"]: row["split"] for row in table}
    assert {row["show_key"]: row["first_airing"] for row in table}[show] == START + LATE
    assert then["midnight verdict"] == now["midnight verdict"] == "next_period"
    assert now[show] == "train"
