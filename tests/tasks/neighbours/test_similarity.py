"""The kernel against brute force in float64, and at its limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.neighbours import rescoring, similarity
from tasks.neighbours.similarity import nonzero_rows, top_neighbours


def unit(rows: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0).astype(np.float32)


def brute(queries: np.ndarray, base: np.ndarray, k: int, exclude_self: bool) -> tuple[np.ndarray, np.ndarray]:
    """Computes nearest rows by the definition: float64, all pairs, sorted by falling cosine, then id."""
    cosines = np.round(queries.astype(np.float64) @ base.astype(np.float64).T, 12)
    cosines[:, ~base.any(1)] = -np.inf
    if exclude_self:
        np.fill_diagonal(cosines, -np.inf)
    cosines[~queries.any(1)] = -np.inf
    order = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
    values = np.take_along_axis(cosines, order, 1)
    ids = np.where(values == -np.inf, -1, order)
    short = k - ids.shape[1]
    values = np.where(values == -np.inf, 0, values)
    return np.pad(ids, ((0, 0), (0, max(0, short))), constant_values=-1), np.pad(
        values, ((0, 0), (0, max(0, short)))
    )


def check(queries: np.ndarray, base: np.ndarray, k: int, exclude_self: bool = False, **options: int) -> None:
    ids, cosines = top_neighbours(queries, base, k, exclude_self=exclude_self, **options)
    expected_ids, expected_cosines = brute(queries, base, k, exclude_self)
    assert ids.dtype == np.int64 and cosines.dtype == np.float32
    np.testing.assert_array_equal(ids, expected_ids)
    np.testing.assert_allclose(cosines, np.clip(expected_cosines, -1, 1), atol=1e-7)


def test_three_directions_known_by_hand():
    base = unit(np.array([[1.0, 0], [1, 1], [0, 1], [-1, 0]]))
    ids, cosines = top_neighbours(base[:1], base, 3)
    assert ids.tolist() == [[0, 1, 2]]
    np.testing.assert_allclose(cosines, [[1, np.sqrt(0.5), 0]], atol=1e-7)


@pytest.mark.parametrize("exclude_self", [False, True])
def test_equals_brute_force_over_many_blocks(exclude_self: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(similarity, "TILE_SIDE", 256)
    base = unit(np.random.default_rng(0).normal(size=(2_500, 32)))
    check(base, base, 10, exclude_self, block=300)


def test_equals_brute_force_for_queries_outside_the_base():
    rng = np.random.default_rng(1)
    check(unit(rng.normal(size=(77, 16))), unit(rng.normal(size=(4_000, 16))), 25)


@given(
    st.lists(
        st.sampled_from([(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, 1, 1), (0, 0, 0), (3, 4, 0)]),
        min_size=1,
        max_size=60,
    ),
    st.integers(1, 12),
    st.booleans(),
    st.integers(1, 7),
)
@settings(max_examples=80)
def test_duplicates_and_zero_rows_are_ordered_by_id(
    rows: list[tuple[int, ...]], k: int, exclude_self: bool, block: int
):
    base = unit(np.array(rows, dtype=np.float64))
    check(base, base, k, exclude_self, block=block)


def test_all_equal_many_more_than_k():
    base = np.tile(unit(np.random.default_rng(2).normal(size=(1, 24))), (3_000, 1))
    ids, cosines = top_neighbours(base, base, 5, exclude_self=True)
    assert (
        ids[0].tolist() == [1, 2, 3, 4, 5]
        and ids[3].tolist() == [0, 1, 2, 4, 5]
        and (ids[6:] == np.arange(5)).all()
    )
    np.testing.assert_allclose(cosines, 1, atol=1e-6)


def test_only_ambiguous_rows_are_searched_again(monkeypatch: pytest.MonkeyPatch):
    """It takes 16 MiB and more a thread: where float32 could tell the k-th, nothing is made for it."""
    again, real = [], rescoring._search_in_float64
    monkeypatch.setattr(
        rescoring, "_search_in_float64", lambda *given: again.append(len(given[0])) or real(*given)
    )
    base = unit(np.random.default_rng(5).normal(size=(300, 20)))
    check(base, base, 5, exclude_self=True)
    assert again == []
    base[:60] = base[0]  # more equal vectors than are kept to choose from
    check(base, base, 5, exclude_self=True)
    assert 60 <= sum(again) < 80  # and the few others that have them at the edge


def test_near_ties_are_resolved_in_float64():
    rng = np.random.default_rng(3)
    centre = unit(rng.normal(size=(1, 64)))
    base = unit(np.concatenate([centre + 1e-5 * rng.normal(size=(400, 64)), rng.normal(size=(3_000, 64))]))
    base = base[rng.permutation(len(base))]
    check(base, base, 10, exclude_self=True)


def test_order_of_rows_does_not_matter():
    rng = np.random.default_rng(4)
    base = unit(rng.normal(size=(500, 12)))
    shuffle = rng.permutation(500)
    ids, cosines = top_neighbours(base, base, 6, exclude_self=True)
    moved_ids, moved_cosines = top_neighbours(base[shuffle], base[shuffle], 6, exclude_self=True)
    np.testing.assert_array_equal(shuffle[moved_ids], ids[shuffle])
    np.testing.assert_array_equal(moved_cosines, cosines[shuffle])


def near_ties() -> np.ndarray:
    """Titles around few centres, some of them equal and many nearer to each other than float32 can tell."""
    rng = np.random.default_rng(5)
    centres = rng.normal(size=(6, 40))[rng.integers(6, size=1_500)]
    rows = unit(centres + np.where(rng.random((1_500, 1)) < 0.5, 1e-7, 0.3) * rng.normal(size=(1_500, 40)))
    return np.concatenate([rows, rows[:60]])


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("block", [37, 1_024])
def test_block_and_threads_change_nothing(threads: int, block: int, monkeypatch: pytest.MonkeyPatch):
    base = near_ties()
    expected = top_neighbours(base, base, 9, exclude_self=True)
    monkeypatch.setattr(similarity, "cores", lambda: threads)
    found = top_neighbours(base, base, 9, exclude_self=True, block=block)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


def test_another_machine_differs_at_most_in_pairs_within_a_millionth():
    """Titles and dimensions in another order: every sum is made in another order, and ties have other ids."""
    base, rng = near_ties(), np.random.default_rng(6)
    moved, turned = rng.permutation(len(base)), rng.permutation(40)
    here = top_neighbours(base, base, 9, exclude_self=True)
    there = top_neighbours(base[moved][:, turned], base[moved][:, turned], 9, exclude_self=True)
    exact = base.astype(np.float64) @ base.astype(np.float64).T
    differing = 0
    for own, row in enumerate(moved):
        mine, theirs = set(here[0][row].tolist()), set(moved[there[0][own]].tolist())
        last = exact[row, here[0][row, -1]]
        assert all(abs(exact[row, other] - last) <= 1e-6 for other in mine ^ theirs)
        differing += mine != theirs
    np.testing.assert_allclose(there[1], here[1][moved], atol=1e-6)
    assert differing > 10  # the world does hold pairs that only their ids tell apart


def test_empty():
    none = np.zeros((0, 4), np.float32)
    one = unit(np.ones((1, 4)))
    assert top_neighbours(none, one, 3)[0].shape == (0, 3)
    ids, cosines = top_neighbours(one, none, 3)
    assert ids.tolist() == [[-1, -1, -1]] and not cosines.any()


def test_single():
    one = unit(np.ones((1, 4)))
    assert top_neighbours(one, one, 2)[0].tolist() == [[0, -1]]
    assert top_neighbours(one, one, 2, exclude_self=True)[0].tolist() == [[-1, -1]]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (np.full((2, 3), 0.9), "row 0 has norm 1.55885"),
        (np.array([[1, 0, 0], [np.nan, 0, 0]]), "row 1 has norm nan"),
    ],
)
def test_rows_that_are_not_of_unit_norm_are_refused(rows: np.ndarray, words: str):
    with pytest.raises(ValueError, match=words):
        nonzero_rows(rows.astype(np.float32))


def test_shapes_that_do_not_fit_are_refused():
    base = unit(np.eye(3))
    with pytest.raises(ValueError, match="k=0"):
        top_neighbours(base, base, 0)
    with pytest.raises(ValueError, match=r"\(3, 3\) and \(2, 2\)"):
        top_neighbours(base, unit(np.eye(2)), 1)
    with pytest.raises(ValueError, match="2 queries for 3 rows"):
        top_neighbours(base[:2], base, 1, exclude_self=True)
