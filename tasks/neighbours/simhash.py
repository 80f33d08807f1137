"""SimHash signatures of vectors: bit i says on which side of a random plane i the vector is.

The signatures of similar vectors differ in few bits. A bit differs with probability p = θ/π, where θ is the
angle between the two vectors. If H of k bits differ, the cosine is estimated by

    cos (π H / k) = cos θ ± π sin θ √(p (1 - p) / k)    (M. Charikar, Similarity estimation, STOC 2002).

64 bits are enough to find duplicates, but not to rank neighbours (the error of the cosine is .12 at .7).
Therefore, the vectors of candidates are compared afterwards.
"""

import math
from collections.abc import Iterator

import numpy as np

from tasks.neighbours.rescoring import exact_cosines
from tasks.neighbours.similarity import nonzero_rows

WORD_BITS = 64  # bits per word of a signature
BAND_BITS = 16  # bits of a band, see find_near_duplicates
RECALL = 0.999  # share of pairs with exactly the minimum cosine that find_near_duplicates finds
PAIRS_PER_BATCH = 65_536  # pairs that are compared at once
MAX_OFFSET = 512  # of many titles with equal keys, each is compared only with the next MAX_OFFSET - 1


def draw_planes(dim: int, bits: int, generator: np.random.Generator) -> np.ndarray:
    """Draws normal vectors of random planes, float32 (bits, dim).

    The planes of each group of ``dim`` planes are orthogonal, which reduces the error of estimated angles up
    to π/2 (J. Ji et al., Super-bit LSH, NIPS 2012).

    Args:
        dim: Number of dimensions of vectors.
        bits: Number of planes, a multiple of 64.
        generator: Random generator.
    """
    if bits < WORD_BITS or bits % WORD_BITS:
        raise ValueError(f"bits must be a multiple of {WORD_BITS}, got {bits}")
    normals = generator.normal(size=(bits, dim))
    for start in range(0, bits, dim):
        group = normals[start : start + dim]
        signs = np.sign(generator.normal(size=(len(group), 1)))
        normals[start : start + dim] = np.linalg.qr(group.T)[0].T * signs
    return normals.astype(np.float32)


def signatures(vectors: np.ndarray, planes: np.ndarray) -> np.ndarray:
    """Computes the signatures of vectors, uint64 (titles, bits / 64).

    Bit i is set if the product of the vector and ``planes[i]`` is at least 0.
    """
    words = np.empty((len(vectors), len(planes) // WORD_BITS), dtype=np.uint64)
    for start in range(0, len(vectors), 4_096):
        signs = vectors[start : start + 4_096] @ planes.T >= 0  # all bits of a zero row are set
        words[start : start + 4_096] = np.packbits(signs, axis=1).view(np.uint64)
    return words


def hamming(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Computes the Hamming distances of all pairs of a left and a right signature, uint16 (left, right)."""
    distances = np.zeros((len(left), len(right)), dtype=np.uint16)
    for word in range(left.shape[1]):
        distances += np.bitwise_count(left[:, word, None] ^ right[None, :, word])
    return distances


def count_bands(minimum_cosine: float) -> int:
    """Returns the number of bands that finds a pair of cosine ``minimum_cosine`` with probability RECALL."""
    band_probability = (1 - math.acos(min(1.0, max(-1.0, minimum_cosine))) / math.pi) ** BAND_BITS
    if band_probability >= 1:
        return 1
    return max(1, math.ceil(math.log(1 - RECALL) / math.log(1 - band_probability)))


def find_near_duplicates(
    vectors: np.ndarray, minimum_cosine: float, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Finds nearly all pairs of titles above a cosine without comparing all pairs.

    Signatures are divided into bands of bits. Two titles are compared if they agree in all bits of a band.
    A pair at angle θ agrees in at least one of b bands of r bits with probability 1 - (1 - (1 - θ/π)^r)^b.

    Args:
        vectors: float32 (titles, dim), unit norm or zero.
        minimum_cosine: Minimum cosine of a pair, preferably at least .9: lower values need many bands.
        generator: Random generator that draws the planes.

    Returns:
        The ids of the two titles of each pair, int64 (pairs, 2), the lower id first, and the cosine of each
        pair, float64. Pairs are sorted by descending cosine.
    """
    rows = np.flatnonzero(nonzero_rows(vectors))
    points = vectors[rows]
    band_count = count_bands(minimum_cosine)
    planes = draw_planes(vectors.shape[1], -(-band_count * BAND_BITS // WORD_BITS) * WORD_BITS, generator)
    keys = signatures(points, planes).view(np.uint16)  # (titles, bands)
    near_pairs: np.ndarray = np.zeros(0, dtype=np.int64)
    for band in range(band_count):
        batches = [near_pairs]
        for pairs in _equal_pairs(keys[:, band]):
            left, right = np.divmod(pairs, len(points))
            batches.append(pairs[exact_cosines(points[left], points[right]) >= minimum_cosine])
        near_pairs = np.unique(np.concatenate(batches))
    left, right = np.divmod(near_pairs, max(len(points), 1))
    cosines = exact_cosines(points[left], points[right])
    order = np.lexsort((right, left, -np.round(cosines, 12)))
    return np.stack([rows[left[order]], rows[right[order]]], axis=1), cosines[order]


def _equal_pairs(keys: np.ndarray) -> Iterator[np.ndarray]:
    """Yields pairs of titles with equal keys, in batches: int64 arrays of lower row * titles + higher row."""
    order = np.argsort(keys, kind="stable")  # stable: ids stay ascending within a key
    sorted_keys = keys[order]
    for offset in range(1, MAX_OFFSET):  # difference of positions in sorted_keys
        equal_positions = np.flatnonzero(sorted_keys[offset:] == sorted_keys[:-offset])
        if not len(equal_positions):
            break
        for start in range(0, len(equal_positions), PAIRS_PER_BATCH):
            positions = equal_positions[start : start + PAIRS_PER_BATCH]
            yield order[positions] * len(keys) + order[positions + offset]
