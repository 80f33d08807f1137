"""Orders: which titles an epoch shows, and in which company."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from storage.arrays import Ragged
from tasks.preprocess.orders import ByGroup, ByLength, ByRarity, Sequential, Shuffled, Subset

# 40 titles: title i has i % 7 tokens; 36 carry label 0, titles 0, 10, 20 and 30 carry label 1 too.
CORPUS = SimpleNamespace(tokens=Ragged.from_rows([[0] * (row % 7) for row in range(40)]), labels=Ragged.from_rows([[0, 1] if row % 10 == 0 else [0] for row in range(40)]))
ROWS = np.arange(1, 40)


def portions(order, seed: int = 1) -> list[list[int]]:
    return [portion.tolist() for portion in order.portions(ROWS, CORPUS, np.random.default_rng(seed))]


@pytest.mark.parametrize("order", [ByGroup(), Sequential(block=10), Shuffled(portion=10), ByLength(alike=10)], ids=lambda order: order.name)
def test_every_title_once(order):
    assert sorted(row for portion in portions(order) for row in portion) == ROWS.tolist()


@pytest.mark.parametrize("order", [Shuffled(portion=10), Subset(), ByRarity(), ByLength(alike=10)], ids=lambda order: order.name)
def test_chance_is_the_generators(order):
    assert portions(order) == portions(order) != portions(order, seed=2)


def test_portions_are_of_the_size_asked_for():
    assert portions(Sequential(block=10)) == [list(range(1, 11)), list(range(11, 21)), list(range(21, 31)), list(range(31, 40))]
    assert sorted(len(portion) for portion in portions(ByLength(alike=10))) == [9, 10, 10, 10]
    assert portions(ByGroup()) == [ROWS.tolist()]


def test_a_subset_holds_its_share_once():
    (drawn,) = portions(Subset(part=0.4))
    assert len(drawn) == len(set(drawn)) == 16 and drawn == sorted(drawn)
    assert len(portions(Subset(part=0.001))[0]) == 2


def test_lengths_stand_together():
    spans = [sorted(row % 7 for row in portion) for portion in portions(ByLength(alike=10))]
    spans.sort()
    assert all(before[-1] <= after[0] for before, after in itertools.pairwise(spans))


def test_rare_labels_come_first():
    def shown(exponent: float) -> np.ndarray:
        counts = np.zeros(40)
        for seed in range(400):
            (drawn,) = portions(ByRarity(share=0.2, exponent=exponent), seed)
            assert len(set(drawn)) == 8
            counts[drawn] += 1
        return counts / 400

    rare = np.array([10, 20, 30])
    assert abs(shown(0.0)[rare].mean() - 8 / 39) < 0.04
    assert shown(1.0)[rare].mean() > 0.8 > 0.25 > np.delete(shown(1.0), [0, *rare]).mean()
