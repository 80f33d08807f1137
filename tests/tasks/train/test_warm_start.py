"""A night that starts from another night's rows: what is carried, what is fresh, and when it must start cold."""

import inspect
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from prefect.logging import disable_run_logger
from safetensors.torch import load_file

from storage.artifacts import Checkpoint, Corpus, Scores
from storage.workspace import Workspace
from tasks.preprocess.settings import PreprocessSettings
from tasks.preprocess.task import preprocess
from tasks.tokenize.settings import TokenizeSettings
from tasks.tokenize.splits import SplitSettings
from tasks.tokenize.task import ancestor_of, tokenize
from tasks.train.checkpoint import KeptOnDisk, write_checkpoint
from tasks.train.loop import Training
from tasks.train.objectives import Label
from tasks.train.rules import Adam
from tasks.train.settings import TrainSettings
from tasks.train.task import start_of, train
from tasks.train.warm_start import begin, title_hashes, write_memory
from tests.worlds import START, Programme, programmes, publish_guide

SETTINGS = TrainSettings(dim=8, epochs=3, threads=1, objective=Label(batch=32), rule=Adam(), per_row_steps=True, warm_start=True, warm_epochs=2)
NOTHING_HELD_OUT = TokenizeSettings(splits=SplitSettings(share=1e-9, shortest_span_days=1000.0), compact_at=1.0)
ALL_LABELS = PreprocessSettings(minimum_titles=3, minimum_training_titles=3, largest_share=1.0)
NEWS = [Programme(f"Bulletin {word} {number}", ("Anews",)) for number, word in enumerate(["zebra", "okapi", "bongo", "kudu"] * 12)]


def make_night(home: Path, rows: list[Programme], tokenizing: TokenizeSettings = NOTHING_HELD_OUT) -> Corpus:
    """The Corpus of a night, its tokens under the ids of the night before."""
    guide = publish_guide(home, rows)
    with disable_run_logger():
        vocabulary = tokenize.fn(str(home), guide, tokenizing, ancestor_of(str(home), guide, tokenizing))
        return preprocess.fn(str(home), guide, vocabulary, tokenizing, ALL_LABELS)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Corpus]]:
    """A home of three nights: without football's last titles, of other titles too and with a label more, and with ids sorted anew."""
    home = tmp_path_factory.mktemp("nights") / "home"
    rows, more = programmes(30), programmes(30)[:150] + NEWS
    return home, [make_night(home, rows[20:]), make_night(home, more), make_night(home, more + rows[150:170], replace(NOTHING_HELD_OUT, compact_at=1e-6))]


@pytest.fixture
def nights(made: tuple[Path, list[Corpus]], tmp_path: Path) -> list[Corpus]:
    """The same in this test's own folder."""
    shutil.copytree(made[0], tmp_path, dirs_exist_ok=True)
    return made[1]


@pytest.fixture
def trained(tmp_path: Path, without_run: Callable):
    """Trains a night as the flow does, and lets it be scored."""

    def run(corpus: Corpus, settings: TrainSettings = SETTINGS, *, scored: bool = True) -> Checkpoint:
        checkpoint = without_run(train, str(tmp_path), corpus, settings, None, start_of(str(tmp_path), corpus, settings))
        if scored:
            with Workspace(tmp_path).publishing(Scores, checkpoint.digest[:8]) as draft:
                draft.details["checkpoint"] = checkpoint.digest
        return checkpoint

    return run


def details(home: Path, checkpoint: Checkpoint) -> dict:
    return Workspace(home).details(checkpoint)


def remember(folder: Path, training: Training) -> Path:
    """Writes a checkpoint folder as the task does."""
    folder.mkdir(exist_ok=True)
    write_checkpoint(folder / "checkpoint.safetensors", training.learner, training.position)
    write_memory(folder, training)
    return folder


def tensors(training: Training) -> dict[str, torch.Tensor]:
    return {name: torch.cat(list(part.pieces())) for name, part in training.learner.parts().items()}


def token_ids(folder: Path) -> dict[tuple[str, str], int]:
    table = pq.read_table(folder / "token_names.parquet")
    return {pair: number for number, pair in enumerate(zip(table["kind"].to_pylist(), table["token"].to_pylist(), strict=True))}


def label_ids(folder: Path) -> dict[str, int]:
    return {name: number for number, name in enumerate(json.loads((folder / "label_names.json").read_text()))}


@pytest.mark.parametrize("night", [1, 2], ids=["ids appended", "ids sorted anew"])
def test_known_rows_are_carried_bit_for_bit_and_new_ones_are_fresh(tmp_path: Path, nights: list[Corpus], trained: Callable, night: int):
    checkpoint = trained(nights[0])
    before, second = tmp_path / checkpoint.path, tmp_path / nights[night].path
    training, started = begin(second, SETTINGS, before)
    assert started.warm and training.settings.epochs == SETTINGS.warm_epochs
    old, warm, cold = load_file(before / "checkpoint.safetensors"), tensors(training), tensors(Training(second, SETTINGS))
    assert {"rows", "touched", "state.steps", "labels.rows", "labels.state.steps"} < warm.keys() == cold.keys() == old.keys()
    for names, ids_of, count in (
        ([name for name in warm if not name.startswith("labels.")], token_ids, training.learner.touched.numel()),
        ([name for name in warm if name.startswith("labels.")], label_ids, len(label_ids(second))),
    ):
        was, now = ids_of(before), ids_of(second)
        known = [key for key in now if key in was]
        new = [now[key] for key in now if key not in was]
        assert known and new and len(now) == count
        if ids_of is label_ids or night == 2:
            assert [was[key] for key in known] != [now[key] for key in known]  # numbers differ: names decide
        for name in names:
            assert torch.equal(warm[name][[now[key] for key in known]], old[name][[was[key] for key in known]]), name
            assert torch.equal(warm[name][new], cold[name][new]), name
    assert training.learner.steps == checkpoint.counts["steps"] > 0


def test_a_title_held_out_tonight_that_was_trained_on_makes_a_cold_start_and_is_counted(tmp_path: Path, trained: Callable):
    tokenizing = TokenizeSettings()
    rows = [Programme(row.title, row.categories, START + timedelta(minutes=30 * number)) for number, row in enumerate(programmes(30)[::2])]  # 45 hours: too short for a next_period
    first = trained(make_night(tmp_path, rows, tokenizing))
    earlier = [Programme(f"Archive kitchen {number}", ("Cookery",), START - timedelta(days=1)) for number in range(3)]
    corpus = make_night(tmp_path, rows + earlier, tokenizing)  # a day more: the last first airings are a next_period now
    titles = pq.read_table(tmp_path / corpus.path / "titles.parquet", columns=["split"])["split"].to_pylist()
    leaked, held = titles.count("next_period"), sum(split not in ("train", "placeholder") for split in titles)
    assert 0 < leaked < held
    second = trained(corpus)
    assert details(tmp_path, second)["ancestor"] == {"path": first.path, "digest": first.digest}
    assert details(tmp_path, second)["started"] == f"cold start: {Path(first.path).name} was trained on {leaked} of the {held} titles that are held out tonight"
    assert second.counts["epochs"] == SETTINGS.epochs
    cold = Training(tmp_path / corpus.path, SETTINGS)
    list(cold.run())
    saved = load_file(tmp_path / second.path / "checkpoint.safetensors")
    assert all(torch.equal(saved[name], tensor) for name, tensor in tensors(cold).items())


def test_titles_set_aside_count_as_held_out(tmp_path: Path, nights: list[Corpus]):
    corpus = tmp_path / nights[1].path
    before = remember(tmp_path / "before", Training(corpus, SETTINGS))
    assert begin(corpus, SETTINGS, before)[1].warm
    started = begin(corpus, replace(SETTINGS, patience=1), before)[1]
    aside = len(Training(corpus, replace(SETTINGS, patience=1)).held_out.aside)
    assert aside and not started.warm and f"was trained on {aside} of the " in started.words


def test_what_was_trained_on_is_handed_down(tmp_path: Path, nights: list[Corpus], trained: Callable):
    corpora = nights[:2]
    first, second = (trained(corpus) for corpus in corpora)
    assert details(tmp_path, second)["started"].startswith("warm start")
    shown = [title_hashes(tmp_path / corpus.path)[Training(tmp_path / corpus.path, SETTINGS).held_out.training] for corpus in corpora]
    assert np.setdiff1d(*shown).size and np.setdiff1d(*shown[::-1]).size
    np.testing.assert_array_equal(np.load(tmp_path / first.path / "trained_on.npy"), np.unique(shown[0]))
    np.testing.assert_array_equal(np.load(tmp_path / second.path / "trained_on.npy"), np.union1d(*shown))


def test_other_settings_and_missing_files_make_a_cold_start(tmp_path: Path, nights: list[Corpus]):
    corpus = tmp_path / nights[1].path
    before = remember(tmp_path / "before", Training(corpus, SETTINGS))
    assert "train.dim was 8, is 16" in begin(corpus, replace(SETTINGS, dim=16), before)[1].words
    assert begin(corpus, replace(SETTINGS, epochs=9, warm_epochs=1, warm_start=False), before)[1].warm
    (before / "trained_on.npy").unlink()
    training, started = begin(corpus, SETTINGS, before)
    assert (started.warm, started.words, training.settings) == (False, "before holds no trained_on.npy", SETTINGS)


def test_the_ancestor_is_the_newest_scored_checkpoint_of_another_corpus_and_the_same_lineage(tmp_path: Path, nights: list[Corpus], trained: Callable):
    home = str(tmp_path)
    monday, tuesday, wednesday = nights
    assert start_of(home, monday, SETTINGS) is None
    first = trained(monday)
    assert details(tmp_path, first)["started"].startswith("cold start: there is no scored checkpoint")
    trained(tuesday, scored=False)
    assert start_of(home, wednesday, SETTINGS) == first
    assert start_of(home, wednesday, replace(SETTINGS, warm_start=False)) is None
    other = make_night(tmp_path, programmes(30)[:140], replace(NOTHING_HELD_OUT, splits=replace(NOTHING_HELD_OUT.splits, salt="another")))
    assert start_of(home, other, SETTINGS) is None
    third = trained(wednesday)
    assert details(tmp_path, third)["ancestor"]["digest"] == first.digest and third.counts["epochs"] == SETTINGS.warm_epochs
    assert start_of(home, monday, SETTINGS) is None  # a repeated night starts as it did the first time


def test_an_unchanged_night_is_found_in_the_cache_whatever_came_after_it(tmp_path: Path, nights: list[Corpus], trained: Callable):
    home = str(tmp_path)

    def key(corpus: Corpus) -> str:
        bound = inspect.signature(train.fn).bind(home, corpus, SETTINGS, "who is told", start_of(home, corpus, SETTINGS))
        return train.cache_key_fn(None, bound.arguments).split("-")[0]

    published = [(corpus, key(corpus), trained(corpus).path) for corpus in nights]
    for corpus, before, path in published:
        assert key(corpus) == before == Path(path).name


def test_a_warm_run_that_was_killed_ends_with_the_bits_of_the_uninterrupted_one(tmp_path: Path, nights: list[Corpus]):
    settings = replace(SETTINGS, save_seconds=0.0)
    first = Training(tmp_path / nights[0].path, settings)
    list(first.run())
    before = remember(tmp_path / "before", first)
    corpus = tmp_path / nights[1].path
    whole, killed, again = (begin(corpus, settings, before)[0] for _ in range(3))
    list(whole.run())
    step, done = killed.learner.step, 0

    def counted(*arguments):
        nonlocal done
        if done == 3:
            raise KeyboardInterrupt
        done += 1
        return step(*arguments)

    killed.learner.step = counted
    with pytest.raises(KeyboardInterrupt):
        list(killed.run(KeptOnDisk(tmp_path / "kept")))
    again.resume(KeptOnDisk(tmp_path / "kept"))
    assert (again.position.epoch, again.position.batch) == divmod(3, whole.learner.steps // 2 - first.learner.steps // 2)
    list(again.run(KeptOnDisk(tmp_path / "kept")))
    assert again.position == whole.position and again.learner.steps == whole.learner.steps
    others = tensors(whole)
    assert all(torch.equal(tensor, others[name]) for name, tensor in tensors(again).items())
