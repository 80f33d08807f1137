"""fastText's dictionary: words as bytes, found by their hash; nothing of it becomes a Python object until it is asked for.

    int32 size nwords nlabels; int64 ntokens; int64 pruned (version 11 on)
    size × { word, 0x00, int64 count, int8 type (0 word, 1 label) }; pruned × { int32 old, int32 new }

Where an entry ends is known only by reading it, so that the plain scan is a chain of searches. Here a block of bytes is
looked at as a whole: a zero byte is an end if the bytes around it can be an entry's, and a second look makes sure that no
other zero after a byte of a word stands between two ends. Where that fails (counts above 2^56 or damage), the chain is followed.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from storage.arrays import Ragged
from tasks.augment.fasttext.layout import Cursor
from tasks.augment.ngrams import eights, enclose, hash_spans

_TAIL = 10  # zero byte, int64 count, int8 type
_BLOCK = 1 << 18  # bytes: they and what is made of them stay in the processor's cache
_LONG = 128  # bytes that words are compared together for
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
        """Hashes of all entries, rising (of equal ones the first entry first), and their numbers: uint32 both."""
        keys = hash_spans(self.codes, self.starts, self.ends - self.starts).astype(np.uint64) << np.uint64(32)
        keys |= np.arange(len(keys), dtype=np.uint64)
        keys.sort()  # a fifth of the time of argsort
        return (keys >> np.uint64(32)).astype(np.uint32), keys.astype(np.uint32)

    @cached_property
    def _stretches(self) -> tuple[np.uint32, np.ndarray]:
        """A shift that leaves about as many numbers of the hashes as there are entries; how many hashes come before the next number: int32 (numbers,)."""
        bits = len(self).bit_length()
        shift = np.uint32(32 - bits)
        return shift, np.cumsum(np.bincount(self._index[0] >> shift, minlength=1 << bits), dtype=np.int32)

    def ids(self, words: Sequence[str | bytes]) -> np.ndarray:
        """Numbers of words and labels: int64 (words,), -1 for what is not in the dictionary; of doubles the last, as in fastText."""
        text, begins = enclose(words)
        return self.find(text, begins[:-1] + 1, np.diff(begins) - 2)

    def find(self, text: bytes, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Numbers of words that are stretches of bytes, as ``ids``.

        Args:
            text: In which they are.
            starts: int64 (words,): first byte of each.
            lengths: int64 (words,): its bytes.
        """
        hashes, order = self._index
        codes = np.frombuffer(text + bytes(8), dtype=np.uint8)
        wanted = hash_spans(codes, starts, lengths)
        after = self._count_up_to(wanted)
        hit = (after > 0) & (hashes[after - 1] == wanted)
        candidates = order[after - 1].astype(np.int64)
        theirs = self.starts[candidates]
        same = hit & (self.ends[candidates] - theirs == lengths)
        alive, known, asked = np.flatnonzero(same), eights(self.codes), eights(codes)
        for step in range(0, _LONG, 8):
            if not len(alive):
                break
            rest = lengths[alive] - step
            beyond = 8 * (8 - np.minimum(rest, 8))  # bits of bytes after the word's end
            equal = (known[theirs[alive] + step] ^ asked[starts[alive] + step]) << beyond.astype(np.uint64) == 0
            same[alive] = equal
            alive = alive[equal & (rest > 8)]
        for place in np.flatnonzero(same & (lengths > _LONG)):
            same[place] = self.word(candidates[place]) == text[starts[place] : starts[place] + lengths[place]]
        for place in np.flatnonzero(hit & ~same):  # another word of the same hash: look at those before it
            others = order[np.searchsorted(hashes, wanted[place], side="left") : after[place]][::-1]
            word = text[starts[place] : starts[place] + lengths[place]]
            candidates[place] = next((number for number in others if self.word(number) == word), -1)
        return np.where(hit, candidates, -1)

    def _count_up_to(self, wanted: np.ndarray) -> np.ndarray:
        """How many hashes are no higher than each: int32 (wanted,). Down from the end of its stretch, which holds one on average."""
        hashes, (shift, ends) = self._index[0], self._stretches
        after = ends[wanted >> shift]
        higher = np.flatnonzero((after > 0) & (hashes[after - 1] > wanted))
        while len(higher):
            after[higher] -= 1
            below = after[higher]
            higher = higher[(below > 0) & (hashes[below - 1] > wanted[higher])]
        return after

    def rows(self, buckets: Ragged) -> Ragged:
        """Rows of the input matrix for buckets; those that pruning dropped are left out."""
        rows = self.bucket_rows(buckets.values)
        if self.pruned is None:
            return Ragged(buckets.offsets, rows)
        kept = rows >= 0
        return Ragged(np.append(0, np.cumsum(kept))[buckets.offsets], rows[kept])

    def bucket_rows(self, buckets: np.ndarray) -> np.ndarray:
        """Row of the input matrix for each bucket: int64 (buckets,), -1 for one that pruning dropped."""
        if self.pruned is None:
            return np.add(buckets, self.word_count, dtype=np.int64)
        old, new = self.pruned
        if not len(old):
            return np.full(len(buckets), -1, dtype=np.int64)
        place = np.searchsorted(old, buckets).clip(max=len(old) - 1)
        return np.where(old[place] == buckets, new[place] + self.word_count, -1)


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
    n = len(block) - _TAIL - 1
    zero = block == 0
    if n < 3 * _TAIL or zero[0]:
        return np.zeros(0, dtype=np.int64)
    first = zero[1 : n + 1] > zero[:n]  # a zero after another byte: what ends a word does
    likely = first & zero[9 : n + 9] & (block[10 : n + 10] <= 1) & ~zero[11 : n + 11]
    ends = np.flatnonzero(likely) + 1
    if not len(ends):
        return ends
    near = np.flatnonzero(np.diff(ends) < _TAIL + 1)  # two candidates within one tail
    certain = int(near[0]) + 1 if len(near) else len(ends)
    others = np.flatnonzero(first > likely) + 1
    before = np.searchsorted(ends, others)  # ends before each
    stray = np.flatnonzero((before == 0) | (others - ends[before - 1] >= _TAIL))  # not within a tail: it stands in a word, or ends one
    return ends[: min(certain, int(before[stray[0]])) if len(stray) else certain]


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
