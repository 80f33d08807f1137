"""Results do not depend on the size of blocks of titles."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from storage import arrays
from storage.catalogue.connection import temporary_database
from storage.catalogue.titles import Airings
from tasks.publish.map.layout import principal_plane

SMALL_BLOCK = 7  # titles; the default block contains the toy world


def test_airing_times(toy, tmp_path: Path):
    home, guide, vocabulary, corpus = toy
    variants, count = home / vocabulary.path / "variants.parquet", corpus.counts["titles"]
    with temporary_database(tmp_path) as connection:
        airings = Airings(connection, home / guide.path, variants)
        expected = airings.times(0, count, 3)
        parts = [
            airings.times(begin, min(begin + SMALL_BLOCK, count), 3) for begin in range(0, count, SMALL_BLOCK)
        ]
    assert pa.concat_tables(parts).equals(expected) and len(expected) == count


def test_principal_components_of_selected_rows(monkeypatch):
    lengths = np.arange(1, 9, dtype=np.float32)
    vectors = lengths * np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)
    rows = np.arange(3, 57, 2)
    alone = principal_plane(vectors[rows], np.arange(len(rows)))
    np.testing.assert_array_equal(principal_plane(vectors, rows), alone)
    monkeypatch.setattr(arrays, "BLOCK_ROWS", SMALL_BLOCK)
    np.testing.assert_allclose(principal_plane(vectors, rows), alone, atol=1e-5)
