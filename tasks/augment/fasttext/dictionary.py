"""fastText's dictionary: words as bytes, found by their hash; nothing of it becomes a Python object until it is asked for.

    int32 size nwords nlabels; int64 ntokens; int64 pruned (version 11 on)
    size × { word, 0x00, int64 count, int8 type (0 word, 1 label) }; pruned × { int32 old, int32 new }

Where an entry ends is known only by reading it, so that the plain scan is a chain of searches. Here a block of bytes is
looked at as a whole: a zero byte is an end if the bytes around it can be an entry's, and a second look makes sure that no
other zero stands between two ends. Where that fails (counts above 2^56 or damage), the chain is followed.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from storage.arrays import Ragged
from tasks.augment.fasttext.layout import Cursor
from tasks.augment.ngrams import encode, hash_spans, join

_TAIL = 10  # zero byte, int64 count, int8 type
_BLOCK = 1 << 22
EOS = b"</s>"


class Dictionary:
    """Words and labels of a model.

    Args:
        codes: uint8: the mapped file.
        starts: int64 (entries,): first byte of each.
        ends: int64 (entries,): its zero byte.
        words: How many are words; the labels follow them.
        tokens: Tokens of the training text.
        pruned: Old bucket (rising) and its new row, int64 both, of a model whose n-grams were pruned; else None.
    """

    def __init__(self, codes: np.ndarray, starts: np.ndarray, ends: np.ndarray, words: int, tokens: int, pruned: tuple[np.ndarray, np.ndarray] | None) -> None:
        self.codes, self.starts, self.ends, self.word_count, self.tokens, self.pruned = codes, starts, ends, words, tokens, pruned

    def __len__(self) -> int:
        return len(self.starts)

    def word(self, number: int) -> bytes:
        """The word or label of that number."""
        return self.codes[self.starts[number] : self.ends[number]].tobytes()

    def words(self) -> list[bytes]:
        """All words, without the labels."""
        return [self.word(number) for number in range(self.word_count)]

    @property
    def labels(self) -> list[bytes]:
        """All labels."""
        return [self.word(number) for number in range(self.word_count, len(self))]

    @property
    def counts(self) -> np.ndarray:
        """How often each entry stands in the training text: int64 (entries,)."""
        return _counts(self.codes, self.ends)

    @cached_property
    def _index(self) -> tuple[np.ndarray, np.ndarray]:
        hashes = hash_spans(self.codes, self.starts, self.ends - self.starts)
        order = np.argsort(hashes, kind="stable")
        return hashes[order], order.astype(np.int32)

    def ids(self, words: Sequence[str | bytes]) -> np.ndarray:
        """Numbers of words and labels: int64 (words,), -1 for what is not in the dictionary; of doubles the last, as in fastText."""
        hashes, order = self._index
        joined, lengths = join(words)
        codes, starts = np.frombuffer(joined, dtype=np.uint8), np.cumsum(lengths) - lengths
        wanted = hash_spans(codes, starts, lengths)
        after = np.searchsorted(hashes, wanted, side="right")
        hit = (after > 0) & (hashes[after - 1] == wanted)
        candidates = order[after - 1].astype(np.int64)
        same = hit & (self.ends[candidates] - self.starts[candidates] == lengths)
        for step in range(int(lengths[same].max()) if same.any() else 0):
            alive = np.flatnonzero(same & (lengths > step))
            same[alive] = self.codes[self.starts[candidates[alive]] + step] == codes[starts[alive] + step]
        for place in np.flatnonzero(hit & ~same):  # another word of the same hash: look at those before it
            others = order[np.searchsorted(hashes, wanted[place], side="left") : after[place]][::-1]
            candidates[place] = next((number for number in others if self.word(number) == encode(words[int(place)])), -1)
        return np.where(hit, candidates, -1)

    def rows(self, buckets: Ragged) -> Ragged:
        """Rows of the input matrix for buckets; those that pruning dropped are left out."""
        if self.pruned is None:
            return Ragged(buckets.offsets, buckets.values + self.word_count)
        old, new = self.pruned
        if not len(old):
            return Ragged(np.zeros_like(buckets.offsets), np.zeros(0, dtype=np.int64))
        place = np.searchsorted(old, buckets.values).clip(max=len(old) - 1)
        kept = old[place] == buckets.values
        return Ragged(np.append(0, np.cumsum(kept))[buckets.offsets], new[place[kept]] + self.word_count)


def read_dictionary(cursor: Cursor, *, with_pruning: bool, buckets: int) -> Dictionary:
    """Reads and checks the dictionary.

    Raises:
        FastTextError: Sizes that cannot be, an entry that is none, or the file ends within it.
    """
    size, words, labels = cursor.read(struct.Struct("<3i"), "the sizes of the dictionary")
    if min(words, labels) < 0 or words + labels != size or words == 0:
        cursor.fail(f"the dictionary has {size} entries, {words} words and {labels} labels: the last two should make up the first, and one word at least", 12)
    (tokens,) = cursor.read(struct.Struct("<q"), "the number of tokens")
    if tokens < 0:
        cursor.fail(f"the number of tokens is {tokens}, it should be 0 or more", 8)
    pruned = cursor.read(struct.Struct("<q"), "the number of pruned n-grams")[0] if with_pruning else -1
    if not -1 <= pruned <= buckets:
        cursor.fail(f"the number of n-grams kept by pruning is {pruned}, it should be -1 (not pruned) to {buckets}", 8)
    cursor.need(size * (_TAIL + 1), f"a dictionary of {size} entries")
    starts, ends = _scan(cursor, size)
    _check_entries(cursor, starts, ends, words)
    table = None
    if pruned >= 0:
        begin = cursor.offset
        pairs = cursor.take(pruned * 8, f"{pruned} pruned n-grams").view("<i4").reshape(-1, 2).astype(np.int64)
        wrong = np.flatnonzero((pairs < 0).any(axis=1) | (pairs[:, 0] >= buckets) | (pairs[:, 1] >= pruned))
        if len(wrong):
            cursor.offset = begin + 8 * int(wrong[0])
            cursor.fail(f"pruned n-gram {pairs[wrong[0]].tolist()}: it should be a bucket below {buckets} and a row below {pruned}")
        order = np.argsort(pairs[:, 0], kind="stable")
        table = pairs[order, 0], pairs[order, 1]
    return Dictionary(cursor.codes, starts, ends, words, tokens, table)


def _scan(cursor: Cursor, size: int) -> tuple[np.ndarray, np.ndarray]:
    """First and last byte of every entry; the cursor stands after the last."""
    ends = np.empty(size, dtype=np.int64)
    done, position = 0, cursor.offset
    while done < size:
        found = _scan_block(cursor.codes[position : position + _BLOCK]) if size - done > 64 else np.zeros(0, dtype=np.int64)
        found = found[: size - done] + position
        if not len(found):  # the end of the file is near, or the block does not look like one
            found = _follow(cursor, position, min(size - done, 4096), done)
        ends[done : done + len(found)] = found
        done += len(found)
        position = int(found[-1]) + _TAIL
    starts = np.append(cursor.offset, ends[:-1] + _TAIL)
    cursor.offset = position
    return starts, ends


def _scan_block(block: np.ndarray) -> np.ndarray:
    """Ends of the entries at the front of a block, as far as they are certain; the block starts with an entry."""
    if len(block) < 4 * _TAIL:
        return np.zeros(0, dtype=np.int64)
    zero = block == 0
    n = len(block) - _TAIL - 1
    likely = zero[1 : n + 1] & ~zero[:n] & zero[9 : n + 9] & (block[10 : n + 10] <= 1) & ~zero[11 : n + 11]
    ends = np.flatnonzero(likely) + 1
    if not len(ends):
        return ends
    starts = np.append(0, ends[:-1] + _TAIL)
    if (starts >= ends).any():  # two candidates within one tail
        first = int(np.argmax(starts >= ends))
        starts, ends = starts[:first], ends[:first]
        if not first:
            return ends
    spans = np.stack([starts, ends], axis=1).reshape(-1)
    certain = ~np.logical_or.reduceat(zero, spans)[::2]  # no zero within the word
    return ends if certain.all() else ends[: int(np.argmin(certain))]


def _follow(cursor: Cursor, position: int, count: int, done: int) -> np.ndarray:
    """Ends of the next entries by following the chain."""
    ends = []
    for number in range(count):
        end = cursor.data.find(b"\0", position)
        if end < 0 or end + _TAIL > cursor.size:
            cursor.offset = position
            cursor.fail(f"entry {done + number} of the dictionary does not end within the file: it is cut short, or damaged before")
        ends.append(end)
        position = end + _TAIL
    return np.array(ends, dtype=np.int64)


def _counts(codes: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The int64 after each end."""
    counts = np.zeros(len(ends), dtype=np.int64)
    for byte in range(8):
        counts |= codes[ends + (1 + byte)].astype(np.int64) << (8 * byte)
    return counts


def _check_entries(cursor: Cursor, starts: np.ndarray, ends: np.ndarray, words: int) -> None:
    """Words before labels, no negative count."""
    wrong = np.flatnonzero(cursor.codes[ends + 9] != (np.arange(len(ends)) >= words))
    negative = np.flatnonzero(cursor.codes[ends + 8] >= 0x80)
    for rows, place, what in ((wrong, 9, "type"), (negative, 1, "count")):
        if len(rows):
            number = int(rows[0])
            cursor.offset = int(ends[number]) + place
            value = cursor.codes[cursor.offset] if what == "type" else _counts(cursor.codes, ends[number : number + 1])[0]
            expected = f"{int(number >= words)} (the first {words} are words, then come labels)" if what == "type" else "0 or more"
            cursor.fail(f"{what} of entry {number} is {value}, it should be {expected}")
