"""The compiled block gives the integers of the numpy form."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.cluster import chinese_whispers
from tasks.cluster.chinese_whispers import compiled, whisper
from tasks.cluster.graph import symmetric_graph

pytest.importorskip("numba")


def by_both(call):
    """The results of the numpy form and of the compiled one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chinese_whispers, "available", lambda: False)
        plain = call()
    return plain, call()


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 1 << 32),
    st.integers(1, 90),
    st.floats(0, 0.4),
    st.sampled_from(["top", "lin", "log"]),
    st.booleans(),
)
def test_whispers_are_the_same(seed: int, nodes: int, density: float, weighting, equal: bool):
    rng = np.random.default_rng(seed)
    sources, targets = np.nonzero(np.triu(rng.random((nodes, nodes)) < density, 1))
    weights = np.ones(len(sources)) if equal else rng.random(len(sources)) + 1e-3  # equal weights: many ties
    graph = symmetric_graph(nodes, sources, targets, weights)
    (plain, *ends), (fast, *fast_ends) = by_both(
        lambda: whisper(graph, weighting, 20, np.random.default_rng(seed))
    )
    assert plain.tolist() == fast.tolist() and ends == fast_ends and fast.dtype == plain.dtype


def test_without_numba_it_is_not_asked_for(monkeypatch):
    def refuse(function):
        raise AssertionError("numba was used")

    monkeypatch.setattr(chinese_whispers, "compiled", refuse)
    pair = symmetric_graph(2, np.array([0]), np.array([1]), np.ones(1))
    with pytest.raises(AssertionError, match="numba was used"):
        whisper(pair, "top", 5, np.random.default_rng(0))
    monkeypatch.setattr(chinese_whispers, "available", lambda: False)
    assert whisper(pair, "top", 5, np.random.default_rng(0))[2]


def test_without_a_place_to_keep_machine_code_it_is_compiled_all_the_same():
    namespace = {}
    exec(
        "def double(number):\n    return 2 * number", namespace
    )  # numba finds no file of this function to write beside
    assert compiled(namespace["double"])(4) == 8
