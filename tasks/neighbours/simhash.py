"""SimHash: a title's vector as signs on random planes; titles of similar vectors differ in few bits.

One bit differs with probability p = θ/π, θ the angle of the two vectors, so from H of k differing bits

    cos (π H / k) = cos θ ± π sin θ √(p (1 - p) / k)    (M. Charikar, Similarity estimation, STOC 2002).

64 bits find duplicates, not neighbours (at cosine .7 ± .12): candidates are scored again by their vectors.
"""

import math

import numpy as np

from tasks.neighbours.rescoring import exact_cosines, no_neighbours, order_candidates
from tasks.neighbours.similarity import known_rows

WORD = 64  # bits of a word of a signature
BAND_BITS = 16
ROWS_AT_ONCE = 64  # queries compared with the whole base at once
PAIRS_AT_ONCE = 65_536
LARGEST_BUCKET = 512  # in a larger one each title is compared with the next few hundred only


def draw_planes(
    dim: int, bits: int, generator: np.random.Generator, *, orthogonal: bool = True
) -> np.ndarray:
    """Normals of random planes: float32, shape (bits, dim); ``bits`` is a multiple of 64.

    Each ``dim`` planes are orthogonal: less variance for θ ≤ π/2 (J. Ji et al., Super-bit LSH, NIPS 2012).
    """
    if bits < WORD or bits % WORD:
        raise ValueError(f"bits must be a multiple of {WORD}, got {bits}")
    drawn = generator.normal(size=(bits, dim))
    for start in range(0, bits, dim) if orthogonal else ():
        part = drawn[start : start + dim]
        signs = np.sign(generator.normal(size=(len(part), 1)))
        drawn[start : start + dim] = np.linalg.qr(part.T)[0].T * signs
    return drawn.astype(np.float32)


def signatures(vectors: np.ndarray, planes: np.ndarray) -> np.ndarray:
    """Signatures: uint64, shape (titles, bits / 64); bit i is set when the vector is on or above plane i."""
    packed = np.empty((len(vectors), len(planes) // WORD), dtype=np.uint64)
    for start in range(0, len(vectors), 4_096):
        signs = vectors[start : start + 4_096] @ planes.T >= 0  # of a zero row all bits are set
        packed[start : start + 4_096] = np.packbits(signs, axis=1).view(np.uint64)
    return packed


def hamming(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Bits that differ between each left and each right signature: uint16, shape (left, right)."""
    apart = np.zeros((len(left), len(right)), dtype=np.uint16)
    for word in range(left.shape[1]):
        apart += np.bitwise_count(left[:, word, None] ^ right[None, :, word])
    return apart


def search(
    queries: np.ndarray, base: np.ndarray, planes: np.ndarray, k: int, *, candidates: int = 200
) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest of the ``candidates`` titles whose signatures differ least from the query's: approximate.

    Arguments and results are top_neighbours', with the planes of both signatures.
    """
    known, asked = np.flatnonzero(known_rows(base, "base")), np.flatnonzero(known_rows(queries, "queries"))
    ids, cosines = no_neighbours(len(queries), k)
    kept = min(max(candidates, k), len(known))
    if not kept:
        return ids, cosines
    points = base[known]
    ours, theirs = signatures(queries[asked], planes), signatures(points, planes)
    for start in range(0, len(asked), ROWS_AT_ONCE):
        rows = asked[start : start + ROWS_AT_ONCE]
        apart = hamming(ours[start : start + ROWS_AT_ONCE], theirs)
        near = np.argpartition(apart, kept - 1, axis=1)[:, :kept]
        best, exact = order_candidates(queries[rows], points, k, near)
        ids[rows, : best.shape[1]], cosines[rows, : best.shape[1]] = known[best], exact
    return ids, cosines


def bands_for(minimum_cosine: float, found: float = 0.999, band_bits: int = BAND_BITS) -> int:
    """Bands in which a pair of at least this cosine agrees once with probability ``found`` at least."""
    agree = (1 - math.acos(min(1.0, max(-1.0, minimum_cosine))) / math.pi) ** band_bits
    return 1 if agree >= 1 else max(1, math.ceil(math.log(1 - found) / math.log(1 - agree)))


def near_duplicates(
    vectors: np.ndarray, minimum_cosine: float, generator: np.random.Generator, *, found: float = 0.999
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of nearly equal titles, without comparing all with all.

    Signatures are cut into bands; titles that agree in a whole band are compared. A pair at angle θ does so
    in one of b bands of r bits with probability 1 - (1 - (1 - θ/π)^r)^b.

    Args:
        vectors: float32, shape (titles, dim), unit norm or zero.
        minimum_cosine: Least cosine of a pair, best .9 and above: lower ones need many bands.
        generator: Draws the planes.
        found: Expected recall of the pairs at exactly that cosine.

    Returns:
        Pairs, int64, shape (pairs, 2), the lower id first, nearest first; and their cosines, float64.
    """
    known = np.flatnonzero(known_rows(vectors))
    points = vectors[known]
    bands = bands_for(minimum_cosine, found)
    planes = draw_planes(vectors.shape[1], -(-bands * BAND_BITS // WORD) * WORD, generator)
    keys = signatures(points, planes).view(np.uint16)  # (titles, bands)
    met: np.ndarray = np.zeros(0, dtype=np.int64)
    for band in range(bands):
        pairs = _bucket_pairs(keys[:, band])
        for part in np.array_split(pairs, len(pairs) // PAIRS_AT_ONCE + 1):
            left, right = np.divmod(part, max(len(points), 1))
            met = np.union1d(met, part[exact_cosines(points[left], points[right]) >= minimum_cosine])
    left, right = np.divmod(met, max(len(points), 1))
    cosines = exact_cosines(points[left], points[right])
    order = np.lexsort((right, left, -np.round(cosines, 12)))
    return np.stack([known[left[order]], known[right[order]]], axis=1), cosines[order]


def _bucket_pairs(keys: np.ndarray) -> np.ndarray:
    """Pairs of titles of the same key, as lower * titles + higher, int64."""
    order = np.argsort(keys, kind="stable")  # ids stay ascending within a key
    ordered, pairs = keys[order], [np.zeros(0, dtype=np.int64)]
    for step in range(1, LARGEST_BUCKET):
        same = np.flatnonzero(ordered[step:] == ordered[:-step])
        if not len(same):
            break
        pairs.append(order[same] * len(keys) + order[same + step])
    return np.concatenate(pairs)
