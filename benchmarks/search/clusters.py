"""Chinese Whispers beside the package chinese-whispers, and DBSCAN beside scikit-learn, in CPU seconds.

Each method runs in a separate process with one thread, rivals without our environment; scikit-learn uses
cosine and Euclidean distance. Whispers: the input is the graph of the 25 nearest titles. Not included are its
construction, imports, and the additional time of the first call in a process (numba .8 s; 3 s for the first
call on a machine). Planted graphs (2,000 nodes in 40 groups) show whether speed reduces quality, for one seed
each and for the most typical of three seeds each, which a nightly run uses. The mean of a method over 16
graphs has a standard error of up to .006. A rival that is not installed is reported and omitted.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.claims import Claim, is_installed, run
from benchmarks.processes import measure_apart
from benchmarks.search.neighbours import K, world
from tasks.cluster.graph import Graph, Neighbours, neighbour_graph, symmetric_graph
from tasks.cluster.partition import Partition
from tasks.cluster.stability import adjusted_rand, compare

EPS, MIN_SAMPLES = 0.3, 5


def graph_of(titles: int) -> Graph:
    """Returns the graph of the 25 nearest titles of each title by cosine."""
    import torch

    from tasks.neighbours.similarity import top_neighbours

    torch.set_num_threads(1)
    vectors = world(titles)
    return neighbour_graph(Neighbours(*top_neighbours(vectors, vectors, K, exclude_self=True)))


def planted(seed: int, inside: float, between: float) -> tuple[Graph, np.ndarray]:
    """Draws a graph of 2,000 nodes in 40 groups, with edge weights of 1; returns the graph and the groups."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(40), 50)
    rows, columns = np.nonzero(
        np.triu(rng.random((2_000, 2_000)) < np.where(truth[:, None] == truth, inside, between), 1)
    )
    return symmetric_graph(2_000, rows, columns, np.ones(len(rows), np.float32)), truth


def our_whispers(graph: Graph, seed: int = 0) -> Callable[[], Any]:
    from tasks.cluster.chinese_whispers import whisper

    # the first call compiles the loop for large graphs, or reads it from disk
    whisper(graph, "log", 1, np.random.default_rng(seed))
    return lambda: whisper(graph, "log", 20, np.random.default_rng(seed))[0]


# function of a graph and a seed; returns a call that returns classes
Whispers = Callable[..., Callable[[], Any]]


def one_seed(whispers: Whispers, graph: Graph, seed: int) -> np.ndarray:
    """Returns the cluster of each node by Chinese Whispers with one seed."""
    return whispers(graph, seed)()


def typical(whispers: Whispers, graph: Graph, seed: int) -> np.ndarray:
    """Returns the clusters of the seed (of three) that agrees best with the two others."""
    return compare(
        [Partition(clusters=whispers(graph, other)()) for other in range(3 * seed, 3 * seed + 3)]
    ).typical.clusters


def package_whispers(graph: Graph, seed: int = 0) -> Callable[[], Any]:
    import networkx  # pyright: ignore[reportMissingImports]
    from chinese_whispers import chinese_whispers  # pyright: ignore[reportMissingImports]

    built = networkx.Graph()
    built.add_nodes_from(range(len(graph)))
    heads = np.repeat(np.arange(len(graph)), graph.degrees)
    built.add_weighted_edges_from(
        zip(heads.tolist(), graph.targets.tolist(), graph.weights.tolist(), strict=True)
    )

    def whisper() -> np.ndarray:
        chinese_whispers(built, weighting="log", iterations=20, seed=seed)
        return np.array([built.nodes[node]["label"] for node in range(len(graph))])

    return whisper


def edges_and_whispers(titles: int) -> Callable[[], Any]:
    import torch

    from tasks.cluster import ChineseWhispers
    from tasks.neighbours.similarity import top_neighbours

    torch.set_num_threads(os.cpu_count() or 1)
    vectors = world(titles)
    top_neighbours(vectors[:600], vectors[:600], 5)
    return lambda: (
        ChineseWhispers()
        .cluster(vectors, Neighbours(*top_neighbours(vectors, vectors, K, exclude_self=True)), seed=0)
        .count
    )


def our_dbscan(titles: int) -> Callable[[], Any]:
    import torch

    from tasks.cluster.dbscan import density_clusters

    torch.set_num_threads(1)
    vectors = world(titles)
    density_clusters(vectors[:500], EPS, MIN_SAMPLES)
    return lambda: density_clusters(vectors, EPS, MIN_SAMPLES)


def their_dbscan(titles: int) -> Callable[[], Any]:
    from sklearn.cluster import DBSCAN

    vectors = world(titles)
    return lambda: (
        DBSCAN(eps=EPS, min_samples=MIN_SAMPLES, metric="cosine", algorithm="brute").fit(vectors).labels_
    )


def their_euclidean_dbscan(titles: int) -> Callable[[], Any]:
    """Prepares DBSCAN by Euclidean distance, for which scikit-learn has a faster implementation.

    For unit vectors |x - y|² = 2 (1 - cos), so the pairs are the same.
    """
    from sklearn.cluster import DBSCAN

    vectors = world(titles)
    return lambda: (
        DBSCAN(eps=(2 * EPS) ** 0.5, min_samples=MIN_SAMPLES, metric="euclidean", algorithm="brute")
        .fit(vectors)
        .labels_
    )


def whispers_speed(titles: int, rivals: dict[str, Whispers]) -> Iterator[Claim]:
    """Compares CPU seconds of Chinese Whispers on one graph."""
    graph = graph_of(titles)
    mine = measure_apart(our_whispers, graph, threads=1)
    name = f"Chinese Whispers, {titles:,} titles x {K}, CPU s"
    for rival, whispers in rivals.items():
        theirs = measure_apart(whispers, graph, rival=True, threads=1)
        yield Claim(name, mine.cpu, rival, theirs.cpu, aim=0.01, better="less")
    if not rivals:
        yield Claim(name, mine.cpu, better=None)


def whispers_quality(
    graphs: Sequence[tuple[Graph, np.ndarray]], name: str, rivals: dict[str, Whispers]
) -> Iterator[Claim]:
    """Compares the mean adjusted Rand index with the planted groups of graphs."""

    def agreement(whispers: Whispers, judged: Callable[[Whispers, Graph, int], np.ndarray]) -> float:
        classes = [judged(whispers, graph, seed) for seed, (graph, _) in enumerate(graphs)]
        pairs = zip(graphs, classes, strict=True)
        return float(np.mean([adjusted_rand(truth, found) for (_, truth), found in pairs]))

    for about, judged in (("one seed each", one_seed), ("typical of three seeds each", typical)):
        ours = agreement(our_whispers, judged)
        for rival, whispers in rivals.items():
            yield Claim(f"{name}, {about}, ARI", ours, rival, agreement(whispers, judged), aim=1)
        if not rivals:
            yield Claim(f"{name}, {about}, ARI", ours)


def dbscan(titles: int) -> Iterator[Claim]:
    """Compares time, memory and labels of DBSCAN with scikit-learn's."""
    mine, about = measure_apart(our_dbscan, titles, threads=1), f"DBSCAN, {titles:,} titles"
    for rival, prepare, aim in (
        ("scikit-learn, cosine", their_dbscan, 0.25),
        ("scikit-learn, Euclidean", their_euclidean_dbscan, 1.0),
    ):
        theirs = measure_apart(prepare, titles, rival=True, threads=1)
        agreement = adjusted_rand(mine.result, theirs.result)
        yield Claim(f"{about}, CPU s", mine.cpu, rival, theirs.cpu, aim=aim, better="less")
        yield Claim(f"{about}, wall s", mine.wall, rival, theirs.wall, better=None)
        yield Claim(f"{about}, MiB above imports", mine.above, rival, theirs.above, aim=0.2, better="less")
        yield Claim(f"{about}, ARI with labels of {rival}", agreement, aim=0.999)


def measure_clusters(quick: bool) -> Sequence[Claim]:
    """Measures all claims of this file."""
    installed = is_installed("chinese_whispers", "chinese-whispers")
    rivals: dict[str, Whispers] = {"chinese-whispers": package_whispers} if installed else {}
    titles = 5_000 if quick else 100_000
    claims = [*whispers_speed(titles, rivals)]
    for inside, between in ((0.3, 0.002), (0.2, 0.005)):
        graphs = [planted(seed, inside, between) for seed in range(2 if quick else 16)]
        about = f"{len(graphs)} graphs of planted groups ({inside} inside, {between} between)"
        claims += whispers_quality(graphs, f"Chinese Whispers, {about}", rivals)
    if not quick:
        both, name = measure_apart(edges_and_whispers, titles), f"edges and whispers, {titles:,} titles"
        claims.append(Claim(f"{name}, all cores, wall s", both.wall, aim=15, better="less"))
        claims.append(Claim(f"{name}, peak MiB", both.peak, aim=600, better="less"))
    return [*claims, *dbscan(5_000 if quick else 50_000)]


if __name__ == "__main__":
    sys.exit(run(measure_clusters, __doc__ or ""))
