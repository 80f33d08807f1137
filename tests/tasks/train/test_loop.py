"""The training loop on a toy world: the same bits for one seed, across a resume and whatever loads the
batches."""

import math
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from storage.formats.corpus import open_corpus
from tasks.encoder.bag import LAYER
from tasks.neighbours.similarity import top_neighbours
from tasks.optimizers import SGD, Adagrad, Adam, Momentum, Optimizer, RowwiseAdagrad
from tasks.optimizers.parameter_groups import ParameterGroup
from tasks.optimizers.schedules import Constant, Cosine
from tasks.optimizers.tuners import YellowFin
from tasks.train.loop import Diverged, Training, choose_device
from tasks.train.objectives import Label, LeaveOneOutHinge, LeaveOneOutSoftmax
from tests.tasks.train.training import same_bits, tensors, title_vectors, trained
from tests.worlds import TRAINING


def test_progress_counts_epochs(toy_corpus: Path):
    training = Training(toy_corpus, TRAINING)
    steps = [(progress.step, progress.total, progress.percent) for progress in training.run()]
    assert steps == [(1, 4, 25.0), (2, 4, 50.0), (3, 4, 75.0), (4, 4, 100.0)]
    assert list(training.run()) == []
    last = 1 / training.trainer.steps  # the factor of the last step of the run
    rates = [epoch["learning_rate"] for epoch in training.history]
    assert rates == pytest.approx(
        [TRAINING.optimizer.learning_rate * (share + last) for share in (0.75, 0.5, 0.25, 0)]
    )


@pytest.mark.parametrize(
    "objective",
    [TRAINING.objective, LeaveOneOutHinge(pack=4, packs=24), Label(batch_size=48)],
    ids=lambda objective: objective.name,
)
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
    assert (
        len(unseen)
        and np.mean([labels[row] == labels[title] for title in unseen for row in ids[title]]) > 0.9
    )


def test_only_rows_of_training_titles_are_touched(toy_corpus: Path):
    training = trained(toy_corpus, dropout=0.0, epochs=1)
    corpus = open_corpus(toy_corpus)
    seen = np.zeros(len(corpus.kinds), dtype=bool)
    seen[corpus.tokens.take(corpus.training).values] = True
    np.testing.assert_array_equal(training.trainer.touched.numpy(), seen)
    fresh = Training(toy_corpus, replace(TRAINING, epochs=1)).table.rows
    assert torch.equal(training.table.rows[~training.trainer.touched], fresh[~training.trainer.touched])


@pytest.mark.parametrize(
    "optimizer",
    [SGD(learning_rate=0.5), Adagrad(), Adam(), RowwiseAdagrad()],
    ids=lambda optimizer: optimizer.name,
)
def test_inverse_frequency_weights_move_rare_rows_further(
    toy_corpus: Path, tmp_path: Path, optimizer: Optimizer
):
    """One step on the same batch, once with weights and once without: each row moves exactly its weight times
    as far."""
    plain_corpus = tmp_path / "plain"
    plain_corpus.mkdir()
    for file in toy_corpus.iterdir():
        (plain_corpus / file.name).symlink_to(file)
    weights = np.load(toy_corpus / "weights.npy")
    (plain_corpus / "weights.npy").unlink()
    np.save(plain_corpus / "weights.npy", np.ones_like(weights))
    moved = {}
    for name, corpus in (("weighted", toy_corpus), ("plain", plain_corpus)):
        training = Training(corpus, replace(TRAINING, optimizer=optimizer, dropout=0.0))
        before = training.table.rows.clone()
        _, batches = training.loader.epoch(0)
        training.trainer.step(next(iter(batches)), 1.0)
        moved[name] = (training.table.rows - before).norm(dim=1).numpy()
    stepped = moved["plain"] > 1e-4
    assert stepped.sum() > 100
    np.testing.assert_allclose(
        moved["weighted"][stepped] / moved["plain"][stepped], weights[stepped], rtol=2e-2
    )
    frequency = np.bincount(open_corpus(toy_corpus).tokens.values, minlength=len(weights))
    rare, common = frequency <= np.quantile(frequency, 0.2), frequency >= np.quantile(frequency, 0.95)
    assert weights[rare].min() > 1 > weights[common].max()


def test_bfloat16_learns_too_and_rows_stay_float32(toy_corpus: Path):
    plain, half = trained(toy_corpus), trained(toy_corpus, precision="bfloat16")
    assert not same_bits(plain, half) and half.table.rows.dtype == torch.float32
    assert half.history[-1]["loss"] == pytest.approx(plain.history[-1]["loss"], rel=0.05)
    assert same_bits(plain, trained(toy_corpus, precision="auto")) or torch.cuda.is_available()


@dataclass(frozen=True)
class Spoilt(LeaveOneOutSoftmax):
    """Trainer whose loss becomes NaN in the second step because of one title."""

    calls: list = field(default_factory=list)

    def loss(self, vectors, *facts):
        self.calls.append(1)
        loss = super().loss(vectors, *facts)
        return loss + (vectors[0] * torch.nan).sum() if len(self.calls) == 2 else loss


@pytest.mark.parametrize("named", [True, False])
def test_a_non_finite_gradient_is_an_error_that_names_its_tokens(
    toy_corpus: Path, tmp_path: Path, named: bool
):
    for file in toy_corpus.iterdir():
        if named or file.name != "token_names.parquet":
            (tmp_path / file.name).symlink_to(file)
    settings = replace(TRAINING, objective=Spoilt(pack=4, packs=24), dropout=0.0)
    training = Training(tmp_path, settings)
    _, batches = training.loader.epoch(0)
    first, second, *_ = batches
    training.trainer.step(first, 1.0)
    before = {name: tensor.clone() for name, tensor in tensors(training).items()}
    training.loader.epoch = lambda epoch, first: (2, iter([second]))
    with pytest.raises(Diverged, match=r"in step 2 \(epoch 1\); the step changed nothing") as caught:
        list(training.run())
    assert all(
        torch.equal(tensor, before[name]) for name, tensor in tensors(training).items() if name != "touched"
    )
    guilty = set(second.bags.ids[second.bags.tokens[second.bags.entry_titles == 0]].tolist())
    table = pq.read_table(toy_corpus / "token_names.parquet")
    words = [
        f"the {table['kind'][token].as_py()} {table['token'][token].as_py()!r} (token {token})"
        if named
        else f"token {token}"
        for token in sorted(guilty)
    ]
    said = str(caught.value)
    assert ", ".join(words[:3]) in said and f"{len(guilty) - 3} others" in said


def test_the_schedule_and_the_warm_up_set_the_rate_of_each_step(toy_corpus: Path):
    training = Training(toy_corpus, replace(TRAINING, schedule=Cosine(), warm_up=0.25))
    factors = []
    training.trainer.step = lambda batch, factor: factors.append(factor) or torch.tensor(0.0)
    list(training.run())
    steps = len(factors)
    cosine = [(1 + math.cos(math.pi * number / steps)) / 2 for number in range(steps)]
    assert steps % 4 == 0 and factors == pytest.approx(
        [wanted * min(1, (number + 1) / (steps / 4)) for number, wanted in enumerate(cosine)]
    )
    last = factors[steps // 4 - 1 :: steps // 4]  # of each epoch
    assert [epoch["learning_rate"] for epoch in training.history] == pytest.approx(
        [TRAINING.optimizer.learning_rate * factor for factor in last]
    )


def test_the_reported_rate_is_that_of_the_tuner(toy_corpus: Path):
    training = trained(toy_corpus, optimizer=Momentum(), tuner=YellowFin(), schedule=Constant(), epochs=2)
    rates = [epoch["learning_rate"] for epoch in training.history]
    assert rates[1] == training.trainer.groups.learning_rate != rates[0] != Momentum().learning_rate


def test_a_parameter_group_may_update_the_table(toy_corpus: Path):
    grouped = trained(
        toy_corpus,
        epochs=1,
        optimizer=Adam(),
        groups=tuple(ParameterGroup(pattern=name, optimizer=SGD()) for name in ("row*", LAYER)),
    )
    plain = trained(toy_corpus, epochs=1, optimizer=SGD(), groups=())
    assert torch.equal(grouped.table.rows, plain.table.rows) and not grouped.table.state


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
@pytest.mark.parametrize("name", ["cuda", "cuda:1"])
def test_a_missing_gpu_is_an_error(toy_corpus: Path, name: str):
    with pytest.raises(
        ValueError,
        match=rf"train\.device is '{name}', but torch finds no CUDA device; use 'auto' or 'cpu'",
    ):
        Training(toy_corpus, replace(TRAINING, device=name))
    assert choose_device("auto") == torch.device("cpu")


def test_an_unknown_device_is_an_error():
    with pytest.raises(ValueError, match=r"device is 'gpu'; expected 'auto', 'cpu', 'cuda' or 'cuda:N'"):
        choose_device("gpu")


def test_two_titles_are_needed(toy_corpus: Path, tmp_path: Path):
    for file in toy_corpus.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "split.npy").unlink()
    np.save(tmp_path / "split.npy", np.full(len(np.load(toy_corpus / "split.npy")), 4, dtype=np.int8))
    with pytest.raises(ValueError, match="0 labelled training titles; at least two are needed"):
        Training(tmp_path, TRAINING)
