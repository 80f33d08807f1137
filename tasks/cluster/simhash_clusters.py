"""SimHash clustering: k-means whose assignment compares signatures instead of vectors, made for very many clusters.

Each centre and each title has a signature of some hundred bits (tasks/neighbours/simhash.py); a title goes to the centre
whose signature differs from its own in the fewest bits. Centres are the means of their titles, brought to unit norm.
With 256 bits the estimate of a cosine of .7 is off by .06, so titles between two centres go astray: it is the comparator
for what signatures cost in quality, and docs/LOG.md has what they gain in time.

References: M. Charikar, Similarity estimation techniques from rounding algorithms, STOC 2002.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from tasks.cluster.graph import Neighbours
from tasks.cluster.partition import Partition, finish
from tasks.form import FORM
from tasks.neighbours.simhash import draw_planes, signatures
from tasks.neighbours.similarity import known_rows

TITLES_AT_ONCE = 256  # times the centres: 2.5 million distances at 10,000 centres, 5 MiB each of 16 bits
DRAWN_APART = 512  # up to so many centres are drawn far from each other; more are drawn by lot


@dataclass(frozen=True, kw_only=True)
class SimHashClusters:
    """SimHash clustering: as many groups as it is told, by signatures; to compare with."""

    name: Literal["simhash"] = "simhash"
    clusters: int = field(default=10_000, metadata={"description": "Number of clusters to begin with; those that lose all their titles are gone.", "ge": 1})
    bits: int = field(default=256, metadata={"description": "Length of a signature, a multiple of 64; more bits, fewer titles astray.", "ge": 64, "le": 8_192, "multiple_of": 64})
    iterations: int = field(default=10, metadata={"description": "Most passes over all titles; it stops before when nothing changes.", "ge": 1})
    neighbours: int = field(default=25, metadata={"description": "Nearest titles kept of each title, for the map; the clusters do not need them.", "ge": 1})
    minimum_size: int = field(default=3, metadata={"description": "Smaller clusters count as noise.", "ge": 1})
    __pydantic_config__: ClassVar = FORM

    def cluster(self, vectors: np.ndarray, neighbours: Neighbours, *, seed: int) -> Partition:
        """Clusters of the titles.

        Args:
            vectors: float32, shape (titles, dim), unit norm or zero; a zero row is noise.
            neighbours: Not looked at.
            seed: Draws the planes and the first centres.
        """
        known = known_rows(vectors)
        labels = np.full(len(vectors), -1, dtype=np.int64)
        points = vectors[known]
        passes = 0
        if len(points):
            generator = np.random.default_rng(seed)
            planes = draw_planes(points.shape[1], self.bits, generator)
            signed = signatures(points, planes)
            centres = draw_centres(points, self.clusters, generator)
            nearest = np.full(len(points), -1, dtype=np.int64)
            moved = True
            while moved and passes < self.iterations:
                before, nearest = nearest, fewest_bits(signed, signatures(centres, planes))
                centres, moved, passes = means(points, nearest, centres), bool((before != nearest).any()), passes + 1
            labels[known] = nearest
        return finish(labels, known, minimum_size=self.minimum_size, iterations=passes, remedy="raise clusters or bits.")


def draw_centres(points: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
    """Titles to begin with: float32, shape (at most count, dim).

    Args:
        points: float32, shape (titles, dim), unit norm.
        count: Centres wanted; as many as there are titles at most.
        generator: Draws them: few each far from those before (farthest first, from a random one on), many by lot.
    """
    count = min(count, len(points))
    if count > DRAWN_APART:
        return points[np.sort(generator.permutation(len(points))[:count])]
    chosen = [int(generator.integers(len(points)))]
    nearest = points @ points[chosen[0]]  # cosine with the nearest centre so far
    while len(chosen) < count and nearest.min() < 1 - 1e-6:
        chosen.append(int(nearest.argmin()))
        np.maximum(nearest, points @ points[chosen[-1]], out=nearest)
    return points[chosen]


def fewest_bits(signed: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """The centre whose signature differs least from each title's, the lowest of equals: int64, shape (titles,).

    Args:
        signed: uint64, shape (titles, words).
        centres: uint64, shape (centres, words).
    """
    nearest = np.empty(len(signed), dtype=np.int64)
    apart = np.empty((TITLES_AT_ONCE, len(centres)), dtype=np.uint16)
    for start in range(0, len(signed), TITLES_AT_ONCE):
        block = signed[start : start + TITLES_AT_ONCE]
        distance = apart[: len(block)]
        distance[:] = 0
        for word in range(signed.shape[1]):
            distance += np.bitwise_count(block[:, word, None] ^ centres[None, :, word])
        nearest[start : start + len(block)] = distance.argmin(axis=1)
    return nearest


def means(points: np.ndarray, labels: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Means of the titles of each centre at unit norm; a centre without titles, or of titles that cancel out, stays: float32."""
    sums = np.zeros(centres.shape, dtype=np.float64)
    order = np.argsort(labels, kind="stable")
    firsts = np.flatnonzero(np.diff(labels[order], prepend=-1))
    sums[labels[order[firsts]]] = np.add.reduceat(points[order], firsts, axis=0, dtype=np.float64)
    norms = np.linalg.norm(sums, axis=1, keepdims=True)
    return np.where(norms > 1e-9, sums / np.maximum(norms, 1e-9), centres).astype(np.float32)
