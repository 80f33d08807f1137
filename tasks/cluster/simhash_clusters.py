"""SimHash clustering: k-means that compares signatures instead of vectors, made for very many clusters.

A title goes to the centre whose signature (tasks/neighbours/simhash.py) differs from its own in the fewest
bits. Centres are the means of their titles, brought to unit norm. With 256 bits the estimate of a cosine of
.7 is off by .06: it is the comparator for what signatures cost in quality and gain in time (docs/log).

References: M. Charikar, Similarity estimation techniques from rounding algorithms, STOC 2002.
"""

from typing import Literal

import numpy as np

from storage.shapes import Float, Int
from tasks.cluster.graph import Neighbours
from tasks.cluster.partition import Partition, finish
from tasks.form import configurable, setting
from tasks.neighbours.simhash import draw_planes, hamming, signatures
from tasks.neighbours.similarity import nonzero_rows

TITLES_AT_ONCE = 256  # times the centres: 2.5 million distances at 10,000 centres, 5 MiB each of 16 bits
DRAWN_APART = 512  # up to so many centres are drawn far from each other; more are drawn at random


@configurable
class SimHashClusters:
    """SimHash clustering: a given number of clusters, by signatures; to compare with."""

    name: Literal["simhash"] = "simhash"
    clusters: int = setting(10_000, "Number of clusters to begin with; empty ones are dropped.", ge=1)
    bits: int = setting(
        256, "Bits of a signature, a multiple of 64; more are more exact.", ge=64, le=8_192, multiple_of=64
    )
    iterations: int = setting(10, "Most passes over all titles; it stops before when nothing changes.", ge=1)
    neighbours: int = setting(25, "Nearest titles kept of each title, for the map.", ge=1)
    minimum_size: int = setting(3, "Smaller clusters count as noise.", ge=1)

    def cluster(self, vectors: np.ndarray, neighbours: Neighbours, *, seed: int) -> Partition:
        """Clusters of the titles; the neighbours are not used."""
        known, labels, passes = nonzero_rows(vectors), np.full(len(vectors), -1, dtype=np.int64), 0
        points = vectors[known]
        if len(points):
            generator = np.random.default_rng(seed)
            planes = draw_planes(points.shape[1], self.bits, generator)
            signed = signatures(points, planes)
            centres = draw_centres(points, self.clusters, generator)
            nearest, moved = np.full(len(points), -1, dtype=np.int64), True
            while moved and passes < self.iterations:
                before, nearest = nearest, fewest_bits(signed, signatures(centres, planes))
                centres = means(points, nearest, centres)
                moved, passes = bool((before != nearest).any()), passes + 1
            labels[known] = nearest
        size, remedy = self.minimum_size, "raise clusters or bits."
        return finish(labels, known, minimum_size=size, iterations=passes, remedy=remedy)


def draw_centres(
    points: Float[np.ndarray, "titles dim"], count: int, generator: np.random.Generator
) -> Float[np.ndarray, "centres dim"]:
    """At most ``count`` titles: a few each far from those before, from a random one on, many at random."""
    count = min(count, len(points))
    if count > DRAWN_APART:
        return points[np.sort(generator.permutation(len(points))[:count])]
    chosen = [int(generator.integers(len(points)))]
    nearest = points @ points[chosen[0]]  # cosine with the nearest centre so far
    while len(chosen) < count and nearest.min() < 1 - 1e-6:
        chosen.append(int(nearest.argmin()))
        np.maximum(nearest, points @ points[chosen[-1]], out=nearest)
    return points[chosen]


def fewest_bits(signed: np.ndarray, centres: np.ndarray) -> Int[np.ndarray, " titles"]:
    """The centre whose signature (uint64, (centres, words)) differs least from each title's; ties: lowest."""
    nearest = np.empty(len(signed), dtype=np.int64)
    for start in range(0, len(signed), TITLES_AT_ONCE):
        part = slice(start, start + TITLES_AT_ONCE)
        nearest[part] = hamming(signed[part], centres).argmin(axis=1)
    return nearest


def means(
    points: Float[np.ndarray, "titles dim"], labels: Int[np.ndarray, " titles"], centres: np.ndarray
) -> Float[np.ndarray, "centres dim"]:
    """Unit means of each centre's titles, float32; one without titles, or whose titles cancel out, stays."""
    sums = np.zeros(centres.shape, dtype=np.float64)
    order = np.argsort(labels, kind="stable")
    firsts = np.flatnonzero(np.diff(labels[order], prepend=-1))
    sums[labels[order[firsts]]] = np.add.reduceat(points[order], firsts, axis=0, dtype=np.float64)
    norms = np.linalg.norm(sums, axis=1, keepdims=True)
    return np.where(norms > 1e-9, sums / np.maximum(norms, 1e-9), centres).astype(np.float32)
