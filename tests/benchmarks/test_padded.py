"""The padded form holds what the ragged one holds."""

from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.training.padded import PaddedTitles, pad
from storage.arrays import Ragged
from storage.formats.corpus import open_corpus
from tasks.encoder.bags import Bagger


@pytest.mark.parametrize(
    ("rows", "ids"),
    [
        ([[5, 6, 7], [], [9]], [[5, 6, 7], [0, 0, 0], [9, 0, 0]]),
        ([[3]], [[3]]),
        ([[], []], [[], []]),
        ([], []),
    ],
    ids=str,
)
def test_rows_are_padded_to_the_longest(rows: list[list[int]], ids: list[list[int]]):
    padded = pad(Ragged.from_rows(rows))
    assert padded.ids.tolist() == ids and padded.lengths.tolist() == [*map(len, rows)]


def test_sums_of_rows_equal_those_of_the_ragged_form(toy_corpus: Path):
    """Sums over each title, in integers, so that the order of addition does not matter."""
    corpus = open_corpus(toy_corpus)
    rows = np.arange(0, len(corpus), 3)
    table = torch.from_numpy(np.random.default_rng(1).integers(-9, 9, (len(corpus.kinds), 8))).double()
    padded, bags = PaddedTitles(toy_corpus)[rows], Bagger(corpus.kinds).bags(corpus.tokens.take(rows))
    mask = torch.arange(padded.ids.shape[1]) < padded.lengths.unsqueeze(-1)
    by_rectangle = (table[padded.ids.long()] * mask.unsqueeze(-1)).sum(1)
    by_bag = torch.zeros(len(rows), 8, dtype=torch.float64)
    by_bag = by_bag.index_add(0, bags.entry_titles, table[bags.ids[bags.tokens]])
    assert torch.equal(by_rectangle, by_bag) and by_bag.abs().sum() > 0
