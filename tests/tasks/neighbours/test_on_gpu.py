"""The GPU finds what the CPU finds, bit for bit."""

import numpy as np
import pytest
import torch

from tasks.neighbours import on_gpu, similarity
from tasks.neighbours.similarity import top_neighbours


def titles(count: int, dim: int = 24) -> np.ndarray:
    """Makes unit rows around few centres: some equal, many with cosines equal in float32, some zero."""
    rng = np.random.default_rng(5)
    centres = rng.normal(size=(6, dim))[rng.integers(6, size=count)]
    rows = centres + np.where(rng.random((count, 1)) < 0.5, 1e-7, 0.3) * rng.normal(size=(count, dim))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows[-count // 8 :] = rows[: -(-count // 8)]
    rows[count // 2 : count // 2 + 3] = 0
    return rows.astype(np.float32)


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Who made the products: the GPU of few pairs too, in products of a few rows."""
    seen, real = [], on_gpu.search_on_gpu
    monkeypatch.setattr(on_gpu, "PRODUCT_ENTRIES", 7_000)
    monkeypatch.setattr(on_gpu, "search_on_gpu", lambda *given: seen.append(True) or real(*given))
    return seen


@pytest.mark.gpu
@pytest.mark.parametrize("exclude_self", [False, True])
@pytest.mark.parametrize(("count", "k"), [(700, 9), (12, 10), (12, 40), (1, 3)])
def test_neighbours_and_cosines_are_those_of_the_cpu(
    count: int, k: int, exclude_self: bool, searched: list[bool], monkeypatch: pytest.MonkeyPatch
):
    base = titles(count)
    queries = base if exclude_self else titles(90)
    found = {}
    for fewest in (1, 1 << 60):
        monkeypatch.setattr(similarity, "MIN_PAIRS", fewest)
        found[fewest] = top_neighbours(queries, base, k, exclude_self=exclude_self)
    assert searched == ([True] if base.any() else [])
    for one, other in zip(*found.values(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_few_pairs_and_machines_without_a_gpu_use_the_cpu(searched, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    top_neighbours(titles(700), titles(700), 5)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(similarity, "MIN_PAIRS", 1)
    top_neighbours(titles(700), titles(700), 5)
    assert not searched


def test_without_enough_gpu_memory_the_cpu_searches(monkeypatch: pytest.MonkeyPatch, caplog):
    base = titles(300)
    expected = top_neighbours(base, base, 5, exclude_self=True)

    def full(*given):
        yield 0, np.zeros((2, 5), dtype=np.int64), np.ones((2, 5), dtype=np.float32)
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(similarity, "is_gpu_faster", lambda pairs: True)
    monkeypatch.setattr(on_gpu, "search_on_gpu", full)
    found = top_neighbours(base, base, 5, exclude_self=True)
    assert all(map(np.array_equal, found, expected)) and "out of GPU memory" in caplog.text
