"""The training loop on a toy world: the same bits for one seed, across a resume and whatever loads the batches."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from tasks.neighbours.similarity import top_neighbours
from tasks.preprocess.bags import Bagger
from tasks.preprocess.corpus import open_corpus
from tasks.train.loop import Diverged, Training, choose_device
from tasks.train.objectives import LeaveOneOutHinge
from tasks.train.rules import SGD, Adagrad, Adam, RowwiseAdagrad, Rule
from tests.worlds import TRAINING


def trained(corpus: Path, **changes) -> Training:
    training = Training(corpus, replace(TRAINING, **changes))
    for _ in training.run():
        pass
    return training


def same_bits(first: Training, second: Training) -> bool:
    tensors, others = first.table.tensors(), second.table.tensors()
    return set(tensors) == set(others) and all(torch.equal(tensor, others[name]) for name, tensor in tensors.items()) and torch.equal(first.touched, second.touched)


def title_vectors(corpus: Path, training: Training) -> np.ndarray:
    opened = open_corpus(corpus)
    bags = Bagger(opened.kinds).bags(opened.tokens)
    return training.settings.encoder.encode(training.table.rows[bags.ids], bags).numpy()


def test_one_seed_gives_the_same_bits(toy_corpus: Path):
    first, second, other = trained(toy_corpus), trained(toy_corpus), trained(toy_corpus, seed=2)
    assert same_bits(first, second)
    assert [epoch["loss"] for epoch in first.history] == [epoch["loss"] for epoch in second.history]
    assert not same_bits(first, other)


@pytest.mark.parametrize("rule", [RowwiseAdagrad(), Adagrad(), Adam(), SGD()], ids=lambda rule: rule.name)
def test_a_resumed_run_is_the_uninterrupted_one(toy_corpus: Path, tmp_path: Path, rule: Rule):
    whole = trained(toy_corpus, rule=rule)
    stopped = Training(toy_corpus, replace(TRAINING, rule=rule))
    for progress in stopped.run():
        if progress.step == 2:
            break
    stopped.save(tmp_path / "run.safetensors")
    resumed = Training(toy_corpus, replace(TRAINING, rule=rule))
    resumed.load(tmp_path / "run.safetensors")
    assert (resumed.epoch, resumed.step) == (2, stopped.step)
    assert [progress.step for progress in resumed.run()] == [3, 4]
    assert same_bits(whole, resumed) and resumed.step == whole.step
    assert [epoch["loss"] for epoch in resumed.history] == [epoch["loss"] for epoch in whole.history]


@pytest.mark.slow
def test_workers_change_nothing(toy_corpus: Path):
    assert same_bits(trained(toy_corpus, epochs=2), trained(toy_corpus, epochs=2, workers=2))


def test_progress_counts_epochs(toy_corpus: Path):
    training = Training(toy_corpus, TRAINING)
    steps = [(progress.step, progress.total, progress.percent) for progress in training.run()]
    assert steps == [(1, 4, 25.0), (2, 4, 50.0), (3, 4, 75.0), (4, 4, 100.0)]
    assert list(training.run()) == []
    rates = [epoch["learning_rate"] for epoch in training.history]
    assert rates == pytest.approx([TRAINING.rule.learning_rate * share for share in (1, 0.75, 0.5, 0.25)])


@pytest.mark.parametrize("objective", [TRAINING.objective, LeaveOneOutHinge(pack=4, packs=24)], ids=lambda objective: objective.name)
def test_loss_falls_and_neighbours_are_of_the_same_category(toy_corpus: Path, objective):
    training = trained(toy_corpus, objective=objective, epochs=6)
    losses = [epoch["loss"] for epoch in training.history]
    assert losses[-1] < losses[0] / 2
    labels = pq.read_table(toy_corpus / "titles.parquet")["labels"].to_pylist()
    vectors = title_vectors(toy_corpus, training)
    ids, _ = top_neighbours(vectors, vectors, 5, exclude_self=True)
    agree = np.mean([labels[row] == labels[title] for title, own in enumerate(ids) for row in own])
    assert agree > 0.97  # a third by chance
    unseen = np.flatnonzero(open_corpus(toy_corpus).split == 1)
    assert len(unseen) and np.mean([labels[row] == labels[title] for title in unseen for row in ids[title]]) > 0.9


def test_only_rows_of_training_titles_are_touched(toy_corpus: Path):
    training = trained(toy_corpus, dropout=0.0, epochs=1)
    corpus = open_corpus(toy_corpus)
    seen = np.zeros(len(corpus.kinds), dtype=bool)
    seen[corpus.tokens.take(corpus.training).values] = True
    np.testing.assert_array_equal(training.touched.numpy(), seen)
    fresh = Training(toy_corpus, replace(TRAINING, epochs=1)).table.rows
    assert torch.equal(training.table.rows[~training.touched], fresh[~training.touched])


@pytest.mark.parametrize("rule", [SGD(learning_rate=0.5), Adagrad(), Adam(), RowwiseAdagrad()], ids=lambda rule: rule.name)
def test_inverse_frequency_weights_move_rare_rows_further(toy_corpus: Path, tmp_path: Path, rule: Rule):
    """One step on the same batch, once with weights and once without: each row moves exactly its weight times as far."""
    plain_corpus = tmp_path / "plain"
    plain_corpus.mkdir()
    for file in toy_corpus.iterdir():
        (plain_corpus / file.name).symlink_to(file)
    weights = np.load(toy_corpus / "weights.npy")
    (plain_corpus / "weights.npy").unlink()
    np.save(plain_corpus / "weights.npy", np.ones_like(weights))
    moved = {}
    for name, corpus in (("weighted", toy_corpus), ("plain", plain_corpus)):
        training = Training(corpus, replace(TRAINING, rule=rule, dropout=0.0))
        before = training.table.rows.clone()
        _, batches = training.loader.epoch(0)
        training._step(next(iter(batches)), rule.learning_rate)
        moved[name] = (training.table.rows - before).norm(dim=1).numpy()
    stepped = moved["plain"] > 1e-4
    assert stepped.sum() > 100
    np.testing.assert_allclose(moved["weighted"][stepped] / moved["plain"][stepped], weights[stepped], rtol=2e-2)
    frequency = np.bincount(open_corpus(toy_corpus).tokens.values, minlength=len(weights))
    rare, common = frequency <= np.quantile(frequency, 0.2), frequency >= np.quantile(frequency, 0.95)
    assert weights[rare].min() > 1 > weights[common].max()


def test_a_checkpoint_holds_rows_state_and_history(toy_corpus: Path, tmp_path: Path):
    training = trained(toy_corpus, epochs=1)
    training.save(tmp_path / "run.safetensors")
    assert [file.name for file in tmp_path.iterdir()] == ["run.safetensors"]  # no temporary file is left
    again = Training(toy_corpus, replace(TRAINING, epochs=1))
    again.load(tmp_path / "run.safetensors")
    assert same_bits(training, again) and again.history == json.loads(json.dumps(training.history))


@pytest.mark.parametrize("changes", [{"dim": 8}, {"rule": Adam()}, {"rule": SGD()}, {"rule": Adagrad()}], ids=str)
def test_a_checkpoint_of_other_settings_is_refused(toy_corpus: Path, tmp_path: Path, changes: dict):
    trained(toy_corpus, epochs=1).save(tmp_path / "run.safetensors")
    other = Training(toy_corpus, replace(TRAINING, **changes))
    with pytest.raises(ValueError, match=r"run\.safetensors holds .*this run needs .*made with other settings"):
        other.load(tmp_path / "run.safetensors")
    assert other.epoch == 0


def test_divergence_is_named_and_leaves_the_last_good_epoch(toy_corpus: Path, tmp_path: Path):
    training = Training(toy_corpus, replace(TRAINING, rule=SGD()))
    epochs = training.run()
    next(epochs)
    training.save(tmp_path / "run.safetensors")
    training.table.rows[:] = torch.nan
    with pytest.raises(Diverged, match=r"the loss is nan in epoch 2; lower train\.rule\.learning_rate \(now 5\)"):
        next(epochs)
    again = Training(toy_corpus, replace(TRAINING, rule=SGD()))
    again.load(tmp_path / "run.safetensors")
    assert again.epoch == 1 and again.table.rows.isfinite().all() and math.isfinite(again.history[0]["loss"])


def test_steps_beyond_all_numbers_diverge(toy_corpus: Path):
    with pytest.raises(Diverged, match="the loss is nan"):
        trained(toy_corpus, rule=SGD(learning_rate=1e39))


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
@pytest.mark.parametrize("name", ["cuda", "cuda:1"])
def test_a_missing_gpu_is_said(toy_corpus: Path, name: str):
    with pytest.raises(ValueError, match=rf"train\.device is '{name}', but torch sees no CUDA device here; use 'auto' or 'cpu'"):
        Training(toy_corpus, replace(TRAINING, device=name))
    assert choose_device("auto") == torch.device("cpu")


def test_an_unknown_device_is_said():
    with pytest.raises(ValueError, match=r"device is 'gpu'; it can be 'auto', 'cpu', 'cuda' or 'cuda:N'"):
        choose_device("gpu")


def test_two_titles_are_needed(toy_corpus: Path, tmp_path: Path):
    for file in toy_corpus.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "split.npy").unlink()
    np.save(tmp_path / "split.npy", np.full(len(np.load(toy_corpus / "split.npy")), 4, dtype=np.int8))
    with pytest.raises(ValueError, match="0 labelled training titles; two or more are needed"):
        Training(tmp_path, TRAINING)
