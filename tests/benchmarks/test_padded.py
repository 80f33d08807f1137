"""The padded form holds what the ragged one holds."""

from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.training.padded import PaddedTitles, pad
from storage.arrays import Ragged
from storage.formats.corpus import open_corpus
from tasks.encoder.bags import Bagger


def test_a_rectangle_of_three_titles():
    made = pad(Ragged.from_rows([[5, 6, 7], [], [9]]))
    assert made.ids.tolist() == [[5, 6, 7], [0, 0, 0], [9, 0, 0]] and made.lengths.tolist() == [3, 0, 1]
    assert made.mask.tolist() == [[True] * 3, [False] * 3, [True, False, False]]
    assert (made.ids.dtype, made.lengths.dtype) == (torch.int32, torch.int64)


@pytest.mark.parametrize("rows", [[], [[]], [[], []], [[3]]], ids=str)
def test_little_or_nothing(rows: list[list[int]]):
    made = pad(Ragged.from_rows(rows))
    assert (
        made.ids.shape == (len(rows), max(map(len, rows), default=0))
        and [list(row) for row in made.ragged()] == rows
    )


def test_there_and_back(toy_corpus: Path):
    tokens = open_corpus(toy_corpus).tokens.take(np.array([4, 200, 4, 17, 99, 0]))
    made = pad(tokens, (3, 2))
    assert made.ids.shape[:2] == made.lengths.shape == (3, 2)
    assert np.array_equal(made.ragged().offsets, tokens.offsets) and np.array_equal(
        made.ragged().values, tokens.values
    )


def test_sums_of_rows_equal_those_of_the_ragged_form(toy_corpus: Path):
    """Sum and mean over each title, in whole numbers, where no order of addition can show."""
    corpus = open_corpus(toy_corpus)
    rows = np.arange(0, len(corpus), 3)
    table = torch.from_numpy(np.random.default_rng(1).integers(-9, 9, (len(corpus.kinds), 8))).double()
    padded, bags = PaddedTitles(toy_corpus)[rows], Bagger(corpus.kinds).bags(corpus.tokens.take(rows))
    by_rectangle = (table[padded.ids.long()] * padded.mask.unsqueeze(-1)).sum(1)
    by_bag = torch.zeros(len(rows), 8, dtype=torch.float64).index_add(
        0, bags.titles, table[bags.ids[bags.tokens]]
    )
    assert torch.equal(by_rectangle, by_bag) and by_bag.abs().sum() > 0
    assert torch.equal(padded.lengths, bags.offsets.diff())
