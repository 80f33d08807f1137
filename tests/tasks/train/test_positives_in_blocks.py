"""Positives are drawn in blocks of titles: memory for a block, and the same positives."""

import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from storage.arrays import BLOCK_ROWS, Ragged, unit_rows
from storage.formats.corpus import open_corpus
from tasks.train.objectives.positives import Tags, nearest_of_class


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [4, 8])
def test_positives_need_no_matrix_of_all_titles_and_labels(toy_corpus: Path, blocks: int):
    titles, labels, rng = blocks * BLOCK_ROWS, 400, np.random.default_rng(1)
    label_ids = np.repeat(rng.integers(labels - 1, size=titles, dtype=np.int32), 2)
    label_ids[1::2] += 1
    corpus = replace(
        open_corpus(toy_corpus),
        labels=Ragged(np.arange(0, 2 * titles + 1, 2), label_ids),
        label_names=[str(label) for label in range(labels)],
        split=np.zeros(titles, dtype=np.int8),
    )
    tracemalloc.start()
    Tags().draw(corpus, {})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * labels * BLOCK_ROWS + 40 * titles  # 450 bytes per title with a matrix of all


def test_nearest_in_blocks_are_the_same(monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(2)
    vectors, labels = (
        unit_rows(rng.normal(size=(300, 4)).astype(np.float32)),
        [rng.permutation(5)[:2] for _ in range(300)],
    )
    expected = nearest_of_class(vectors, Ragged.from_rows(labels), 7)
    monkeypatch.setattr("storage.arrays.BLOCK_ROWS", 11)
    assert expected.dtype == np.int32
    np.testing.assert_array_equal(nearest_of_class(vectors, Ragged.from_rows(labels), 7), expected)
