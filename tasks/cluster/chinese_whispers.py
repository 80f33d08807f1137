"""Chinese Whispers: every title takes the class that its neighbours whisper loudest, until nobody changes.

Each node starts as a class of its own. In every iteration each node, in random order, takes the class c with the
greatest sum over its neighbours j of class c of

    w_ij                        top
    w_ij / degree(j)            lin
    w_ij / log2(degree(j) + 1)  log

A Python loop over nodes takes half a minute for 100,000 titles; updating all nodes at once never ends on a bipartite
graph (the two sides of K3,3 swap classes for ever). So the first iterations update all nodes at once, and the later ones
block by block: the random order, drawn anew in every iteration, is cut into blocks; inside a block nodes see the classes
as they were before the block, between blocks as they are now. While most nodes still have a class of their own,
immediate updates let the class of an early node spread over two groups within one iteration; synchronous ones do not
(docs/LOG.md). Nodes none of whose neighbours changed since they last looked are skipped, which does not change the result.

On 21,800 titles of four English guides (128 dimensions, k = 25, minimum_similarity .5), links weighed by shared
neighbours gave 351 clusters, 1.3 % noise, purity by category .776, run-to-run ARI .93; weighed by the cosine 168
clusters, 1.2 %, .742, .90; mutual neighbours alone 1,918 clusters and 25 % noise.

References: C. Biemann, Chinese Whispers: an efficient graph clustering algorithm and its application to natural
language processing problems, TextGraphs 2006. We differ: weights are integers of 24 bits, so that sums are exact, and
a tie goes to the node's own class, else by lot drawn from the seed: one seed gives one result. (Ties to the lowest
class would let class 0 flood a graph of equal weights: 2,000 nodes in 40 groups ended in one cluster.) The original
updates one node after the other from the start.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from tasks.cluster.graph import Graph, Neighbours, neighbour_graph, shared_share
from tasks.cluster.loops import loop, whisper_block
from tasks.cluster.partition import Partition, finish
from tasks.form import FORM
from tasks.neighbours.similarity import known_rows

SYNCHRONOUS = 4  # first iterations, which update all nodes at once
BLOCKS = 16  # of the later ones
WEIGHT_BITS = 24
EDGES_AT_ONCE = 1 << 18  # whose weights are computed in float64 together: some 6 MiB
LOT_BITS = 16  # 2^24 x a million neighbours x 2^16 stays below 2^63


@dataclass(frozen=True, kw_only=True)
class ChineseWhispers:
    """Chinese Whispers on the graph of nearest neighbours; finds the number of clusters by itself."""

    name: Literal["chinese_whispers"] = "chinese_whispers"
    neighbours: int = field(default=25, metadata={"description": "Nearest titles that each title is linked to; 20 to 30 is usual, fewer gives smaller clusters.", "ge": 1})
    minimum_similarity: float = field(
        default=0.4, metadata={"description": "Titles of a lower cosine are not linked; higher gives smaller clusters and more noise.", "ge": 0, "le": 1}
    )
    links: Literal["shared", "cosine"] = field(
        default="shared",
        metadata={"description": "Strength of a link: the share of neighbours that both titles have in common, or their cosine. Shared gives smaller clusters, fewer hubs."},
    )
    sharpness: float = field(default=1.0, metadata={"description": "Power to which the strength is raised; higher gives smaller clusters.", "gt": 0, "le": 16})
    weighting: Literal["top", "lin", "log"] = field(
        default="log",
        metadata={"description": "How loud a neighbour is: the strength of its link, divided by nothing (top), by its number of links (lin), or by that number's logarithm (log)."},
    )
    mutual: bool = field(default=False, metadata={"description": "Link only titles that are among each other's nearest: smaller clusters, more noise."})
    iterations: int = field(default=50, metadata={"description": "Most passes over all titles; it stops before when nothing changes.", "ge": 1})
    minimum_size: int = field(default=3, metadata={"description": "Smaller clusters count as noise.", "ge": 1})
    __pydantic_config__: ClassVar = FORM

    def cluster(self, vectors: np.ndarray, neighbours: Neighbours, *, seed: int) -> Partition:
        """Clusters of the titles.

        Args:
            vectors: float32, shape (titles, dim), unit norm or zero; only which rows are zero matters.
            neighbours: Nearest titles of each title; the first ``self.neighbours`` are used.
            seed: Decides the order of the nodes.
        """
        nearest = Neighbours(neighbours.ids[:, : self.neighbours], neighbours.cosines[:, : self.neighbours])
        strength = shared_share(nearest) if self.links == "shared" else np.maximum(nearest.cosines, 0)
        np.power(strength, self.sharpness, out=strength)
        graph = neighbour_graph(nearest, strength, minimum_similarity=self.minimum_similarity, mutual=self.mutual)
        labels, passes, settled = whisper(graph, self.weighting, self.iterations, np.random.default_rng(seed))
        note = "" if settled else f"Some titles still changed their cluster in the last of {passes} iterations."
        return finish(
            np.where(graph.degrees > 0, labels, -1),
            known_rows(vectors),
            minimum_size=self.minimum_size,
            iterations=passes,
            note=note,
            remedy="raise minimum_similarity or sharpness, or lower neighbours.",
        )


def whisper(graph: Graph, weighting: Literal["top", "lin", "log"], iterations: int, generator: np.random.Generator) -> tuple[np.ndarray, int, bool]:
    """Classes of the nodes, int32, shape (nodes,); iterations made; whether the last one changed nothing."""
    nodes = len(graph)
    labels = np.arange(nodes, dtype=np.int32)
    weights = _loudness(graph, weighting)
    pass_on = _compiled_pass(graph, weights) or functools.partial(_pass_on, graph, weights)
    waiting = graph.degrees > 0  # nodes that have not looked since a neighbour changed
    for iteration in range(1, iterations + 1):
        moved = 0
        whole = iteration <= SYNCHRONOUS
        for block in [np.arange(nodes)] if whole else np.array_split(generator.permutation(nodes), min(BLOCKS, max(nodes, 1))):
            block = np.sort(block[waiting[block]])  # order within a block does not matter, and memory is read forwards
            if len(block):
                moved += pass_on(labels, waiting, block, generator.integers(1 << 62, size=len(block), dtype=np.int64))
        if not moved:
            return labels, iteration, True
    return labels, iterations, not waiting.any()


def _pass_on(graph: Graph, weights: np.ndarray, labels: np.ndarray, waiting: np.ndarray, block: np.ndarray, lots: np.ndarray) -> int:
    """The nodes of a block take the loudest class and wake the neighbours of those that moved; returns how many did."""
    waiting[block] = False
    parts = zip(np.array_split(block, BLOCKS), np.array_split(lots, BLOCKS), strict=True)  # a whole graph's edges at once would take gigabytes
    chosen = np.concatenate([_loudest(graph, weights, labels, part, own) for part, own in parts if len(part)])
    moved = block[chosen != labels[block]]
    labels[block] = chosen
    for part in np.array_split(moved, BLOCKS):
        waiting[graph.targets[_edges(graph, part)[0]]] = True
    return len(moved)


def _compiled_pass(graph: Graph, weights: np.ndarray) -> Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], int] | None:
    """``_pass_on`` compiled, for graphs that are large enough."""
    compiled = loop(whisper_block, len(graph))
    sums = np.zeros(len(graph), dtype=np.int64)
    return compiled and (lambda labels, waiting, block, lots: compiled(graph.offsets, graph.targets, weights, labels, waiting, block, lots, LOT_BITS, sums))


def _loudness(graph: Graph, weighting: Literal["top", "lin", "log"]) -> np.ndarray:
    """Integer weight of each edge as its target says it, int32, shape (edges,), from 1 to 2^24."""
    degrees = np.maximum(graph.degrees, 1).astype(np.float64)
    volume = (1 << WEIGHT_BITS - 1) / {"top": np.ones_like(degrees), "lin": degrees, "log": np.log2(degrees + 1)}[weighting]
    weights = np.empty(len(graph.targets), dtype=np.int32)
    for start in range(0, len(weights), EDGES_AT_ONCE):
        part = slice(start, start + EDGES_AT_ONCE)
        weights[part] = np.clip(np.rint(graph.weights[part] * volume[graph.targets[part]]), 1, (1 << WEIGHT_BITS) - 1)
    return weights


def _edges(graph: Graph, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places of the edges of some nodes in the graph's arrays, and for each the node's place in the block."""
    starts, degrees = graph.offsets[block], graph.degrees[block]
    ends = np.cumsum(degrees)
    slots = np.repeat(np.arange(len(block), dtype=np.int64), degrees)
    return np.arange(len(slots), dtype=np.int64) + (starts - ends + degrees)[slots], slots


def _loudest(graph: Graph, weights: np.ndarray, labels: np.ndarray, block: np.ndarray, lots: np.ndarray) -> np.ndarray:
    """The class of the greatest sum for each node of a block, all of which have neighbours; ``lots`` decide ties.

    One sort of packed integers (place in the block, class, weight) does the grouping: numpy sorts plain integers some
    ten times as fast as it finds the order of pairs.
    """
    edges, slots = _edges(graph, block)
    packed = ((slots * len(labels) + labels[graph.targets[edges]]) << WEIGHT_BITS) | weights[edges]
    packed.sort()
    groups = packed >> WEIGHT_BITS
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    sums = np.add.reduceat(packed & ((1 << WEIGHT_BITS) - 1), starts)
    slots, classes = np.divmod(groups[starts], len(labels))
    lot = ((classes + 1) * (lots[slots] | 1)) >> 62 - LOT_BITS & (1 << LOT_BITS) - 2  # even; a multiplicative hash, overflow wanted
    scores = (sums << LOT_BITS) | np.where(classes == labels[block][slots], (1 << LOT_BITS) - 1, lot)
    firsts = np.flatnonzero(np.diff(slots, prepend=-1))
    best = np.flatnonzero(scores == np.maximum.reduceat(scores, firsts)[slots])  # ascending classes within a node
    return classes[best[np.diff(slots[best], prepend=-1) > 0]]
