"""fastText's character n-grams and their hash, to the bit, for many words at once.

``<word>`` is cut at code points into n-grams of ``shortest`` to ``longest``; each is hashed over its UTF-8 bytes by
32-bit FNV-1a in which a byte of 0x80 or more is sign-extended first, and taken modulo the number of buckets. Words may
be bytes that are no UTF-8: a code point is then a byte that is no continuation byte with the continuation bytes after it.

All n-grams of all words are hashed together, one more code point a step: the hash of "<tat" goes on from that of "<ta".

References:
    Bojanowski, Grave, Joulin, Mikolov. Enriching Word Vectors with Subword Information. TACL 5 (2017), section 3.2.
    https://arxiv.org/abs/1607.04606. Hash and order: fastText 0.9.2, Dictionary::hash and Dictionary::computeSubwords.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from storage.arrays import Ragged

_START, _PRIME = np.uint32(2166136261), np.uint32(16777619)
_PIECE = 2048  # words


@dataclass(frozen=True)
class Ngrams:
    """N-grams of many words, in fastText's order: word by word, by start, then by length.

    Attributes:
        text: Every ``<word>``, one after the other, as bytes.
        offsets: int64 (words + 1,): where each word's n-grams are.
        starts: int64 (ngrams,): first byte of each in ``text``.
        ends: int64 (ngrams,): byte after its last.
        hashes: uint32 (ngrams,).
    """

    text: bytes
    offsets: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    hashes: np.ndarray

    def names(self, word: int) -> list[bytes]:
        """N-grams of the word of that number."""
        own = slice(self.offsets[word], self.offsets[word + 1])
        return [self.text[start:end] for start, end in zip(self.starts[own], self.ends[own], strict=True)]


def encode(word: str | bytes) -> bytes:
    """Bytes of a word; half a surrogate pair is kept as it is."""
    return word if isinstance(word, bytes) else word.encode("utf-8", "surrogatepass")


def join(words: Sequence[str | bytes], separator: bytes = b"") -> tuple[bytes, np.ndarray]:
    """Words end to end, and the bytes of each: int64 (words,)."""
    encoded = [word if type(word) is bytes else encode(word) for word in words]
    return separator.join(encoded), np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))


def subwords(word: str, shortest: int, longest: int) -> list[str]:
    """N-grams of ``<word>``; a lone < or > is none."""
    return [name.decode("utf-8", "surrogatepass") for name in cut([word], shortest, longest).names(0)]


def cut(words: Sequence[str | bytes], shortest: int, longest: int, *, where: bool = True) -> Ngrams:
    """Cuts words into n-grams and hashes them.

    Args:
        words: Any number.
        shortest: Code points of the shortest n-gram; below 1 is 1.
        longest: Of the longest; 0 gives none.
        where: Whether ``starts`` and ``ends`` are wanted; without them they are empty.
    """
    joined, sizes = join(words, b"><")
    text = b"<" + joined + b">" if len(sizes) else b""
    sizes += 2
    codes = np.frombuffer(text, dtype=np.uint8)
    heads = np.append(np.flatnonzero((codes & 0xC0) != 0x80), len(text))  # (points + 1,): first byte of each code point
    firsts = np.searchsorted(heads, np.append(0, np.cumsum(sizes)))  # (words + 1,): number of each word's first point
    points = np.diff(firsts)
    left = np.repeat(firsts[1:], points) - np.arange(len(heads) - 1)  # points from here to the word's end
    low = max(shortest, 1)
    counts = np.maximum(np.minimum(left, longest) - low + 1, 0)
    skipped = np.zeros(len(counts), dtype=np.int64)  # the lone < or >
    if low == 1 and longest >= 1:
        skipped[firsts[:-1]] = 1
        skipped[firsts[1:] - 1] = 1
    counts -= skipped
    places = np.append(0, np.cumsum(counts))
    starts, ends = (np.empty(places[-1] if where else 0, dtype=np.int64) for _ in range(2))
    hashes = np.empty(places[-1], dtype=np.uint32)
    signed = codes.view(np.int8).astype(np.int32).view(np.uint32)
    plain = len(heads) - 1 == len(text)  # one byte a code point
    at, state = np.arange(len(heads) - 1), np.full(len(heads) - 1, _START, dtype=np.uint32)
    for length in range(1, longest + 1):
        going = left[at] >= length
        if not going.any():
            break
        at, state = at[going], state[going]
        last = at + (length - 1)
        position = heads[last]
        state = (state ^ signed[position]) * _PRIME
        if not plain:
            _absorb_continuations(state, signed, position + 1, heads[last + 1])
        if length >= low:
            kept = slice(None) if length > 1 else skipped[at] == 0
            own = at[kept]
            slots = places[own] + (length - low)
            if low == 1:
                slots -= skipped[own]
            hashes[slots] = state[kept]
            if where:
                starts[slots], ends[slots] = heads[own], heads[own + length]
    return Ngrams(text, places[firsts], starts, ends, hashes)


def _absorb_continuations(state: np.ndarray, signed: np.ndarray, position: np.ndarray, end: np.ndarray) -> None:
    """Goes on with the bytes after the first of each code point, in place."""
    more = np.flatnonzero(position < end)
    while len(more):
        state[more] = (state[more] ^ signed[position[more]]) * _PRIME
        position[more] += 1
        more = more[position[more] < end[more]]


def hash_spans(codes: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """FastText's hash of stretches of bytes.

    Args:
        codes: uint8 (bytes,).
        starts: int64 (spans,).
        lengths: int64 (spans,).

    Returns:
        uint32 (spans,).
    """
    order = np.argsort(-lengths, kind="stable")  # longest first: the spans that still have a byte are a prefix
    begin, falling = starts[order], -lengths[order]
    hashes = np.full(len(starts), _START, dtype=np.uint32)
    for position in range(int(lengths.max()) if len(lengths) else 0):
        count = int(np.searchsorted(falling, -position, side="left"))  # lengths above position
        byte = codes[begin[:count] + position].view(np.int8).astype(np.int32).view(np.uint32)  # sign-extended
        hashes[:count] = (hashes[:count] ^ byte) * _PRIME
    result = np.empty_like(hashes)
    result[order] = hashes
    return result


def hash_strings(texts: Sequence[str | bytes]) -> np.ndarray:
    """FastText's hash of each text.

    Returns:
        uint32, shape (texts,).
    """
    joined, lengths = join(texts)
    return hash_spans(np.frombuffer(joined, dtype=np.uint8), np.cumsum(lengths) - lengths, lengths)


def hash_ngrams(words: Sequence[str | bytes], shortest: int, longest: int) -> Ragged:
    """Hashes of each word's n-grams, duplicates kept, uint32; in pieces that stay in the processor's cache (twice as fast)."""
    parts = [cut(words[start : start + _PIECE], shortest, longest, where=False) for start in range(0, len(words), _PIECE)] or [cut([], shortest, longest)]
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    return Ragged(np.append(0, np.cumsum(lengths)), np.concatenate([part.hashes for part in parts]))


def bucket_ids(words: Sequence[str | bytes], shortest: int, longest: int, buckets: int) -> Ragged:
    """Buckets of each word's n-grams, duplicates kept, int64."""
    hashes = hash_ngrams(words, shortest, longest)
    return Ragged(hashes.offsets, (hashes.values % np.uint32(buckets)).astype(np.int64))
