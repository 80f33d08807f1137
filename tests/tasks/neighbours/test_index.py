"""The approximate search compared with the exact one, and the choice between them."""

import logging
import sys

import numpy as np
import pytest

from storage import arrays
from tasks.neighbours import index
from tasks.neighbours.index import (
    Approximate,
    Exact,
    IndexMissing,
    SearchSettings,
    query_recall,
    sampled_recall,
)
from tasks.neighbours.similarity import top_neighbours

needs_faiss = pytest.mark.skipif(
    index.importlib.util.find_spec("faiss") is None, reason="faiss-cpu is not installed"
)


@pytest.fixture(scope="module")
def groups() -> np.ndarray:
    """Makes 4,000 titles around 40 centres, a few of them zero, a few equal."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 24))[rng.integers(40, size=4_000)] + 0.6 * rng.normal(size=(4_000, 24))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    rows[[5, 77]] = 0
    rows[100:104] = rows[99]
    return rows


@needs_faiss
def test_every_cell_probed_finds_what_the_exact_search_finds(groups: np.ndarray):
    approximate = Approximate(groups, probes=10_000)
    for found, exact in zip(approximate.nearest_to_each(10), Exact(groups).nearest_to_each(10), strict=True):
        np.testing.assert_array_equal(found, exact)
    for found, exact in zip(
        approximate.nearest(groups[90:120], 10), Exact(groups).nearest(groups[90:120], 10), strict=True
    ):
        np.testing.assert_array_equal(found, exact)


@needs_faiss
def test_few_cells_probed_find_most(groups: np.ndarray):
    approximate = Approximate(groups, probes=8)
    assert approximate.cells == 99
    ids, cosines = approximate.nearest_to_each(10)
    assert 0.9 < sampled_recall(groups, ids) < 1
    assert (
        (ids != np.arange(4_000)[:, None]).all()
        and (ids[[5, 77]] == -1).all()
        and not np.isin(ids, [5, 77]).any()
    )
    known = ids >= 0
    exact = np.einsum("ijk,ik->ij", groups[ids].astype(np.float64), groups)
    np.testing.assert_allclose(cosines[known], exact[known], atol=1e-6)
    assert (np.diff(cosines, axis=1) <= 0).all()
    again = Approximate(groups, probes=8).nearest_to_each(10)
    np.testing.assert_array_equal(again[0], ids)


@needs_faiss
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_approximate_search_of_few_or_no_titles(rows: int):
    found = Approximate(np.eye(4, dtype=np.float32)[:rows]).nearest_to_each(2)
    np.testing.assert_array_equal(found[0], Exact(np.eye(4, dtype=np.float32)[:rows]).nearest_to_each(2)[0])
    nothing = Approximate(np.zeros((rows, 4), np.float32)).nearest(np.eye(2, 4, dtype=np.float32), 2)
    assert (nothing[0] == -1).all() and not nothing[1].any()


@pytest.mark.parametrize("block", [arrays.BLOCK_ROWS, 7])
def test_recall_known_by_hand(groups: np.ndarray, monkeypatch: pytest.MonkeyPatch, block: int):
    monkeypatch.setattr(arrays, "BLOCK_ROWS", block)
    few = groups[200:500]
    ids = Exact(few).nearest_to_each(10)[0]
    assert sampled_recall(few, ids) == 1.0
    ids[:, 5:] = -1
    assert sampled_recall(few, ids) == 0.5
    assert sampled_recall(np.zeros((3, 2), np.float32), np.full((3, 2), -1)) == 1.0


class Half:
    """Index that finds only the nearer half."""

    is_exact = False

    def __init__(self, titles: np.ndarray) -> None:
        self.exact = Exact(titles)

    def nearest(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        ids, cosines = self.exact.nearest(queries, k)
        ids[:, k // 2 :] = -1
        return ids, cosines

    def nearest_to_each(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        return self.exact.nearest_to_each(k)


def test_recall_of_queries_known_by_hand(groups: np.ndarray):
    assert query_recall(Exact(groups), groups, 10) == 1.0
    assert query_recall(Half(groups), groups, 10) == 0.5
    assert query_recall(Exact(np.zeros((3, 2), np.float32)), np.zeros((3, 2), np.float32), 2) == 1.0


@needs_faiss
def test_recall_of_queries_rises_with_the_cells_probed(groups: np.ndarray):
    few, more, every = (
        query_recall(Approximate(groups, probes=probes), groups, 11) for probes in (1, 8, 10_000)
    )
    assert few < more < every == 1.0


@needs_faiss
def test_auto_selects_the_search_by_the_number_of_titles(groups: np.ndarray):
    assert isinstance(SearchSettings().open(groups), Exact)
    assert isinstance(SearchSettings(exact_below=4_000).open(groups), Approximate)
    assert isinstance(SearchSettings(exact_below=4_001).open(groups), Exact)
    assert isinstance(SearchSettings(method="approximate").open(groups), Approximate)
    assert isinstance(SearchSettings(method="exact", exact_below=1).open(groups), Exact)


def test_approximate_search_without_faiss(
    groups: np.ndarray, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(IndexMissing, match=r"not installed: `pip install faiss-cpu`.*method to exact"):
        SearchSettings(method="approximate").open(groups)
    monkeypatch.setattr(index.importlib.util, "find_spec", lambda name: None)
    with caplog.at_level(logging.WARNING):
        assert isinstance(SearchSettings(exact_below=10).open(groups), Exact)
    assert (
        "4000 titles are searched exactly, which is slow; install faiss: `pip install faiss-cpu`"
        in caplog.text
    )


@pytest.mark.parametrize("count", [1, 8, 1_100])
def test_queries_equal_a_search_of_titles(groups: np.ndarray, count: int):
    for found, expected in zip(
        Exact(groups).nearest(groups[:count], 10), top_neighbours(groups[:count], groups, 10), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
