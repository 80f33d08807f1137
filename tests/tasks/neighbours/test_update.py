"""Updated neighbours equal those of a search of all titles, bit for bit."""

import numpy as np
import pytest

from storage.arrays import unit_rows
from tasks.neighbours.similarity import top_neighbours
from tasks.neighbours.update import update_neighbours


def vectors(titles: int, seed: int, dim: int = 16) -> np.ndarray:
    """Unit vectors, some of them equal and some zero."""
    rng = np.random.default_rng(seed)
    points = unit_rows(rng.standard_normal((titles, dim)).astype(np.float32))
    points[rng.integers(titles, size=titles // 5)] = points[rng.integers(titles, size=titles // 5)]
    points[rng.integers(titles, size=3)] = 0
    return points


@pytest.mark.parametrize(
    ("titles", "k"), [pytest.param(600, 5, id="many"), pytest.param(30, 40, id="fewer than k")]
)
@pytest.mark.parametrize("seed", range(4))
def test_the_update_equals_a_search_of_all_titles(titles: int, k: int, seed: int):
    rng, earlier = np.random.default_rng(seed), vectors(titles, seed)
    before = top_neighbours(earlier, earlier, k, exclude_self=True)
    remaining = np.sort(rng.permutation(titles)[: titles - 4])
    points, origin = earlier[remaining], remaining.copy()
    points[rng.integers(len(points), size=3)] = vectors(3, seed + 10)  # changed
    places = np.sort(rng.integers(len(points), size=3))
    points, origin = np.insert(points, places, earlier[:3], axis=0), np.insert(origin, places, -1)
    updated = update_neighbours(points, k, origin, earlier, *before)
    if updated is None:
        assert titles < 100
        return
    for ours, expected in zip(updated, top_neighbours(points, points, k, exclude_self=True), strict=True):
        np.testing.assert_array_equal(ours, expected)


def test_titles_with_equal_vectors_are_not_neighbours_of_themselves():
    earlier = np.repeat(np.eye(8, dtype=np.float32)[:1], 20, axis=0)
    before = top_neighbours(earlier, earlier, 3, exclude_self=True)
    points, origin = np.vstack([earlier[:10], np.eye(8, dtype=np.float32)[1:2]]), np.append(np.arange(10), -1)
    updated = update_neighbours(points, 3, origin, earlier, *before)
    assert updated is not None
    np.testing.assert_array_equal(updated[0], top_neighbours(points, points, 3, exclude_self=True)[0])


def test_many_changes_are_not_updated():
    earlier = vectors(100, 1)
    before = top_neighbours(earlier, earlier, 5, exclude_self=True)
    assert update_neighbours(vectors(100, 2), 5, np.arange(100), earlier, *before) is None
