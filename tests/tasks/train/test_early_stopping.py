"""Early stopping: the last epoch and the restored epoch."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from storage.formats.corpus import open_corpus
from tasks.encoder.bag import LAYER
from tasks.optimizers import SGD
from tasks.train import early_stopping
from tasks.train.checkpoint import Checkpointer
from tasks.train.early_stopping import effective_rank, mean_cosine
from tasks.train.loop import Diverged, Training
from tests.tasks.train.training import same_bits, tensors, trained
from tests.worlds import TRAINING


def test_the_best_epoch_is_restored(toy_corpus: Path):
    """Readings are made up: the second of four epochs is the best."""
    training = Training(toy_corpus, replace(TRAINING, patience=4, tuning_share=0.1))
    scores = iter([0.5, 0.9, 0.6, 0.7])
    training.tuning_set.score = lambda learner: {"mean_cosine": 0.0, "tuning_score": next(scores)}
    best = {}
    for progress in training.run():
        if progress.step == 2:
            best = {name: tensor.clone() for name, tensor in tensors(training).items()}
    assert [epoch["tuning_score"] for epoch in training.history] == [0.5, 0.9, 0.6, 0.7]
    assert training.position.best == 2 and training.position.epoch == 4
    assert all(torch.equal(tensor, best[name]) for name, tensor in tensors(training).items())


def test_training_ends_if_the_tuning_score_does_not_improve(toy_corpus: Path, tmp_path: Path):
    training = Training(toy_corpus, replace(TRAINING, epochs=9, patience=2, tuning_share=0.1))
    scores = iter([0.5, 0.9, 0.9, 0.8])
    training.tuning_set.score = lambda learner: {"mean_cosine": 0.0, "tuning_score": next(scores)}
    told = list(training.run(Checkpointer(tmp_path)))
    assert [progress.step for progress in told] == [1, 2, 3, 4]
    assert [progress.note for progress in told] == [
        "",
        "",
        "",
        "no better tuning score for 2 epochs; epoch 2 is kept",
    ]
    again = Training(toy_corpus, replace(TRAINING, epochs=9, patience=2, tuning_share=0.1))
    again.resume(Checkpointer(tmp_path))
    assert list(again.run(Checkpointer(tmp_path))) == [] and same_bits(
        training, again
    )  # it has ended, and still knows which was best


def test_tuning_titles_are_not_trained_on(toy_corpus: Path):
    settings = replace(TRAINING, patience=4, tuning_share=0.2)
    training = Training(toy_corpus, settings)
    corpus = open_corpus(toy_corpus)
    aside = np.load(toy_corpus / "family_hash.npy") < 0.2
    assert 0 < np.sum(aside[corpus.training]) < len(corpus.training) / 2
    np.testing.assert_array_equal(training.tuning_set.training, corpus.training[~aside[corpus.training]])
    _, batches = training.loader.epoch(0)
    assert sum(len(batch.bags.offsets) - 1 for batch in batches) == len(training.tuning_set.training)
    last = [progress.metrics["tuning_score"] for progress in training.run()][-1]
    assert last > 0.9  # three categories, told apart by words


def test_the_size_of_blocks_does_not_change_the_score(toy_corpus: Path, monkeypatch):
    training = Training(toy_corpus, replace(TRAINING, epochs=1, patience=4, tuning_share=0.2))
    list(training.run())
    score = training.tuning_set.score(training.trainer)["tuning_score"]
    monkeypatch.setattr(early_stopping, "_BLOCK_TITLES", 7)
    assert (
        training.tuning_set.score(training.trainer)["tuning_score"]
        == score
        == training.history[0]["tuning_score"]
    )


def test_collapsed_vectors_end_the_run(toy_corpus: Path):
    training = Training(toy_corpus, TRAINING)
    epochs = training.run()
    next(epochs)
    first = training.table.rows.clone()
    training.table.rows[:] = torch.ones(TRAINING.dim) + 0.01 * training.table.rows
    training.trainer.dense.parameters[LAYER].detach().zero_()
    training.trainer.step = lambda batch, factor: torch.tensor(0.1)
    assert re.match(
        r"the vectors have collapsed \(mean cosine 1\.00.*in epoch 2; "
        r"lower train\.optimizer\.learning_rate \(now 0\.07\); epoch 1 is kept",
        next(epochs).note,
    )
    assert list(epochs) == [] and torch.equal(training.table.rows, first)


def test_a_loss_that_grows_ends_the_run(toy_corpus: Path):
    training = Training(toy_corpus, TRAINING)
    losses = iter([1.0] * len(list(training.loader.epoch(0)[1])) + [1.6] * 99)
    training.trainer.touched[:] = True
    training.trainer.step = lambda batch, factor: torch.tensor(next(losses))
    assert [progress.note[:44] for progress in training.run()] == [
        "",
        "the loss rose from 1.0000 to 1.6000 in epoch",
    ]


def test_non_finite_numbers_end_the_run_and_the_best_epoch_is_restored(toy_corpus: Path):
    training = Training(toy_corpus, replace(TRAINING, optimizer=SGD(learning_rate=5.0)))
    epochs = training.run()
    next(epochs)
    first = training.table.rows.clone()
    training.table.rows[:] = torch.nan
    told = list(epochs)
    assert re.search(
        r"^non-finite gradient for .* in step \d+ \(epoch 2\); the step changed nothing.*"
        r" Lower train\.optimizer\.learning_rate \(now 5\).*; epoch 1 is kept$",
        told[0].note,
    )
    assert torch.equal(training.table.rows, first) and len(training.history) == 1


def test_an_extreme_learning_rate_diverges(toy_corpus: Path):
    with pytest.raises(Diverged, match=r"non-finite gradient for .* in step"):
        trained(toy_corpus, optimizer=SGD(learning_rate=1e39))


def test_mean_cosine_and_effective_rank():
    assert mean_cosine(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])) == pytest.approx(1 / 3)
    assert mean_cosine(torch.ones(1, 2)) == 0
    assert effective_rank(torch.eye(4)) == pytest.approx(4)
    assert effective_rank(torch.ones(5, 3)) == pytest.approx(1, abs=1e-3)
    assert effective_rank(torch.tensor([[2.0, 0.0], [0.0, 1.0]])) == pytest.approx(
        3 / 2 ** (2 / 3)
    )  # shares 2/3 and 1/3
    assert effective_rank(torch.zeros(3, 2)) == 0
