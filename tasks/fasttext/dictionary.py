"""fastText's dictionary: words as bytes, found by their hash; one becomes an object when it is asked for.

int32 size nwords nlabels; int64 ntokens; int64 pruned (version 11 on)
size × { word, 0x00, int64 count, int8 type (0 word, 1 label) }; pruned × { int32 old, int32 new }
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from storage.arrays import Ragged
from tasks.fasttext.layout import Cursor
from tasks.fasttext.ngrams import enclose, hash_spans

_TAIL = 10  # zero byte, int64 count, int8 type
EOS = b"</s>"


@dataclass(eq=False)
class Dictionary:
    """Words and labels of a model."""

    codes: np.ndarray  # uint8: the mapped file
    starts: np.ndarray  # int64 (entries,): first byte of each
    ends: np.ndarray  # int64 (entries,): its zero byte
    word_count: int  # the labels follow the words
    pruned: tuple[np.ndarray, np.ndarray] | None  # old bucket (rising) and its new row, int64

    def __len__(self) -> int:
        return len(self.starts)

    def word(self, number: int) -> bytes:
        """The word or label of that number."""
        return self.codes[self.starts[number] : self.ends[number]].tobytes()

    def words(self) -> list[bytes]:
        """All words, without the labels."""
        return [self.word(number) for number in range(self.word_count)]

    @property
    def counts(self) -> np.ndarray:
        """How often each entry stands in the training text: int64 (entries,)."""
        return _eights(self.codes)[self.ends + 1].view(np.int64)

    @cached_property
    def _index(self) -> tuple[np.ndarray, np.ndarray]:
        """Hashes of all entries, rising (equal ones in order), and their numbers: uint32 both."""
        keys = hash_spans(self.codes, self.starts, self.ends - self.starts).astype(np.uint64) << np.uint64(32)
        keys |= np.arange(len(keys), dtype=np.uint64)
        keys.sort()  # a fifth of the time of argsort
        return (keys >> np.uint64(32)).astype(np.uint32), keys.astype(np.uint32)

    @cached_property
    def _stretches(self) -> tuple[np.uint32, np.ndarray]:
        # A shift that leaves about as many values as there are entries; hashes before the next value.
        bits = len(self).bit_length()
        shift = np.uint32(32 - bits)
        return shift, np.cumsum(np.bincount(self._index[0] >> shift, minlength=1 << bits), dtype=np.int32)

    def _count_up_to(self, wanted: np.ndarray) -> np.ndarray:
        hashes, (shift, ends) = self._index[0], self._stretches
        after = ends[wanted >> shift]  # np.searchsorted from the right, in an eighth of its time
        while (higher := (after > 0) & (hashes[after - 1] > wanted)).any():
            after -= higher
        return after

    def ids(self, words: Sequence[str | bytes]) -> np.ndarray:
        """Numbers of words and labels: int64 (words,), -1 if unknown; of doubles the last, as in fastText."""
        text, begins = enclose(words)
        return self.find(text, begins[:-1] + 1, np.diff(begins) - 2)

    def find(self, text: bytes, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Numbers of words, as ``ids``, that are stretches of a text: first byte and bytes of each, int64."""
        hashes, order = self._index
        codes = np.frombuffer(text + bytes(8), dtype=np.uint8)
        wanted = hash_spans(codes, starts, lengths)
        after = self._count_up_to(wanted)
        hit = (after > 0) & (hashes[after - 1] == wanted)
        candidates = order[after - 1].astype(np.int64)
        theirs = self.starts[candidates]
        same = hit & (self.ends[candidates] - theirs == lengths)
        known, asked = _eights(self.codes), _eights(codes)
        for step in range(0, int(lengths[same].max(initial=0)), 8):
            alive = np.flatnonzero(same & (lengths > step))
            beyond = 8 * (8 + step - lengths[alive]).clip(min=0).astype(np.uint64)  # bits after the word
            same[alive] = (known[theirs[alive] + step] ^ asked[starts[alive] + step]) << beyond == 0
        for place in np.flatnonzero(hit & ~same):  # another word of the same hash: try those before it
            others = order[np.searchsorted(hashes, wanted[place]) : after[place]][::-1]
            word = text[starts[place] : starts[place] + lengths[place]]
            candidates[place] = next((number for number in others if self.word(number) == word), -1)
        return np.where(hit, candidates, -1)

    def bucket_rows(self, buckets: np.ndarray) -> np.ndarray:
        """Row of the input matrix for each bucket: int64 (buckets,), -1 for one that pruning dropped."""
        if self.pruned is None:
            return np.add(buckets, self.word_count, dtype=np.int64)
        old, new = self.pruned
        if not len(old):
            return np.full(len(buckets), -1)
        place = np.searchsorted(old, buckets).clip(max=len(old) - 1)
        return np.where(old[place] == buckets, new[place] + self.word_count, -1)


def keep(values: Ragged, kept: np.ndarray) -> Ragged:
    """The values of a ragged array for which ``kept``, bool (values,), is true."""
    return Ragged(np.append(0, np.cumsum(kept))[values.offsets], values.values[kept])


def read_dictionary(cursor: Cursor, *, with_pruning: bool, buckets: int) -> Dictionary:
    """Reads and checks the dictionary; FastTextError if a size is impossible or an entry is damaged."""
    size, words, labels = cursor.read("<3i", "the sizes of the dictionary")
    if min(words, labels) < 0 or words + labels != size or words == 0:
        expected = "the last two should make up the first, and one word at least"
        reason = f"the dictionary has {size} entries, {words} words and {labels} labels: {expected}"
        cursor.fail(reason, 12)
    (tokens,) = cursor.read("<q", "the number of tokens")
    if tokens < 0:
        cursor.fail(f"the number of tokens is {tokens}, it should be 0 or more", 8)
    pruned = cursor.read("<q", "the number of pruned n-grams")[0] if with_pruning else -1
    if not -1 <= pruned <= buckets:
        expected = f"it should be -1 (not pruned) to {buckets}"
        cursor.fail(f"the number of n-grams kept by pruning is {pruned}, {expected}", 8)
    cursor.need(size * (_TAIL + 1), f"a dictionary of {size} entries")
    begin, found = cursor.offset, []
    for number in range(size):
        end = cursor.data.find(b"\0", cursor.offset)
        if end < 0 or end + _TAIL > cursor.size:
            reason = "does not end within the file: it is cut short, or damaged before"
            cursor.fail(f"entry {number} of the dictionary {reason}")
        found.append(end)
        cursor.offset = end + _TAIL
    ends = np.array(found, dtype=np.int64)
    starts = np.append(begin, ends[:-1] + _TAIL)
    _check_entries(cursor, ends, words)
    table = None
    if pruned >= 0:
        begin = cursor.offset
        taken = cursor.take(pruned * 8, f"{pruned} pruned n-grams")
        pairs = taken.view("<i4").reshape(-1, 2).astype(np.int64)
        wrong = np.flatnonzero((pairs < 0).any(axis=1) | (pairs[:, 0] >= buckets) | (pairs[:, 1] >= pruned))
        if len(wrong):
            cursor.offset = begin + 8 * int(wrong[0])
            expected = f"a bucket below {buckets} and a row below {pruned}"
            cursor.fail(f"pruned n-gram {pairs[wrong[0]].tolist()}: it should be {expected}")
        table = tuple(pairs[np.argsort(pairs[:, 0], kind="stable")].T)
    return Dictionary(cursor.codes, starts, ends, words, table)


def _check_entries(cursor: Cursor, ends: np.ndarray, words: int) -> None:
    types, counts = cursor.codes[ends + 9], _eights(cursor.codes)[ends + 1].view(np.int64)
    for number in np.flatnonzero(types != (np.arange(len(ends)) >= words))[:1]:
        cursor.offset = int(ends[number]) + 9
        expected = f"{int(number >= words)} (the first {words} are words, then come labels)"
        cursor.fail(f"type of entry {number} is {types[number]}, it should be {expected}")
    for number in np.flatnonzero(counts < 0)[:1]:
        cursor.offset = int(ends[number]) + 1
        cursor.fail(f"count of entry {number} is {counts[number]}, it should be 0 or more")


def _eights(codes: np.ndarray) -> np.ndarray:
    """The eight bytes from each byte on as a little-endian number: uint64 (bytes − 7,), a view."""
    return np.ndarray((len(codes) - 7,), dtype="<u8", buffer=codes, strides=(1,))
