"""Chinese Whispers on graphs whose groups are known."""

import numpy as np
import pytest

from tasks.cluster.chinese_whispers import ChineseWhispers, block_update, integer_weights, whisper
from tasks.cluster.graph import Graph, Neighbours, symmetric_graph
from tasks.cluster.stability import adjusted_rand
from tasks.neighbours.similarity import top_neighbours


def planted(nodes: int, groups: int, inside: float, across: float, seed: int) -> tuple[Graph, np.ndarray]:
    """A graph in which two nodes of a group are linked with one probability, of different groups with
    another."""
    truth = np.arange(nodes) * groups // nodes
    linked = np.triu(
        np.random.default_rng(seed).random((nodes, nodes))
        < np.where(truth[:, None] == truth, inside, across),
        1,
    )
    sources, targets = np.nonzero(linked)
    return symmetric_graph(nodes, sources, targets, np.ones(len(sources))), truth


@pytest.mark.parametrize("weighting", ["top", "lin", "log"])
@pytest.mark.parametrize(("inside", "across", "least"), [(0.3, 0.002, 0.97), (0.2, 0.005, 0.94)])
def test_planted_groups_are_found_by_every_seed(weighting, inside: float, across: float, least: float):
    graph, truth = planted(2_000, 40, inside, across, seed=0)
    found = [whisper(graph, weighting, 50, np.random.default_rng(seed)) for seed in range(5)]
    assert np.mean([adjusted_rand(truth, labels) for labels, _, _ in found]) >= least
    assert all(settled and passes < 20 for _, passes, settled in found)


@pytest.mark.parametrize(("inside", "across", "package"), [(0.3, 0.002, 0.9988), (0.2, 0.005, 0.9738)])
def test_one_seed_is_as_good_as_the_package(inside: float, across: float, package: float):
    """Its mean over a hundred such graphs, one seed each, 20 iterations, log weighting (chinese-whispers
    0.9.0; docs/log)."""
    found = []
    for seed in range(12):
        graph, truth = planted(2_000, 40, inside, across, seed)
        found.append(adjusted_rand(truth, whisper(graph, "log", 20, np.random.default_rng(seed))[0]))
    assert np.mean(found) >= package


def test_a_graph_without_groups_ends_in_one_class():
    graph, _ = planted(2_000, 40, 0.15, 0.008, seed=0)
    assert len(set(whisper(graph, "log", 50, np.random.default_rng(0))[0])) == 1


@pytest.mark.parametrize("copies", [1, 40])
@pytest.mark.parametrize("seed", range(8))
def test_bipartite_k33_does_not_oscillate(seed: int, copies: int):
    left, right = np.repeat([0, 1, 2], 3), np.tile([3, 4, 5], 3)
    shift = 6 * np.arange(copies)[:, None]
    graph = symmetric_graph(6 * copies, (left + shift).ravel(), (right + shift).ravel(), np.ones(9 * copies))
    _, passes, settled = whisper(graph, "top", 50, np.random.default_rng(seed))
    assert settled and passes < 15


def test_the_result_is_a_fixed_point():
    """Nobody has a louder class among the neighbours than their own: computed here the slow way."""
    graph, _ = planted(300, 6, 0.3, 0.03, seed=3)
    labels, _, settled = whisper(graph, "top", 50, np.random.default_rng(1))
    assert settled
    for node in range(300):
        near = labels[graph.targets[graph.offsets[node] : graph.offsets[node + 1]]]
        assert (near == labels[node]).sum() == np.bincount(near).max()


def test_weightings_by_hand():
    """Node 0 hears class A from one hub (weight .9, four links) and class B from one leaf (weight .5, one
    link)."""
    graph = symmetric_graph(
        6, np.array([0, 0, 1, 1, 1]), np.array([1, 2, 3, 4, 5]), np.array([0.9, 0.5, 0.9, 0.9, 0.9])
    )
    heard = {}
    for name in ("top", "lin", "log"):
        labels, waiting = np.array([0, 1, 2, 1, 1, 1], dtype=np.int32), np.ones(6, dtype=bool)
        block_update(graph, integer_weights(graph, name))(labels, waiting, np.array([0]), np.array([1]))
        heard[name] = int(labels[0])
    assert heard == {"top": 1, "lin": 2, "log": 2}  # .9 > .5;  .9/4 < .5;  .9/log2(5) = .39 < .5


def neighbours_of(vectors: np.ndarray, k: int = 10) -> Neighbours:
    return Neighbours(*top_neighbours(vectors, vectors, k, exclude_self=True))


def sphere(titles: int, dim: int, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(titles, dim))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_collapse_into_one_cluster_is_reported():
    vectors = sphere(400, 3, 0)
    partition = ChineseWhispers(minimum_similarity=0.0, neighbours=200).cluster(
        vectors, neighbours_of(vectors, 200), seed=0
    )
    assert partition.collapsed
    assert (
        f"{(partition.clusters == 0).sum()} of 400 titles" in partition.note
        and "minimum_similarity" in partition.note
    )


def test_isolated_titles_and_small_clusters_are_noise():
    axes = np.eye(6, dtype=np.float32)
    near = np.repeat(axes[:2], [5, 2], axis=0)  # five equal titles, two equal titles, four on their own
    vectors = np.concatenate([near, axes[2:]])
    partition = ChineseWhispers(minimum_size=3).cluster(vectors, neighbours_of(vectors), seed=0)
    assert partition.clusters.tolist() == [0, 0, 0, 0, 0, -1, -1, -1, -1, -1, -1]


def test_too_few_iterations_are_reported():
    vectors = sphere(300, 8, 1)
    partition = ChineseWhispers(iterations=1).cluster(vectors, neighbours_of(vectors), seed=0)
    assert partition.iterations == 1 and "last of 1 iterations" in partition.note
