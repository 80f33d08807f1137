"""Computes the hash buckets of character n-grams as fastText does, vectorised over all words.

The n-grams of ``<word>`` have ``shortest`` to ``longest`` code points. The bucket of an n-gram is a 32-bit
FNV-1a hash of its UTF-8 bytes (bytes from 0x80 on are sign-extended), modulo the number of buckets. In a word
that is invalid UTF-8, a code point is a byte that is not a continuation byte, and the continuation bytes
after it.

All n-grams of all words are hashed together. Each pass adds one code point to all hashes, so that the hash of
"<tat" is computed from the hash of "<ta". N-grams that cross a word boundary are removed at the end, which is
faster than a check in each pass.

References:
    Bojanowski, Grave, Joulin, Mikolov. Enriching Word Vectors with Subword Information. TACL 5 (2017),
    section 3.2. https://arxiv.org/abs/1607.04606. Hash and order: fastText 0.9.2, Dictionary::hash and
    Dictionary::computeSubwords.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from storage.arrays import Ragged

_FNV_OFFSET, _FNV_PRIME = np.uint32(2166136261), np.uint32(16777619)
PIECE = 8192  # words per batch; a batch fits in the CPU cache
_BATCH_BYTES = 128  # number of leading bytes of all spans that are hashed together


def encode(word: str | bytes) -> bytes:
    """Encodes a word as UTF-8, including unpaired surrogates. A word in bytes is returned unchanged."""
    return word if isinstance(word, bytes) else word.encode("utf-8", "surrogatepass")


def enclose_words(words: Sequence[str | bytes]) -> tuple[bytes, np.ndarray]:
    """Concatenates all words as ``<word>`` in UTF-8. Returns the text and the offsets, int64 (words + 1,)."""
    try:  # if all words are strings, one call encodes them
        text = ("<" + "><".join(words) + ">").encode("utf-8", "surrogatepass")  # pyright: ignore[reportArgumentType, reportCallIssue]
    except TypeError:
        text = b"<" + b"><".join(map(encode, words)) + b">"
    if not len(words):
        return b"", np.zeros(1, dtype=np.int64)
    codes = np.frombuffer(text, dtype=np.uint8)
    begins = np.flatnonzero((codes[:-1] == ord(">")) & (codes[1:] == ord("<"))) + 1
    if len(begins) != len(words) - 1:  # a word contains ><
        begins = np.cumsum([len(encode(word)) + 2 for word in words[:-1]], dtype=np.int64)
    return text, np.concatenate([[0], begins, [len(text)]])


def enclose_pieces(words: Sequence[str | bytes]) -> Iterator[tuple[bytes, np.ndarray]]:
    """Yields the results of ``enclose_words`` for PIECE words at a time; at least one, even without words."""
    for start in range(0, max(len(words), 1), PIECE):
        yield enclose_words(words[start : start + PIECE])


def extract_ngrams(word: str | bytes, shortest: int, longest: int) -> list[bytes]:
    """Returns the n-grams of ``<word>`` in UTF-8, sorted by start and length; none if ``longest`` is 0."""
    text, ngrams = b"<" + encode(word) + b">", []
    heads = [position for position, byte in enumerate(text) if byte & 0xC0 != 0x80] + [len(text)]
    for first in range(len(heads) - 1):
        for end in range(first + max(shortest, 1), min(first + longest, len(heads) - 1) + 1):
            if end - first > 1 or 0 < first < len(heads) - 2:  # a single < or > is not an n-gram
                ngrams.append(text[heads[first] : heads[end]])
    return ngrams


def bucket_ids(words: Sequence[str | bytes], shortest: int, longest: int, buckets: int) -> Ragged:
    """Returns the hash buckets of the n-grams of each word, int64, with duplicates.

    Args:
        words: Words.
        shortest: Minimum number of characters of n-grams.
        longest: Maximum number of characters of n-grams.
        buckets: Number of buckets.
    """
    pieces = [
        bucket_ids_of_text(text, begins, shortest, longest, buckets) for text, begins in enclose_pieces(words)
    ]
    ids = Ragged.concatenate(pieces)
    return Ragged(ids.offsets, ids.values.astype(np.int64))


def bucket_ids_of_text(
    text: bytes,
    begins: np.ndarray,
    shortest: int,
    longest: int,
    buckets: int,
    reserve: np.ndarray | bool = False,
) -> Ragged:
    """Returns the hash buckets of the n-grams of each word of a text, uint32.

    Args:
        text: Words that ``enclose_words`` has concatenated.
        begins: Offsets of the words in the text.
        shortest: Minimum number of characters of n-grams.
        longest: Maximum number of characters of n-grams.
        buckets: Number of buckets.
        reserve: Whether to add an entry before the buckets of each word, bool (words,). The caller sets this
            entry.
    """
    codes, starts = np.frombuffer(text, dtype=np.uint8), begins
    heads = np.arange(len(text) + 1)  # first byte of each code point, then the end
    if not text.isascii():
        heads = np.append(np.flatnonzero((codes & 0xC0) != 0x80), len(text))
        starts = np.searchsorted(heads, begins)
    sizes, point_count = np.diff(starts), len(heads) - 1
    lengths = np.arange(max(shortest, 1), min(longest, int(sizes.max(initial=0))) + 1)
    points_to_word_end = np.repeat(starts[1:], sizes) - np.arange(point_count)
    # For each code point, a reserved entry and the n-grams that begin with the code point.
    is_used = np.zeros((point_count, 1 + len(lengths)), dtype=bool)
    is_used[starts[:-1], 0] = reserve
    for column, length in enumerate(lengths, 1):  # takes a quarter of the time of a broadcast
        is_used[:, column] = points_to_word_end >= length
    counts = np.maximum(sizes[:, None] - (lengths - 1), 0).sum(axis=1) + reserve
    if len(lengths) and lengths[0] == 1:  # a single < or > is not an n-gram
        is_used[starts[:-1], 1] = is_used[starts[1:] - 1, 1] = False
        counts -= 2
    signed_codes = codes.view(np.int8).astype(np.int32).view(np.uint32)
    first_bytes, widths = signed_codes[heads[:-1]], np.diff(heads)
    multibyte = [np.flatnonzero(widths > byte) for byte in range(1, int(widths.max(initial=1)))]
    hashes = np.empty(is_used.shape, dtype=np.uint32)
    state = np.full(point_count, _FNV_OFFSET)
    for step in range(int(lengths[-1]) if len(lengths) else 0):
        active_state = state[: point_count - step]
        active_state ^= first_bytes[step:]
        active_state *= _FNV_PRIME
        for byte, points_with_byte in enumerate(multibyte, 1):  # adds continuation bytes
            current_points = points_with_byte[np.searchsorted(points_with_byte, step) :]
            active_state[current_points - step] = (
                active_state[current_points - step] ^ signed_codes[heads[current_points] + byte]
            ) * _FNV_PRIME
        if step + 1 >= lengths[0]:
            hashes[:, step + 2 - lengths[0]] = state
    ids = hashes[is_used]
    ids -= ids // np.uint32(buckets) * np.uint32(buckets)  # takes a third of the time of %
    return Ragged(np.append(0, np.cumsum(counts)), ids)


def hash_spans(codes: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Hashes spans of bytes as fastText does (FNV-1a): uint32 (spans,)."""
    hashes, signed_bytes = np.full(len(starts), _FNV_OFFSET), codes.view(np.int8)
    for position in range(min(int(lengths.max(initial=0)), _BATCH_BYTES)):
        active_spans = np.flatnonzero(lengths > position)
        byte = signed_bytes[starts[active_spans] + position].astype(np.int32).view(np.uint32)  # sign-extended
        hashes[active_spans] = (hashes[active_spans] ^ byte) * _FNV_PRIME
    for number in np.flatnonzero(lengths > _BATCH_BYTES):
        state = int(hashes[number])
        for byte in codes[starts[number] + _BATCH_BYTES : starts[number] + lengths[number]].tobytes():
            state = ((state ^ (byte if byte < 0x80 else byte | 0xFFFFFF00)) * 16777619) & 0xFFFFFFFF
        hashes[number] = state
    return hashes


def hash_strings(texts: Sequence[str | bytes]) -> np.ndarray:
    """Hashes texts as fastText does (FNV-1a of UTF-8): uint32 (texts,)."""
    text, begins = enclose_words(texts)
    return hash_spans(np.frombuffer(text, dtype=np.uint8), begins[:-1] + 1, np.diff(begins) - 2)
