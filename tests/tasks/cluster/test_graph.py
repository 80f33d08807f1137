"""The symmetric graph of nearest neighbours, edge by edge."""

import numpy as np
import pytest

from tasks.cluster.graph import Graph, Neighbours, neighbour_graph, neighbour_jaccard, symmetric_graph

# 0 names 1 and 2; 1 names 0; 2 names 1; 3 names nobody.
IDS = np.array([[1, 2], [0, -1], [1, -1], [-1, -1]])
COSINES = np.array([[0.9, 0.4], [0.9, 0], [0.7, 0], [0, 0]], dtype=np.float32)


def edges(graph: Graph) -> dict[tuple[int, int], float]:
    rows = np.repeat(np.arange(len(graph)), graph.degrees)
    return {
        (int(row), int(column)): round(float(weight), 6)
        for row, column, weight in zip(rows, graph.targets, graph.weights, strict=True)
    }


def test_a_pair_is_linked_if_one_lists_the_other():
    expected = {(0, 1): 0.9, (1, 0): 0.9, (0, 2): 0.4, (2, 0): 0.4, (1, 2): 0.7, (2, 1): 0.7}
    assert edges(neighbour_graph(Neighbours(IDS, COSINES))) == expected


def test_a_graph_with_too_many_pairs_for_its_entry_numbers_is_refused():
    ends = np.broadcast_to(np.int32(0), 2**31 + 1)  # takes no memory
    with pytest.raises(ValueError, match="has 2,147,483,649 pairs, at most 2,147,483,648"):
        symmetric_graph(2, ends, ends, ends)


def test_dissimilar_pairs_are_not_linked():
    assert set(edges(neighbour_graph(Neighbours(IDS, COSINES), minimum_similarity=0.5))) == {
        (0, 1),
        (1, 0),
        (1, 2),
        (2, 1),
    }


def test_opposite_titles_are_not_linked():
    graph = neighbour_graph(Neighbours(np.array([[1], [0]]), np.array([[-0.5], [-0.5]], dtype=np.float32)))
    assert graph.degrees.tolist() == [0, 0]


def test_empty():
    graph = neighbour_graph(Neighbours(np.zeros((0, 3), np.int64), np.zeros((0, 3), np.float32)))
    assert len(graph) == 0 and not len(graph.targets)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"\(4, 2\) and \(4, 1\)"):
        Neighbours(IDS, COSINES[:, :1])


def test_shared_neighbours_by_hand():
    # {0,1,2} and {1,0}: two of three; {0,1,2} and {2,1}: two of three; {2,1} and {1,0}: one of three.
    shares = neighbour_jaccard(Neighbours(IDS, COSINES))
    np.testing.assert_allclose(shares, [[2 / 3, 2 / 3], [2 / 3, 0], [1 / 3, 0], [0, 0]], atol=1e-6)


def test_shared_neighbours_equal_sets_of_python():
    ids = np.stack([np.random.default_rng(row).permutation(40)[:6] for row in range(40)])
    ids[ids == np.arange(40)[:, None]] = -1
    ids[::3, 4:] = -1
    sets = [{row, *(int(other) for other in own if other >= 0)} for row, own in enumerate(ids)]
    expected = [
        [len(sets[row] & sets[other]) / len(sets[row] | sets[other]) if other >= 0 else 0 for other in own]
        for row, own in enumerate(ids)
    ]
    np.testing.assert_allclose(
        neighbour_jaccard(Neighbours(ids, np.ones(ids.shape, np.float32))), expected, atol=1e-6
    )


def test_the_graph_equals_pairs_collected_one_by_one():
    rng = np.random.default_rng(1)
    wide = rng.random((60, 60)).astype(np.float32)
    wide = np.triu(wide, 1) + np.triu(wide, 1).T  # the same strength in both directions
    ids = np.argsort(-wide + 2 * np.eye(60), axis=1)[:, :7]
    cosines = np.take_along_axis(wide, ids, 1)
    ids[::5, 5:] = -1
    named = {
        (row, int(other))
        for row, own in enumerate(ids)
        for other in own
        if other >= 0 and wide[row, other] >= 0.9
    }
    pairs = named | {(other, row) for row, other in named}
    graph = neighbour_graph(Neighbours(ids, cosines), minimum_similarity=0.9)
    assert edges(graph) == {(row, other): round(float(wide[row, other]), 6) for row, other in pairs} and len(
        graph.targets
    ) == len(pairs)
    assert graph.targets.dtype == np.int32 and graph.weights.dtype == np.float32
