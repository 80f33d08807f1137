"""fastText's character n-grams and their hash, to the bit, for many words at once.

``<word>`` is cut at code points into n-grams of ``shortest`` to ``longest``; each is hashed over its UTF-8 bytes by
32-bit FNV-1a in which a byte of 0x80 or more is sign-extended first, and taken modulo the number of buckets.

References:
    Bojanowski, Grave, Joulin, Mikolov. Enriching Word Vectors with Subword Information. TACL 5 (2017), section 3.2.
    https://arxiv.org/abs/1607.04606. Hash and order: fastText 0.9.2, Dictionary::hash and Dictionary::computeSubwords.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from storage.arrays import Ragged

_START, _PRIME = np.uint32(2166136261), np.uint32(16777619)


def subwords(word: str, shortest: int, longest: int) -> list[str]:
    """N-grams of ``<word>`` in fastText's order: by start, then by length; a lone < or > is none."""
    bounded = f"<{word}>"
    length = len(bounded)
    return [
        bounded[start:end]
        for start in range(length)
        for end in range(start + shortest, min(start + longest, length) + 1)
        if not (end - start == 1 and (start == 0 or end == length))
    ]


def hash_strings(texts: Sequence[str]) -> np.ndarray:
    """FastText's hash of each text.

    Returns:
        uint32, shape (texts,).
    """
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    lengths = np.array([len(text) for text in encoded], dtype=np.int64)
    order = np.argsort(-lengths, kind="stable")  # longest first: the texts that still have a byte are a prefix
    joined = np.frombuffer(b"".join(encoded), dtype=np.int8).astype(np.int32).view(np.uint32)  # sign-extended
    starts = (np.cumsum(lengths) - lengths)[order]
    alive = np.searchsorted(-lengths[order], -np.arange(1, (lengths.max() if len(lengths) else 0) + 1), side="right")
    hashes = np.full(len(encoded), _START, dtype=np.uint32)
    with np.errstate(over="ignore"):
        for position, count in enumerate(alive):
            hashes[:count] = (hashes[:count] ^ joined[starts[:count] + position]) * _PRIME
    result = np.empty_like(hashes)
    result[order] = hashes
    return result


def bucket_ids(words: Sequence[str], shortest: int, longest: int, buckets: int) -> Ragged:
    """Buckets of each word's n-grams, duplicates kept, int64."""
    grams = [subwords(word, shortest, longest) for word in words]
    offsets = np.zeros(len(grams) + 1, dtype=np.int64)
    np.cumsum([len(own) for own in grams], out=offsets[1:])
    return Ragged(offsets, (hash_strings([gram for own in grams for gram in own]) % np.uint32(buckets)).astype(np.int64))
