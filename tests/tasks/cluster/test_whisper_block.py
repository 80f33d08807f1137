"""The compiled block equals the rule in Python."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.cluster import chinese_whispers
from tasks.cluster.chinese_whispers import PRIORITY_BITS, compiled, whisper
from tasks.cluster.graph import Graph, symmetric_graph

OWN = (1 << PRIORITY_BITS) - 1  # the lot of a node's own class; those of others are even


def plain_update(graph: Graph, weights: np.ndarray):
    """Computes block_update node by node."""

    def choose(labels: np.ndarray, node: int, lot: int) -> int:
        own, sums = int(labels[node]), Counter()
        for edge in range(graph.offsets[node], graph.offsets[node + 1]):
            sums[int(labels[graph.targets[edge]])] += int(weights[edge])
        shift = 62 - PRIORITY_BITS
        drawn = {heard: (heard + 1) * (lot | 1) >> shift & OWN - 1 for heard in sums} | {own: OWN}
        loudest = [heard for heard in sums if sums[heard] == max(sums.values())]
        return min(loudest, key=lambda heard: (-drawn[heard], heard))

    def update(labels: np.ndarray, waiting: np.ndarray, block: np.ndarray, lots: np.ndarray) -> int:
        waiting[block] = False
        chosen = np.array(
            [choose(labels, node, lot) for node, lot in zip(block.tolist(), lots.tolist(), strict=True)]
        )
        moved = block[chosen != labels[block]]
        labels[block] = chosen
        for node in moved:
            waiting[graph.targets[graph.offsets[node] : graph.offsets[node + 1]]] = True
        return len(moved)

    return update


def by_both(call):
    """Returns the results of the plain and the compiled function."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chinese_whispers, "block_update", plain_update)
        plain = call()
    return plain, call()


@settings(max_examples=30)
@given(
    st.integers(0, 1 << 32),
    st.integers(1, 90),
    st.floats(0, 0.4),
    st.sampled_from(["top", "lin", "log"]),
    st.booleans(),
)
def test_the_compiled_loop_equals_python(seed: int, nodes: int, density: float, weighting, equal: bool):
    rng = np.random.default_rng(seed)
    sources, targets = np.nonzero(np.triu(rng.random((nodes, nodes)) < density, 1))
    weights = np.ones(len(sources)) if equal else rng.random(len(sources)) + 1e-3  # equal weights: many ties
    graph = symmetric_graph(nodes, sources, targets, weights)
    (plain, *ends), (fast, *fast_ends) = by_both(
        lambda: whisper(graph, weighting, 20, np.random.default_rng(seed))
    )
    assert plain.tolist() == fast.tolist() and ends == fast_ends and fast.dtype == plain.dtype


def test_without_a_writable_cache_loops_are_compiled():
    namespace = {}
    exec(
        "def double(number):\n    return 2 * number", namespace
    )  # numba finds no file of this function to write beside
    assert compiled(namespace["double"])(4) == 8
