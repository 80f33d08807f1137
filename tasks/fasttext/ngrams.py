"""fastText's character n-grams and their hash, to the bit, for many words at once.

``<word>`` is cut at code points into n-grams of ``shortest`` to ``longest``; each is hashed over its UTF-8
bytes by 32-bit FNV-1a in which a byte of 0x80 or more is sign-extended first, and taken modulo the number of
buckets. Words may be bytes that are no UTF-8: a code point is then a byte that is no continuation byte, with
the continuation bytes after it.

All n-grams of all words are hashed together, one more code point a pass: the hash of "<tat" continues that of
"<ta". What runs from one word into the next is dropped at the end, which is cheaper than asking at every
step.

References:
    Bojanowski, Grave, Joulin, Mikolov. Enriching Word Vectors with Subword Information. TACL 5 (2017),
    section 3.2. https://arxiv.org/abs/1607.04606. Hash and order: fastText 0.9.2, Dictionary::hash and
    Dictionary::computeSubwords.
"""

from collections.abc import Sequence

import numpy as np

from storage.arrays import Ragged

_START, _PRIME = np.uint32(2166136261), np.uint32(16777619)
PIECE = 8192  # words at once: they stay in the processor's cache
_LONG = 128  # bytes of a span that are hashed together with the others


def encode(word: str | bytes) -> bytes:
    """Bytes of a word; half a surrogate pair is kept as it is."""
    return word if isinstance(word, bytes) else word.encode("utf-8", "surrogatepass")


def enclose(words: Sequence[str | bytes]) -> tuple[bytes, np.ndarray]:
    """Every ``<word>`` as bytes, one after the other; where each begins, and the end: int64 (words + 1,)."""
    try:  # all are strings: one call encodes them
        text = ("<" + "><".join(words) + ">").encode("utf-8", "surrogatepass")  # pyright: ignore[reportArgumentType, reportCallIssue]
    except TypeError:
        text = b"<" + b"><".join(map(encode, words)) + b">"
    if not len(words):
        return b"", np.zeros(1, dtype=np.int64)
    codes = np.frombuffer(text, dtype=np.uint8)
    begins = np.flatnonzero((codes[:-1] == ord(">")) & (codes[1:] == ord("<"))) + 1
    if len(begins) != len(words) - 1:  # a word holds ><
        begins = np.cumsum([len(encode(word)) + 2 for word in words[:-1]], dtype=np.int64)
    return text, np.concatenate([[0], begins, [len(text)]])


def cut(word: str | bytes, shortest: int, longest: int) -> list[bytes]:
    """N-grams of ``<word>`` in fastText's order, by start, then by length; ``longest`` 0 gives none."""
    text, found = b"<" + encode(word) + b">", []
    heads = [place for place, byte in enumerate(text) if byte & 0xC0 != 0x80] + [len(text)]
    for first in range(len(heads) - 1):
        for end in range(first + max(shortest, 1), min(first + longest, len(heads) - 1) + 1):
            if end - first > 1 or 0 < first < len(heads) - 2:  # a lone < or > is none
                found.append(text[heads[first] : heads[end]])
    return found


def bucket_ids(words: Sequence[str | bytes], shortest: int, longest: int, buckets: int) -> Ragged:
    """Buckets of each word's n-grams, duplicates kept, int64."""
    pieces = [enclose(words[start : start + PIECE]) for start in range(0, max(len(words), 1), PIECE)]
    found = Ragged.concatenate([bucket_piece(*piece, shortest, longest, buckets) for piece in pieces])
    return Ragged(found.offsets, found.values.astype(np.int64))


def bucket_piece(
    text: bytes,
    begins: np.ndarray,
    shortest: int,
    longest: int,
    buckets: int,
    room: np.ndarray | bool = False,
) -> Ragged:
    """Buckets of the words that ``enclose`` gave, uint32. Words for which ``room``, bool (words,), is true
    get one more value before their buckets: any number below ``buckets``.
    """
    codes, firsts = np.frombuffer(text, dtype=np.uint8), begins
    heads = np.arange(len(text) + 1)  # first byte of each code point, and the end
    if not text.isascii():
        heads = np.append(np.flatnonzero((codes & 0xC0) != 0x80), len(text))
        firsts = np.searchsorted(heads, begins)
    sizes, points = np.diff(firsts), len(heads) - 1
    lengths = np.arange(max(shortest, 1), min(longest, int(sizes.max(initial=0))) + 1)
    left = np.repeat(firsts[1:], sizes) - np.arange(points)  # points from here to the word's end
    real = np.zeros((points, 1 + len(lengths)), dtype=bool)  # room, then the n-grams from each point
    real[firsts[:-1], 0] = room
    for column, length in enumerate(lengths, 1):  # a fourth of the time of one comparison
        real[:, column] = left >= length
    counts = np.maximum(sizes[:, None] - (lengths - 1), 0).sum(axis=1) + room
    if len(lengths) and lengths[0] == 1:  # a lone < or > is none
        real[firsts[:-1], 1] = real[firsts[1:] - 1, 1] = False
        counts -= 2
    signed = codes.view(np.int8).astype(np.int32).view(np.uint32)
    first, widths = signed[heads[:-1]], np.diff(heads)
    wide = [np.flatnonzero(widths > byte) for byte in range(1, int(widths.max(initial=1)))]
    hashes = np.empty(real.shape, dtype=np.uint32)
    state = np.full(points, _START)
    for ahead in range(int(lengths[-1]) if len(lengths) else 0):
        alive = state[: points - ahead]
        alive ^= first[ahead:]
        alive *= _PRIME
        for byte, own in enumerate(wide, 1):  # further bytes of the points that have them
            at = own[np.searchsorted(own, ahead) :]
            alive[at - ahead] = (alive[at - ahead] ^ signed[heads[at] + byte]) * _PRIME
        if ahead + 1 >= lengths[0]:
            hashes[:, ahead + 2 - lengths[0]] = state
    found = hashes[real]
    found -= found // np.uint32(buckets) * np.uint32(buckets)  # a third of the time of %
    return Ragged(np.append(0, np.cumsum(counts)), found)


def hash_spans(codes: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """FastText's hash of stretches of bytes: uint32 (spans,)."""
    hashes, signed = np.full(len(starts), _START), codes.view(np.int8)
    for position in range(min(int(lengths.max(initial=0)), _LONG)):
        alive = np.flatnonzero(lengths > position)
        byte = signed[starts[alive] + position].astype(np.int32).view(np.uint32)  # sign-extended
        hashes[alive] = (hashes[alive] ^ byte) * _PRIME
    for number in np.flatnonzero(lengths > _LONG):  # a few long spans are not worth passes over all
        state = int(hashes[number])
        for byte in codes[starts[number] + _LONG : starts[number] + lengths[number]].tobytes():
            state = ((state ^ (byte if byte < 0x80 else byte | 0xFFFFFF00)) * 16777619) & 0xFFFFFFFF
        hashes[number] = state
    return hashes


def hash_strings(texts: Sequence[str | bytes]) -> np.ndarray:
    """FastText's hash of each text: uint32 (texts,)."""
    text, begins = enclose(texts)
    return hash_spans(np.frombuffer(text, dtype=np.uint8), begins[:-1] + 1, np.diff(begins) - 2)
