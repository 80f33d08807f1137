"""The layout keeps neighbours together and stays on the page."""

import numpy as np
import pytest

from tasks.neighbours.similarity import top_neighbours
from tasks.publish.map.layout import _build_links, compute_positions, principal_plane  # pyright: ignore[reportPrivateUsage]


def plane_of(vectors: np.ndarray) -> np.ndarray:
    return principal_plane(vectors, np.arange(len(vectors)))


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def planted(groups: int, size: int, dim: int = 32, spread: float = 0.6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(groups), size)
    return unit(rng.normal(size=(groups, dim))[truth] + spread * rng.normal(size=(groups * size, dim))), truth


def purity(places: np.ndarray, truth: np.ndarray, k: int = 10) -> float:
    """Returns the share of each point's k nearest points in the plane that are in its group."""
    distances = ((places[:, None] - places[None]) ** 2).sum(2)
    np.fill_diagonal(distances, np.inf)
    return float((truth[np.argsort(distances, axis=1)[:, :k]] == truth[:, None]).mean())


@pytest.mark.slow
def test_groups_of_the_space_are_groups_of_the_plane():
    vectors, truth = planted(30, 40)
    places = compute_positions(
        plane_of(vectors), *top_neighbours(vectors, vectors, 15, exclude_self=True), seed=0
    )
    assert places.shape == (1_200, 2) and places.dtype == np.float32
    assert np.abs(places).max() == pytest.approx(1, abs=1e-6)
    assert purity(places, truth) > 0.95 > 0.3 > purity(plane_of(vectors), truth)


def test_links_follow_the_formula():
    """p = s + sᵀ − s∘sᵀ with s = exp(−(d − d_nearest) / mean), rows divided by their sums."""
    vectors, _ = planted(5, 40)
    ids, cosines = top_neighbours(vectors, vectors, 6)  # the title itself is not linked
    ids[:10, 3:], ids[7] = -1, -1
    strength = np.zeros((200, 200))
    for title, (near, title_cosines) in enumerate(zip(ids, cosines, strict=True)):
        linked = (near >= 0) & (near != title)
        far = np.sqrt(np.maximum(2 - 2 * title_cosines[linked].astype(np.float64), 0))
        if len(far):
            strength[title, near[linked]] = np.exp(-(far - far.min()) / max((far - far.min()).mean(), 1e-6))
    expected = strength + strength.T - strength * strength.T
    sums = expected.sum(axis=1, keepdims=True)
    links, weights = _build_links(ids, cosines), np.zeros((200, 200))
    weights[links.sources, links.targets] = links.weights
    assert len(links.targets) == np.count_nonzero(expected) and links.offsets[-1] == len(links.targets)
    np.testing.assert_allclose(weights, expected / np.where(sums > 0, sums, 1), atol=1e-6)


def test_a_ring_becomes_a_ring():
    """On a circle in 10 dimensions, distant points stay apart and neighbours stay neighbours."""
    angle = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    vectors = unit(
        np.stack([np.cos(angle), np.sin(angle)], axis=1) @ np.random.default_rng(0).normal(size=(2, 10))
    )
    places = compute_positions(
        plane_of(vectors), *top_neighbours(vectors, vectors, 12, exclude_self=True), seed=0
    )
    near = np.linalg.norm(places - np.roll(places, 1, axis=0), axis=1)
    across = np.linalg.norm(places - np.roll(places, 200, axis=0), axis=1)
    assert np.median(near) < 0.1 < 0.5 < np.median(across)


def test_one_seed_gives_one_layout():
    vectors, _ = planted(5, 30)
    neighbours = top_neighbours(vectors, vectors, 10, exclude_self=True)
    first, again, other = (compute_positions(plane_of(vectors), *neighbours, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_a_random_graph_stays_finite_and_on_the_page():
    rng = np.random.default_rng(1)
    vectors = unit(rng.normal(size=(800, 16)))
    places = compute_positions(
        plane_of(vectors), rng.integers(800, size=(800, 10)), rng.random((800, 10), dtype=np.float32), seed=0
    )
    assert np.isfinite(places).all() and np.abs(places).max() <= 1
    assert (places.std(axis=0) > 0.2).all()


def test_titles_without_neighbours_are_inside_the_cloud():
    vectors, _ = planted(10, 40)
    ids, cosines = top_neighbours(vectors, vectors, 10, exclude_self=True)
    ids[::20], cosines[::20] = -1, 0
    ids[np.isin(ids, np.arange(0, 400, 20))] = -1
    places = compute_positions(plane_of(vectors), ids, cosines, seed=0)
    loose = np.arange(400) % 20 == 0
    low, high = np.quantile(places[~loose], [0.01, 0.99], axis=0)
    assert ((places[loose] >= low) & (places[loose] <= high)).all()


def test_outliers_do_not_shrink_the_map():
    vectors, _ = planted(12, 100)
    lone = unit(
        np.random.default_rng(5).normal(size=(1, 32)) + 0.01 * np.random.default_rng(6).normal(size=(3, 32))
    )
    vectors = np.concatenate([vectors, lone])
    ids, cosines = top_neighbours(vectors, vectors, 10, exclude_self=True)
    ids[1_200:, 2:] = -1
    ids[:1_200][ids[:1_200] >= 1_200] = -1
    places = compute_positions(plane_of(vectors), ids, cosines, seed=0)
    assert (np.ptp(places[:1_200], axis=0) > 1.2).all()


def test_all_equal():
    places = compute_positions(
        np.zeros((50, 2)),
        np.tile(np.arange(5), (50, 1)),
        np.ones((50, 5), np.float32),
        seed=0,
    )
    assert np.isfinite(places).all()


@pytest.mark.parametrize("titles", [0, 1, 2, 3])
def test_a_handful_of_titles(titles: int):
    vectors = np.eye(titles, 4, dtype=np.float32)
    places = compute_positions(
        plane_of(vectors), *top_neighbours(vectors, vectors, 5, exclude_self=True), seed=0
    )
    assert places.shape == (titles, 2) and np.isfinite(places).all() and np.abs(places).max(initial=0) <= 1


def test_titles_keep_their_previous_positions_and_new_ones_join_their_group():
    vectors, truth = planted(30, 40)
    first = compute_positions(
        plane_of(vectors), *top_neighbours(vectors, vectors, 15, exclude_self=True), seed=0
    )
    rng = np.random.default_rng(1)
    turned = unit(vectors + 0.02 * rng.normal(size=vectors.shape))
    stayed = rng.random(len(vectors)) > 0.1
    before = np.where(stayed[:, None], first, np.nan)
    near = top_neighbours(turned, turned, 15, exclude_self=True)
    second, jumped = (
        compute_positions(plane_of(turned), *near, seed=1, previous=start) for start in (before, None)
    )

    def moves(places: np.ndarray) -> float:
        return float(np.median(np.linalg.norm(places[stayed] - first[stayed], axis=1)))

    assert moves(second) < 0.05 < moves(jumped)
    assert purity(second, truth) > 0.95 and np.abs(second).max() <= 1
    assert second.dtype == np.float32


def test_a_previous_map_with_few_of_the_titles_is_ignored():
    vectors, _ = planted(5, 20)
    near = top_neighbours(vectors, vectors, 10, exclude_self=True)
    before = np.full((100, 2), np.nan)
    before[:40] = 0.5
    first, second = (
        compute_positions(plane_of(vectors), *near, seed=3, previous=start) for start in (before, None)
    )
    np.testing.assert_array_equal(first, second)
