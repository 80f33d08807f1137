"""Search by codes of one byte finds the exact neighbours."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.arrays import unit_rows
from tasks.neighbours.codes import QuantizedExact, QuantizedVectors, with_codes
from tasks.neighbours.index import Exact
from tasks.neighbours.similarity import FEW_QUERIES, top_neighbours


def random_units(rng: np.random.Generator, rows: int, dim: int) -> np.ndarray:
    return unit_rows(rng.normal(size=(rows, dim)).astype(np.float32))


@settings(max_examples=50)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 300),
    st.integers(1, 40),
    st.integers(1, FEW_QUERIES),
    st.integers(1, 400),
    st.booleans(),
)
def test_all_exact_neighbours_are_found(seed: int, rows: int, dim: int, queries: int, k: int, crowded: bool):
    rng = np.random.default_rng(seed)
    base = random_units(rng, rows, dim)
    if crowded:  # equal vectors, and some that differ by less than a code does
        base[rng.random(rows) < 0.5] = base[0]
        base = unit_rows(base + (rng.normal(size=base.shape) * 1e-4).astype(np.float32))
    asked = np.concatenate([base[:1], random_units(rng, queries, dim)])[:queries]
    expected = top_neighbours(asked, base, k)
    for found, wanted in zip(QuantizedVectors.from_vectors(base).nearest(asked, k), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_neighbour_with_uninformative_codes_is_found():
    """Codes of the nearest are 127 and zeros: one number is large, and what the query asks for is small."""
    near = np.full(66, 0.019, dtype=np.float32)
    near[:2] = 5, 0
    others = np.zeros((30, 66), dtype=np.float32)
    others[:, 1], others[np.arange(30), 2 + np.arange(30)] = 0.987, np.linspace(0.13, 0.16, 30)
    base = unit_rows(np.concatenate([others, near[None]]))
    asked = np.zeros((1, 66), dtype=np.float32)
    asked[0, 2:] = 1 / 8
    codes = QuantizedVectors.from_vectors(base)
    assert not codes.codes[-1, 1:].any()
    ids, cosines = codes.nearest(asked, 3)
    assert ids[0, 0] == 30 and cosines[0] == pytest.approx([0.0304, 0.02, 0.02], abs=1e-3)


def test_only_few_queries_use_codes(monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(0)
    base = random_units(rng, 200, 16)
    base[[3, 100]] = 0
    plain = Exact(base)
    index = with_codes(plain)
    assert isinstance(index, QuantizedExact) and with_codes(index) is index
    asked: list[int] = []
    nearest = QuantizedVectors.nearest
    monkeypatch.setattr(
        QuantizedVectors,
        "nearest",
        lambda own, queries, k: asked.append(len(queries)) or nearest(own, queries, k),
    )
    zero = np.zeros((1, 16), np.float32)
    for queries in (base[5:6], base[10 : 10 + FEW_QUERIES], base[: FEW_QUERIES + 1], zero, base[:0]):
        for found, wanted in zip(index.nearest(queries, 5), plain.nearest(queries, 5), strict=True):
            np.testing.assert_array_equal(found, wanted)
    assert asked == [1, FEW_QUERIES, 0]
    with pytest.raises(ValueError, match=r"queries must have rows of norm 1 .* row 0 has norm 2"):
        index.nearest(2 * base[5:6], 5)


def test_without_numba_no_codes_are_made(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tasks.neighbours.codes.has_numba", lambda: False)
    index = Exact(random_units(np.random.default_rng(0), 20, 4))
    assert with_codes(index) is index
