"""fastText's character n-grams and their hash, to the bit, for many words at once.

``<word>`` is cut at code points into n-grams of ``shortest`` to ``longest``; each is hashed over its UTF-8 bytes by
32-bit FNV-1a in which a byte of 0x80 or more is sign-extended first, and taken modulo the number of buckets. Words may
be bytes that are no UTF-8: a code point is then a byte that is no continuation byte with the continuation bytes after it.

All n-grams of all words are hashed together, one more code point a step: the hash of "<tat" goes on from that of "<ta", and
what runs from one word into the next is dropped in the end (cheaper than to ask at every step).

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
_PIECE, _SPANS = 8192, 32_768  # words, spans at once: they stay in the processor's cache
_LONG = 128  # bytes that spans are hashed together for


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
    characters = np.fromiter(map(len, words), dtype=np.int64, count=len(words))
    try:  # all are strings: one call encodes them
        joined = separator.decode().join(words).encode("utf-8", "surrogatepass")  # pyright: ignore[reportArgumentType, reportCallIssue]
    except TypeError:
        joined = b""
    if words and len(joined) == characters.sum() + len(separator) * (len(words) - 1):
        return joined, characters
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
    heads, firsts = _points(text, np.append(0, np.cumsum(sizes + 2)))
    sizes = np.diff(firsts)
    left = (np.repeat(firsts[1:], sizes) - np.arange(len(heads) - 1)).astype(np.int32)  # points from here to the word's end
    low, longest = max(shortest, 1), min(longest, int(sizes.max(initial=0)))
    real = np.empty((len(left), max(longest - low + 1, 0)), dtype=bool)  # (points, lengths): those that do not run into the next word
    counts = np.zeros(len(sizes), dtype=np.int64)
    for column, length in enumerate(range(low, longest + 1)):
        np.greater_equal(left, length, out=real[:, column])
        counts += np.maximum(sizes - (length - 1), 0)
    if low == 1 and longest:
        real[firsts[:-1], 0] = real[firsts[1:] - 1, 0] = False  # the lone < or >
        counts -= 2
    hashes = _hash_from_everywhere(text, heads, low, longest)[real]
    first, size = np.nonzero(real) if where else (np.zeros(0, dtype=np.int64),) * 2
    return Ngrams(text, np.append(0, np.cumsum(counts)), heads[first], heads[first + size + low] if where else first, hashes)


def _points(text: bytes, begins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First byte of each code point and the text's end, int64 (points + 1,); number of the point at each of the bytes in ``begins``."""
    if text.isascii():
        return np.arange(len(text) + 1), begins
    heads = np.append(np.flatnonzero((np.frombuffer(text, dtype=np.uint8) & 0xC0) != 0x80), len(text))
    return heads, np.searchsorted(heads, begins)


def _hash_from_everywhere(text: bytes, heads: np.ndarray, low: int, longest: int) -> np.ndarray:
    """Hashes of ``low`` to ``longest`` code points from each: uint32 (points, lengths); arbitrary where the text ends before.

    All starts advance together: one more code point is one shifted, contiguous pass, whether or not it runs into the next word.
    """
    points = len(heads) - 1
    signed = np.frombuffer(text, dtype=np.int8).astype(np.int32).view(np.uint32)
    first, sizes = signed[heads[:-1]] if points < len(text) else signed, np.diff(heads)
    more = [np.flatnonzero(sizes > byte) for byte in range(1, int(sizes.max(initial=1)))]  # points that have that byte
    hashes = np.empty((points, max(longest - low + 1, 0)), dtype=np.uint32)
    state = np.full(points, _START)
    for length in range(1, longest + 1):
        ahead = length - 1
        alive = state[: points - ahead]
        alive ^= first[ahead:]
        alive *= _PRIME
        for byte, own in enumerate(more, 1):
            at = own[np.searchsorted(own, ahead) :]
            alive[at - ahead] = (alive[at - ahead] ^ signed[heads[at] + byte]) * _PRIME
        if length >= low:
            hashes[:, length - low] = state
    return hashes


def hash_spans(codes: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """FastText's hash of stretches of bytes.

    Args:
        codes: uint8 (bytes,).
        starts: int64 (spans,).
        lengths: int64 (spans,).

    Returns:
        uint32 (spans,).
    """
    if len(lengths) and int((starts + lengths).max()) + 8 > len(codes):
        codes = np.append(codes, np.zeros(8, dtype=np.uint8))
    short = np.minimum(lengths, _LONG)
    pieces = [_hash_piece(codes, starts[begin : begin + _SPANS], short[begin : begin + _SPANS]) for begin in range(0, len(starts), _SPANS)]
    hashes = np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.uint32)
    for number in np.flatnonzero(lengths > _LONG):
        hashes[number] = _go_on(int(hashes[number]), codes[starts[number] + _LONG : starts[number] + lengths[number]].tobytes())
    return hashes


def eights(codes: np.ndarray) -> np.ndarray:
    """The eight bytes from each byte on as a number, the first the lowest: uint64 (bytes − 7,), a view. Index it, do not compute with it as a whole."""
    return np.ndarray((len(codes) - 7,), dtype="<u8", buffer=codes, strides=(1,))


def _go_on(state: int, text: bytes) -> int:
    """The hash after more bytes, one after the other: a few long spans are not worth passes over all."""
    for byte in text:
        state = ((state ^ (byte if byte < 0x80 else byte | 0xFFFFFF00)) * 16777619) & 0xFFFFFFFF
    return state


def _hash_piece(codes: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Hashes of so many spans as stay in the cache, none longer than _LONG; eight bytes are fetched at once."""
    order = np.argsort(-lengths.astype(np.int16), kind="stable")  # longest first: those that still have a byte are a prefix
    begin, windows = starts[order], eights(codes)
    alive = np.searchsorted(-lengths[order], -np.arange(int(lengths.max(initial=0))), side="left")  # (bytes,): how many are longer
    hashes = np.full(len(starts), _START)
    fetched = np.zeros(0, dtype=np.uint64)
    for position, count in enumerate(alive):
        if position % 8 == 0:
            fetched = windows[begin[:count] + position]
        byte = (fetched[:count] >> np.uint64(8 * (position % 8))).astype(np.int8).astype(np.int32).view(np.uint32)  # sign-extended
        going = hashes[:count]
        going ^= byte
        going *= _PRIME
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
    """Hashes of each word's n-grams, duplicates kept, uint32."""
    parts = [cut(words[start : start + _PIECE], shortest, longest, where=False) for start in range(0, len(words), _PIECE)] or [cut([], shortest, longest)]
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    return Ragged(np.append(0, np.cumsum(lengths)), np.concatenate([part.hashes for part in parts]))


def bucket_ids(words: Sequence[str | bytes], shortest: int, longest: int, buckets: int) -> Ragged:
    """Buckets of each word's n-grams, duplicates kept, int64."""
    hashes = hash_ngrams(words, shortest, longest)
    whole = hashes.values // np.uint32(buckets)  # NumPy divides by one number in vector instructions, but takes no remainder so
    whole *= np.uint32(buckets)
    return Ragged(hashes.offsets, (hashes.values - whole).astype(np.int64))
