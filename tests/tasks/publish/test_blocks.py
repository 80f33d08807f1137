"""What is read in blocks of titles does not depend on how large they are."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from storage import arrays
from storage.catalogue.titles import open_airings
from tasks.publish.map.layout import principal_plane

FEW = 7  # titles of a block; more than the toy world has are in one


def test_times_of_titles_are_the_same_read_in_blocks(toy, tmp_path: Path):
    home, guide, vocabulary, corpus = toy
    variants, count = home / vocabulary.path / "variants.parquet", corpus.counts["titles"]
    with open_airings(home / guide.path, variants, tmp_path) as airings:
        whole = airings.times(0, count, 3)
        parts = [airings.times(begin, min(begin + FEW, count), 3) for begin in range(0, count, FEW)]
    assert pa.concat_tables(parts).equals(whole) and len(whole) == count


def test_principal_components_of_some_titles_are_those_of_a_table_of_them(monkeypatch):
    lengths = np.arange(1, 9, dtype=np.float32)
    vectors = lengths * np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)
    rows = np.arange(3, 57, 2)
    alone = principal_plane(vectors[rows], np.arange(len(rows)))
    np.testing.assert_array_equal(principal_plane(vectors, rows), alone)
    monkeypatch.setattr(arrays, "BLOCK", FEW)
    np.testing.assert_allclose(principal_plane(vectors, rows), alone, atol=1e-5)


@pytest.mark.parametrize("block", [1, FEW])
def test_directions_of_labels_do_not_depend_on_blocks(monkeypatch, block: int):
    from tasks.baselines.tfidf import label_directions

    rng = np.random.default_rng(1)
    dense, targets = rng.normal(size=(50, 6)).astype(np.float32), rng.random((50, 3)) < 0.4
    whole = label_directions(dense, targets, 2)
    monkeypatch.setattr(arrays, "BLOCK", block)
    some = label_directions(dense, targets, 2)
    np.testing.assert_allclose(np.abs(np.einsum("ij,ij->j", whole, some)), 1, atol=1e-4)
