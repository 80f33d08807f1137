"""SimHash: a title's vector as signs on random planes; titles alike in meaning differ in few bits.

One bit differs with probability θ/π, θ the angle of the two vectors, so of k bits H differ with

    θ' = π H / k unbiased, Var θ' = θ (π - θ) / k,    cos θ' ± π sin θ √(p (1 - p) / k),  p = θ / π.

64 bits find duplicates, not neighbours (at cosine .7 the error is ± .12; with 1,024 bits ± .03): what they propose is
scored again by the vectors. Near duplicates are found without comparing all pairs: signatures are cut into bands, and
two titles are compared when they agree in a whole band. A pair at angle θ does so in one of b bands of r bits with
probability 1 - (1 - (1 - θ/π)^r)^b; ``bands_for`` chooses b.

References: M. Charikar, Similarity estimation techniques from rounding algorithms, STOC 2002; J. Ji et al., Super-bit
locality-sensitive hashing, NIPS 2012 (orthogonal planes: less variance for θ up to π/2).
"""

from __future__ import annotations

import math

import numpy as np
import torch

from tasks.neighbours.settling import order_candidates
from tasks.neighbours.similarity import known_rows

WORD = 64  # bits of a word of a signature
BAND_BITS = 16
ROWS_AT_ONCE = 64  # queries compared with the whole base at once
PAIRS_AT_ONCE = 65_536
LARGEST_BUCKET = 512  # of a larger one each title is compared with the next few hundred only


def draw_planes(dim: int, bits: int, generator: np.random.Generator, *, orthogonal: bool = True) -> np.ndarray:
    """Normals of random planes: float32, shape (bits, dim).

    Args:
        dim: Dimensions of the vectors.
        bits: Length of a signature; a multiple of 64.
        generator: Draws them. Keep the planes: signatures of other planes cannot be compared.
        orthogonal: Make each batch of ``dim`` planes orthogonal.

    Raises:
        ValueError: ``bits`` is no multiple of 64.
    """
    if bits < WORD or bits % WORD:
        raise ValueError(f"bits must be a multiple of {WORD}, got {bits}")
    drawn = generator.normal(size=(bits, dim))
    if orthogonal:
        for start in range(0, bits, dim):
            part = drawn[start : start + dim]
            drawn[start : start + dim] = np.linalg.qr(part.T)[0].T * np.sign(generator.normal(size=(len(part), 1)))
    return drawn.astype(np.float32)


def signatures(vectors: np.ndarray, planes: np.ndarray) -> np.ndarray:
    """Signatures: uint64, shape (titles, bits / 64); bit i is set when the vector is on or above plane i."""
    packed = np.empty((len(vectors), len(planes) // WORD), dtype=np.uint64)
    for start in range(0, len(vectors), 4_096):
        signs = vectors[start : start + 4_096] @ planes.T >= 0  # (titles, bits); the product with a zero row is 0: all bits set
        packed[start : start + 4_096] = np.packbits(signs, axis=1).view(np.uint64)
    return packed


def hamming(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Bits that differ, int64; shapes broadcast, the last axis is the signature's words."""
    return np.bitwise_count(left ^ right).sum(axis=-1, dtype=np.int64)


def estimate_cosine(distance: np.ndarray, bits: int) -> np.ndarray:
    """Cosine that so many differing bits speak of."""
    return np.cos(np.pi * np.asarray(distance) / bits)


def standard_error(cosine: float | np.ndarray, bits: int) -> np.ndarray:
    """Standard error of the estimate for vectors of this cosine (independent planes; orthogonal ones have less)."""
    angle = np.arccos(np.clip(cosine, -1, 1))
    share = angle / np.pi
    return np.pi * np.sin(angle) * np.sqrt(share * (1 - share) / bits)


def search(queries: np.ndarray, base: np.ndarray, planes: np.ndarray, k: int, *, candidates: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest of the ``candidates`` titles whose signatures differ least from the query's: approximate.

    Args:
        queries: float32, shape (queries, dim), unit norm or zero; a zero row has no neighbours.
        base: float32, shape (titles, dim), unit norm or zero; zero rows are nobody's neighbours.
        planes: Of both.
        k: Neighbours a query.
        candidates: Titles scored by their vectors, at least k.

    Returns:
        Ids, int64, and cosines, float32, shape (queries, k), ordered as the kernel's: in float64, equal ones by the lower
        id; -1 and 0 where there are fewer titles.
    """
    known, asked = np.flatnonzero(known_rows(base, "base")), np.flatnonzero(known_rows(queries, "queries"))
    ids = np.full((len(queries), k), -1, dtype=np.int64)
    cosines = np.zeros((len(queries), k), dtype=np.float32)
    kept = min(max(candidates, k), len(known))
    if not kept:
        return ids, cosines
    points = torch.from_numpy(base[known])
    ours, theirs = signatures(queries[asked], planes), signatures(base[known], planes)
    bits = len(planes)
    for start in range(0, len(asked), ROWS_AT_ONCE):
        block = ours[start : start + ROWS_AT_ONCE]
        apart = np.zeros((len(block), len(known)), dtype=np.uint16)
        for word in range(bits // WORD):
            apart += np.bitwise_count(block[:, word, None] ^ theirs[None, :, word])
        near = np.argpartition(apart, kept - 1, axis=1)[:, :kept]
        rows = asked[start : start + ROWS_AT_ONCE]
        best, exact = order_candidates(torch.from_numpy(queries[rows]), points, k, torch.from_numpy(near))
        ids[rows, : best.shape[1]], cosines[rows, : best.shape[1]] = known[best], exact
    return ids, cosines


def bands_for(minimum_cosine: float, found: float = 0.999, band_bits: int = BAND_BITS) -> int:
    """Bands that make a pair of this cosine meet with probability ``found`` at least; what is nearer meets more surely."""
    agree = (1 - math.acos(min(1.0, max(-1.0, minimum_cosine))) / math.pi) ** band_bits
    return 1 if agree >= 1 else max(1, math.ceil(math.log(1 - found) / math.log(1 - agree)))


def near_duplicates(vectors: np.ndarray, minimum_cosine: float, generator: np.random.Generator, *, found: float = 0.999) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of titles that are nearly the same, without comparing all with all.

    Args:
        vectors: float32, shape (titles, dim), unit norm or zero.
        minimum_cosine: Least cosine of a pair, best .9 and above: lower ones need many bands.
        generator: Draws the planes.
        found: Share of the pairs at just that cosine that is expected to be found.

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
        met = np.union1d(met, _within(points, _bucket_pairs(keys[:, band]), minimum_cosine))
    left, right = np.divmod(met, max(len(points), 1))
    cosines = _cosines(points, left, right)
    order = np.lexsort((right, left, -np.round(cosines, 12)))
    return np.stack([known[left[order]], known[right[order]]], axis=1), cosines[order]


def _bucket_pairs(keys: np.ndarray) -> np.ndarray:
    """Pairs of titles of the same key, as lower * titles + higher, int64."""
    titles = len(keys)
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    pairs = []
    for step in range(1, LARGEST_BUCKET):
        same = np.flatnonzero(ordered[step:] == ordered[:-step])
        if not len(same):
            break
        pairs.append(order[same] * titles + order[same + step])  # the stable sort keeps ids ascending within a key
    return np.concatenate(pairs) if pairs else np.zeros(0, dtype=np.int64)


def _within(points: np.ndarray, pairs: np.ndarray, minimum_cosine: float) -> np.ndarray:
    """The pairs that are as near as asked for."""
    parts = [part[_cosines(points, *np.divmod(part, len(points))) >= minimum_cosine] for part in np.array_split(pairs, len(pairs) // PAIRS_AT_ONCE + 1)]
    return np.concatenate(parts)


def _cosines(points: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Cosines of pairs in float64."""
    return np.einsum("ij,ij->i", points[left].astype(np.float64), points[right].astype(np.float64))
