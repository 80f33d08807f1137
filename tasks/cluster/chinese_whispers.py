"""Chinese Whispers: every title takes the class that weighs most among its neighbours, until none changes.

Each node, at first a class of its own, takes in random order the class c with the greatest sum over its
neighbours j of class c of w_ij (top), w_ij / degree(j) (lin) or w_ij / log2(degree(j) + 1) (log).

Updating all nodes at once never ends on a bipartite graph, one after the other is slow. So the first
iterations update all at once (with immediate updates an early class would spread over two groups,
docs/log), the later ones in blocks of a random order drawn anew: inside a block nodes see the classes from
before it. Nodes none of whose neighbours changed since their last update are skipped: the result is the same.

On 21,800 titles of four English guides (k = 25, minimum_similarity .5), links weighted by shared neighbours
gave 351 clusters, 1.3 % noise, purity .776, run-to-run ARI .93; by the cosine 168, 1.2 %, .742, .90; mutual
ones 25 % noise.

References: C. Biemann, Chinese Whispers: an efficient graph clustering algorithm and its application to
natural language processing problems, TextGraphs 2006. We differ: weights are integers of 24 bits, so that
sums are exact, and a tie goes to the node's own class, else to one drawn from the seed: one seed gives one
result. (Ties to the lowest class ended in one cluster on a graph of equal weights.)
"""

import functools
from collections.abc import Callable
from typing import Literal, no_type_check

import numpy as np

from tasks.cluster.graph import Graph, Neighbours, neighbour_graph, shared_share
from tasks.cluster.partition import Partition, finish
from tasks.compiled import compiled
from tasks.form import configurable, setting
from tasks.neighbours.similarity import nonzero_rows

SYNCHRONOUS = 4  # first iterations, which update all nodes at once
BLOCKS = 16  # of the later ones
EDGES_AT_ONCE = 1 << 18  # whose weights are computed in float64 together: some 6 MiB
WEIGHT_BITS = 24
LOT_BITS = 16  # 2^24 x a million neighbours x 2^16 stays below 2^63
Update = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], int]
Weighting = Literal["top", "lin", "log"]


@configurable
class ChineseWhispers:
    """Chinese Whispers on the graph of nearest neighbours; finds the number of clusters by itself."""

    name: Literal["chinese_whispers"] = "chinese_whispers"
    neighbours: int = setting(
        25,
        "Nearest titles that each title is linked to; 20 to 30 is usual, fewer gives smaller clusters.",
        ge=1,
    )
    minimum_similarity: float = setting(
        0.4,
        "Titles of a lower cosine are not linked; higher gives smaller clusters and more noise.",
        ge=0,
        le=1,
    )
    links: Literal["shared", "cosine"] = setting(
        "shared",
        "Strength of a link: the share of neighbours that both titles have in common, or their cosine. "
        "Shared gives smaller clusters, fewer hubs.",
    )
    sharpness: float = setting(1.0, "Exponent of the strength; higher gives smaller clusters.", gt=0, le=16)
    weighting: Weighting = setting(
        "log",
        "Weight of a neighbour: the strength of its link, divided by nothing (top), by its number of links "
        "(lin), or by that number's logarithm (log).",
    )
    mutual: bool = setting(False, "Link only titles that are among each other's nearest; gives more noise.")
    iterations: int = setting(50, "Most passes over all titles; it stops before when nothing changes.", ge=1)
    minimum_size: int = setting(3, "Smaller clusters count as noise.", ge=1)

    def cluster(self, vectors: np.ndarray, neighbours: Neighbours, *, seed: int) -> Partition:
        """Clusters of the titles; of the vectors it matters only which are zero."""
        nearest = Neighbours(neighbours.ids[:, : self.neighbours], neighbours.cosines[:, : self.neighbours])
        strength = shared_share(nearest) if self.links == "shared" else np.maximum(nearest.cosines, 0)
        np.power(strength, self.sharpness, out=strength)
        least, mutual = self.minimum_similarity, self.mutual
        graph = neighbour_graph(nearest, strength, minimum_similarity=least, mutual=mutual)
        labels, passes, settled = whisper(graph, self.weighting, self.iterations, np.random.default_rng(seed))
        labels[graph.degrees == 0] = -1
        note = (
            "" if settled else f"Some titles still changed their cluster in the last of {passes} iterations."
        )
        remedy, size = "raise minimum_similarity or sharpness, or lower neighbours.", self.minimum_size
        known = nonzero_rows(vectors)
        return finish(labels, known, minimum_size=size, iterations=passes, note=note, remedy=remedy)


def whisper(
    graph: Graph, weighting: Weighting, iterations: int, generator: np.random.Generator
) -> tuple[np.ndarray, int, bool]:
    """Classes of the nodes, int32, shape (nodes,); iterations made; whether the last one changed nothing."""
    nodes = len(graph)
    labels = np.arange(nodes, dtype=np.int32)
    update = block_update(graph, integer_weights(graph, weighting))
    waiting = graph.degrees > 0  # nodes with a neighbour that changed since their last update
    for iteration in range(1, iterations + 1):
        blocks = [np.arange(nodes)]
        if iteration > SYNCHRONOUS:
            blocks = np.array_split(generator.permutation(nodes), min(BLOCKS, max(nodes, 1)))
        moved = 0
        for block in blocks:
            block = np.sort(block[waiting[block]])  # the order does not matter, and memory is read forwards
            if len(block):
                lots = generator.integers(1 << 62, size=len(block), dtype=np.int64)
                moved += update(labels, waiting, block, lots)
        if not moved:
            return labels, iteration, True
    return labels, iterations, not waiting.any()


def integer_weights(graph: Graph, weighting: Weighting) -> np.ndarray:
    """Weight of each edge as its target has it, int32, shape (edges,), from 1 to 2^24."""
    degrees = np.maximum(graph.degrees, 1).astype(np.float64)
    divisor = {"top": np.ones_like(degrees), "lin": degrees, "log": np.log2(degrees + 1)}[weighting]
    volume = (1 << WEIGHT_BITS - 1) / divisor
    weights = np.empty(len(graph.targets), dtype=np.int32)
    for start in range(0, len(weights), EDGES_AT_ONCE):
        part = slice(start, start + EDGES_AT_ONCE)
        exact = graph.weights[part] * volume[graph.targets[part]]
        weights[part] = np.clip(np.rint(exact), 1, (1 << WEIGHT_BITS) - 1)
    return weights


def block_update(graph: Graph, weights: np.ndarray) -> Update:
    """``update(labels, waiting, block, lots)``: the nodes of a block take the class of the greatest sum.

    It changes ``labels`` (int32) and ``waiting`` (bool), which is set for the neighbours of nodes that moved,
    and returns how many did. ``block`` holds nodes with neighbours, ``lots`` int64 that decide ties.

    On the graph of 100,000 titles x 25, one core, 20 passes take .4 s.
    """
    sums = np.zeros(len(graph), dtype=np.int64)
    return functools.partial(compiled(_update_block), graph.offsets, graph.targets, weights, sums)


@no_type_check
def _update_block(offsets, targets, weights, sums, labels, waiting, block, lots):  # sums: zeros, left so
    chosen, most = np.empty(len(block), dtype=labels.dtype), 0
    for place in range(len(block)):
        waiting[block[place]] = False
        most = max(most, offsets[block[place] + 1] - offsets[block[place]])
    classes = np.empty(
        most + 1, dtype=labels.dtype
    )  # of a node's neighbours; one more is written, not counted
    own_lot, lot_mask, shift = (1 << LOT_BITS) - 1, (1 << LOT_BITS) - 2, 62 - LOT_BITS
    moved = 0
    for place in range(len(block)):
        node = block[place]
        first, end = offsets[node], offsets[node + 1]
        own, lot = labels[node], lots[place] | 1
        distinct = 0
        for edge in range(first, end):
            heard = labels[targets[edge]]
            before = sums[heard]
            classes[distinct] = heard
            distinct += before == 0  # no branch: whether a class was heard before is not predictable
            sums[heard] = before + weights[edge]
        loudest = 0
        for number in range(distinct):
            loudest = max(loudest, sums[classes[number]])
        best_lot, best = -1, own
        for number in range(distinct):
            heard = classes[number]
            if sums[heard] == loudest:
                drawn = own_lot if heard == own else (((heard + 1) * lot) >> shift) & lot_mask
                if drawn > best_lot or (drawn == best_lot and heard < best):
                    best_lot, best = drawn, heard
            sums[heard] = 0
        chosen[place] = best
        if best != own:
            moved += 1
            for edge in range(first, end):
                waiting[targets[edge]] = True
    for place in range(len(block)):
        labels[block[place]] = chosen[place]  # only now: the nodes of a block see the classes from before it
    return moved
