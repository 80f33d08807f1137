"""Orders: which titles an epoch uses, in which batches."""

from types import SimpleNamespace

import numpy as np
import pytest

from storage.arrays import Ragged
from tasks.loading.orders import ByGroup, ByRarity, Sequential, Shuffled, Subset

# 40 titles: title i has i % 7 tokens; 36 carry label 0, titles 0, 10, 20 and 30 carry label 1 too.
CORPUS = SimpleNamespace(
    tokens=Ragged.from_rows([[0] * (row % 7) for row in range(40)]),
    labels=Ragged.from_rows([[0, 1] if row % 10 == 0 else [0] for row in range(40)]),
)
ROWS = np.arange(1, 40)


def batches(order, seed: int = 1) -> list[list[int]]:
    return [batch.tolist() for batch in order.batches(ROWS, CORPUS, np.random.default_rng(seed))]


@pytest.mark.parametrize(
    "order",
    [ByGroup(), Sequential(batch_size=10), Shuffled(batch_size=10)],
    ids=lambda order: order.name,
)
def test_every_title_once(order):
    assert sorted(row for batch in batches(order) for row in batch) == ROWS.tolist()


@pytest.mark.parametrize(
    "order",
    [Shuffled(batch_size=10), Subset(), ByRarity()],
    ids=lambda order: order.name,
)
def test_chance_is_the_generators(order):
    assert batches(order) == batches(order) != batches(order, seed=2)


def test_portions_are_of_the_size_asked_for():
    assert batches(Sequential(batch_size=10)) == [
        list(range(1, 11)),
        list(range(11, 21)),
        list(range(21, 31)),
        list(range(31, 40)),
    ]
    assert batches(ByGroup()) == [ROWS.tolist()]


def test_a_subset_holds_its_share_once():
    (drawn,) = batches(Subset(fraction=0.4))
    assert len(drawn) == len(set(drawn)) == 16 and drawn == sorted(drawn)
    assert len(batches(Subset(fraction=0.001))[0]) == 2


def test_rare_labels_come_first():
    def shown(exponent: float) -> np.ndarray:
        counts = np.zeros(40)
        for seed in range(400):
            (drawn,) = batches(ByRarity(fraction=0.2, exponent=exponent), seed)
            assert len(set(drawn)) == 8
            counts[drawn] += 1
        return counts / 400

    rare = np.array([10, 20, 30])
    assert abs(shown(0.0)[rare].mean() - 8 / 39) < 0.04
    assert shown(1.0)[rare].mean() > 0.8 > 0.25 > np.delete(shown(1.0), [0, *rare]).mean()
