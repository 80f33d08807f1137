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
PIECE, _SPANS = 8192, 32_768  # words, spans at once: they stay in the processor's cache
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


def enclose(words: Sequence[str | bytes]) -> tuple[bytes, np.ndarray]:
    """Every ``<word>`` as bytes, one after the other; where each begins and the last ends: int64 (words + 1,)."""
    try:  # all are strings: one call encodes them
        text = ("<" + "><".join(words) + ">").encode("utf-8", "surrogatepass")  # pyright: ignore[reportArgumentType, reportCallIssue]
    except TypeError:
        text = b"<" + b"><".join(map(encode, words)) + b">"
    codes = np.frombuffer(text, dtype=np.uint8)
    begins = np.flatnonzero((codes[:-1] == ord(">")) & (codes[1:] == ord("<"))) + 1
    if len(begins) != len(words) - 1:  # none at all, or one that holds >< itself
        begins = np.cumsum([len(encode(word)) + 2 for word in words], dtype=np.int64)[:-1]
    return (text, np.concatenate([[0], begins, [len(text)]])) if len(words) else (b"", np.zeros(1, dtype=np.int64))


def subwords(word: str, shortest: int, longest: int) -> list[str]:
    """N-grams of ``<word>``; a lone < or > is none."""
    return [name.decode("utf-8", "surrogatepass") for name in cut([word], shortest, longest).names(0)]


def cut(words: Sequence[str | bytes], shortest: int, longest: int) -> Ngrams:
    """Cuts words into n-grams and hashes them.

    Args:
        words: Any number.
        shortest: Code points of the shortest n-gram; below 1 is 1.
        longest: Of the longest; 0 gives none.
    """
    text, begins = enclose(words)
    heads, real, offsets, hashes = _cut_everywhere(text, begins, shortest, longest, np.zeros(len(words), dtype=bool))
    after, column = np.nonzero(real)
    return Ngrams(text, offsets, heads[after - 1], heads[after - 1 + column + max(shortest, 1)], hashes)


def _cut_everywhere(text: bytes, begins: np.ndarray, shortest: int, longest: int, room: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """First byte of each code point, what _mark gives, and the hash of each n-gram (or place more, where it is arbitrary): uint32."""
    heads, firsts = _points(text, begins)
    low, longest = max(shortest, 1), min(longest, int(np.diff(firsts).max(initial=0)))
    real, offsets = _mark(firsts, low, longest, room)
    return heads, real, offsets, _hash_from_everywhere(text, heads, low, longest)[real]


def _mark(firsts: np.ndarray, low: int, longest: int, room: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which n-grams there are.

    Args:
        firsts: int64 (words + 1,): number of each word's first point.
        low: Points of the shortest n-gram, 1 or more.
        longest: Of the longest.
        room: bool (words,): words that get a place more, before their n-grams.

    Returns:
        bool (1 + points, lengths): those that do not run into the next word. The first row is of no point; the place more is the
        last column of the row before the word's first, where never an n-gram starts. int64 (words + 1,): how many come before each word.
    """
    most = max(longest, 2)
    left = np.full(1 + firsts[-1], most)  # points from here to the word's end, ``most`` for more
    for points in range(most - 1, 0, -1):  # what is written before a word shorter than that is put right by one of the next
        left[firsts[1:] + (1 - points)] = points
    left[0] = 0
    lengths = np.arange(low, max(longest, low) + 1)
    table = (np.arange(most + 1)[:, None] >= lengths) & (lengths <= longest)
    table[:2] = False  # a lone > too
    real = table.view(f"V{table.shape[1]}").take(left).view(bool).reshape(len(left), -1)
    more = np.diff(firsts) - (low - 1)  # n-grams of the shortest length; one less of the next, and so on
    kinds = more.clip(0, max(longest - low + 1, 0))
    counts = kinds * more - kinds * (kinds - 1) // 2 + room
    if low == 1 and longest:
        real[firsts[:-1] + 1, 0] = False  # the lone <
        counts -= 2
    real[firsts[:-1], -1] = room
    return real, np.append(0, np.cumsum(counts))


def _points(text: bytes, begins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First byte of each code point and the text's end, int64 (points + 1,); number of the point at each of the bytes in ``begins``."""
    if text.isascii():
        return np.arange(len(text) + 1), begins
    heads = np.append(np.flatnonzero((np.frombuffer(text, dtype=np.uint8) & 0xC0) != 0x80), len(text))
    return heads, np.searchsorted(heads, begins)


def _hash_from_everywhere(text: bytes, heads: np.ndarray, low: int, longest: int) -> np.ndarray:
    """Hashes of each length from each point: uint32 (1 + points, lengths), the first row arbitrary, as is what the text ends before.

    All starts advance together: one more code point is one shifted, contiguous pass, whether or not it runs into the next word.
    """
    points = len(heads) - 1
    signed = np.frombuffer(text, dtype=np.int8).astype(np.int32).view(np.uint32)
    first, sizes = signed[heads[:-1]] if points < len(text) else signed, np.diff(heads)
    more = [np.flatnonzero(sizes > byte) for byte in range(1, int(sizes.max(initial=1)))]  # points that have that byte
    hashes = np.empty((1 + points, max(longest - low, 0) + 1), dtype=np.uint32)
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
            hashes[1:, length - low] = state
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
    fetched = np.zeros((0, 8), dtype=np.int8)
    for position, count in enumerate(alive):
        if position % 8 == 0:
            fetched = windows[begin[:count] + position].view(np.int8).reshape(-1, 8)
        going = hashes[:count]
        going ^= fetched[:count, position % 8].astype(np.int32).view(np.uint32)  # sign-extended
        going *= _PRIME
    result = np.empty_like(hashes)
    result[order] = hashes
    return result


def hash_strings(texts: Sequence[str | bytes]) -> np.ndarray:
    """FastText's hash of each text.

    Returns:
        uint32, shape (texts,).
    """
    text, begins = enclose(texts)
    return hash_spans(np.frombuffer(text, dtype=np.uint8), begins[:-1] + 1, np.diff(begins) - 2)


def bucket_ids(words: Sequence[str | bytes], shortest: int, longest: int, buckets: int) -> Ragged:
    """Buckets of each word's n-grams, duplicates kept, int64."""
    pieces = [enclose(words[start : start + PIECE]) for start in range(0, len(words), PIECE)] or [enclose([])]
    found = Ragged.concatenate([bucket_piece(*piece, shortest, longest, buckets) for piece in pieces])
    return Ragged(found.offsets, found.values.astype(np.int64))


def bucket_piece(text: bytes, begins: np.ndarray, shortest: int, longest: int, buckets: int, room: np.ndarray | None = None) -> Ragged:
    """Buckets of so many words as stay in the cache, uint32.

    Args:
        text: Every ``<word>``.
        begins: Where each begins, see enclose.
        shortest: Of an n-gram.
        longest: Of an n-gram.
        buckets: How many there are.
        room: bool (words,): words before whose buckets one value more is left, any number below ``buckets``.
    """
    none = np.zeros(len(begins) - 1, dtype=bool)
    _, _, offsets, hashes = _cut_everywhere(text, begins, shortest, longest, none if room is None else room)
    whole = hashes // np.uint32(buckets)  # NumPy divides by one number in vector instructions, but takes no remainder so
    whole *= np.uint32(buckets)
    hashes -= whole
    return Ragged(offsets, hashes)
