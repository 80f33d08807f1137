"""The compiled loops give the bits of the numpy forms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.cluster import loops
from tasks.cluster.chinese_whispers import whisper
from tasks.cluster.graph import Neighbours, neighbour_graph, shared_share, symmetric_graph
from tasks.compiled import compiled

pytest.importorskip("numba")


def by_both(call):
    """What the numpy form and the compiled one give, whatever the size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loops, "LEAST", 1 << 62)
        plain = call()
        patch.setattr(loops, "LEAST", 0)
        return plain, call()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1 << 32), st.integers(1, 90), st.floats(0, 0.4), st.sampled_from(["top", "lin", "log"]), st.booleans())
def test_whispers_are_the_same(seed: int, nodes: int, density: float, weighting, equal: bool):
    rng = np.random.default_rng(seed)
    sources, targets = np.nonzero(np.triu(rng.random((nodes, nodes)) < density, 1))
    weights = np.ones(len(sources)) if equal else rng.random(len(sources)) + 1e-3  # equal weights: many ties
    graph = symmetric_graph(nodes, sources, targets, weights)
    (plain, *ends), (fast, *fast_ends) = by_both(lambda: whisper(graph, weighting, 20, np.random.default_rng(seed)))
    assert plain.tolist() == fast.tolist() and ends == fast_ends and fast.dtype == plain.dtype


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1 << 32), st.integers(1, 80), st.integers(1, 12), st.booleans(), st.floats(0, 0.9))
def test_graphs_of_neighbours_are_the_same(seed: int, titles: int, k: int, mutual: bool, minimum: float):
    rng = np.random.default_rng(seed)
    ids = np.argsort(rng.random((titles, max(titles, k))), axis=1)[:, :k]
    ids[(ids == np.arange(titles)[:, None]) | (ids >= titles) | (rng.random(ids.shape) < 0.2)] = -1
    near = Neighbours(ids, np.where(ids >= 0, rng.random(ids.shape), 0).astype(np.float32))
    plain, fast = by_both(lambda: shared_share(near))
    assert plain.tobytes() == fast.tobytes() and plain.dtype == fast.dtype
    plain, fast = by_both(lambda: neighbour_graph(near, plain, minimum_similarity=minimum, mutual=mutual))
    assert all(getattr(plain, part).tolist() == getattr(fast, part).tolist() for part in ("offsets", "targets", "weights"))


def test_small_graphs_do_without_numba(monkeypatch):
    assert loops.loop(loops.named_back, loops.LEAST - 1) is None
    monkeypatch.setattr(loops, "available", lambda: False)
    assert loops.loop(loops.named_back, loops.LEAST) is None


def test_without_a_place_to_keep_machine_code_it_is_compiled_all_the_same():
    namespace = {}
    exec("def double(number):\n    return 2 * number", namespace)  # numba finds no file of this function to write beside
    assert compiled(namespace["double"])(4) == 8
