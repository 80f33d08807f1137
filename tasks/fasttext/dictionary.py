"""Reads the dictionary of a fastText model and looks up words by hash, without an object for each word.

The layout in the file is

    int32 size nwords nlabels; int64 ntokens
    int64 kept (from version 11 on): number of n-gram buckets kept by pruning; -1 if the model is not pruned
    size × { word, 0x00, int64 count, int8 type (0 word, 1 label) }; kept × { int32 bucket, int32 row }
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tasks.fasttext.layout import Cursor
from tasks.fasttext.ngrams import enclose_words, hash_spans

_TAIL_BYTES = 10  # an entry ends in a zero byte, its count (int64) and its type (int8)
EOS = b"</s>"  # end of a sentence


@dataclass(eq=False)
class Dictionary:
    """Dictionary in a memory-mapped fastText file. Each entry is a word or, in a classifier, a label."""

    file_bytes: np.ndarray  # uint8, bytes of the mapped file
    starts: np.ndarray  # int64 (entries,), position of the first byte of each entry
    ends: np.ndarray  # int64 (entries,), position of the zero byte after the text of each entry
    word_count: int  # number of words, which precede the labels
    # Sorted buckets that have a row after pruning, and their row numbers; None if every bucket has a row.
    kept_buckets: tuple[np.ndarray, np.ndarray] | None

    def __len__(self) -> int:
        return len(self.starts)

    def word(self, number: int) -> bytes:
        """Returns the text of entry ``number`` as bytes in UTF-8."""
        return self.file_bytes[self.starts[number] : self.ends[number]].tobytes()

    def words(self) -> list[bytes]:
        """Returns all words, without labels."""
        return [self.word(number) for number in range(self.word_count)]

    @property
    def counts(self) -> np.ndarray:
        """Returns the frequency of each entry in the training text: int64 (entries,)."""
        return _as_uint64(self.file_bytes)[self.ends + 1].view(np.int64)

    @cached_property
    def _index(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the sorted hashes of all entries and the entry number of each hash, uint32 (entries,)."""
        hashes = hash_spans(self.file_bytes, self.starts, self.ends - self.starts).astype(np.uint64)
        hashes_and_numbers = hashes << np.uint64(32) | np.arange(len(hashes), dtype=np.uint64)
        hashes_and_numbers.sort()  # takes a fifth of the time of argsort
        return (hashes_and_numbers >> np.uint64(32)).astype(np.uint32), hashes_and_numbers.astype(np.uint32)

    @cached_property
    def _hash_ranges(self) -> tuple[np.uint32, np.ndarray]:
        """Returns a shift, and the position in the index at which the hashes with each hash >> shift end.

        The shift is chosen so that there are about as many values of hash >> shift as entries.
        """
        bits = len(self).bit_length()
        shift = np.uint32(32 - bits)
        return shift, np.cumsum(np.bincount(self._index[0] >> shift, minlength=1 << bits), dtype=np.int32)

    def _count_up_to(self, queries: np.ndarray) -> np.ndarray:
        """Returns the number of entries whose hash is at most the query, for each query: int32 (queries,)."""
        hashes, (shift, ends) = self._index[0], self._hash_ranges
        counts = ends[queries >> shift]  # equals np.searchsorted(side="right"), in an eighth of the time
        while (is_higher := (counts > 0) & (hashes[counts - 1] > queries)).any():
            counts -= is_higher
        return counts

    def ids(self, words: Sequence[str | bytes]) -> np.ndarray:
        """Returns the entry number of each word or label: int64 (words,); -1 if unknown.

        If the dictionary contains a word several times, the last entry is returned.
        """
        text, begins = enclose_words(words)
        return self.find(text, begins)

    def find(self, text: bytes, begins: np.ndarray) -> np.ndarray:
        """Returns the entry number of each word of a text, int64 (words,); -1 if unknown.

        Args:
            text: Words that ``enclose_words`` has concatenated.
            begins: Offsets of the words in the text.
        """
        starts, lengths = begins[:-1] + 1, np.diff(begins) - 2  # without < and >
        hashes, numbers = self._index
        codes = np.frombuffer(text + bytes(8), dtype=np.uint8)
        queries = hash_spans(codes, starts, lengths)
        counts = self._count_up_to(queries)
        has_equal_hash = (counts > 0) & (hashes[counts - 1] == queries)
        candidates = numbers[counts - 1].astype(np.int64)
        entry_starts = self.starts[candidates]
        is_same_word = has_equal_hash & (self.ends[candidates] - entry_starts == lengths)
        entry_bytes, query_bytes = _as_uint64(self.file_bytes), _as_uint64(codes)
        for step in range(0, int(lengths[is_same_word].max(initial=0)), 8):
            rows = np.flatnonzero(is_same_word & (lengths > step))
            bits = 8 * (8 + step - lengths[rows]).clip(min=0).astype(np.uint64)  # bits after the word
            entry_part, query_part = entry_bytes[entry_starts[rows] + step], query_bytes[starts[rows] + step]
            is_same_word[rows] = (entry_part ^ query_part) << bits == 0
        # After a hash collision, earlier entries with the same hash are compared.
        for query in np.flatnonzero(has_equal_hash & ~is_same_word):
            alternatives = numbers[np.searchsorted(hashes, queries[query]) : counts[query]][::-1]
            word = text[starts[query] : starts[query] + lengths[query]]
            candidates[query] = next((number for number in alternatives if self.word(number) == word), -1)
        return np.where(has_equal_hash, candidates, -1)

    def bucket_rows(self, buckets: np.ndarray) -> np.ndarray:
        """Returns the row in the input matrix of each n-gram bucket, int64 (buckets,); -1 if pruned."""
        if self.kept_buckets is None:
            return np.add(buckets, self.word_count, dtype=np.int64)
        kept_buckets, rows = self.kept_buckets
        if not len(kept_buckets):
            return np.full(len(buckets), -1)
        position = np.searchsorted(kept_buckets, buckets).clip(max=len(kept_buckets) - 1)
        return np.where(kept_buckets[position] == buckets, rows[position] + self.word_count, -1)


def read_dictionary(cursor: Cursor, *, with_pruning: bool, buckets: int) -> Dictionary:
    """Reads the dictionary of a fastText model.

    Args:
        cursor: Position of the dictionary in the file.
        with_pruning: Whether the file contains the number of kept n-grams (from version 11 on).
        buckets: Number of n-gram buckets of the model.

    Raises:
        FastTextError: A size is impossible, or an entry is damaged.
    """
    size, words, labels = cursor.read("<3i", "the sizes of the dictionary")
    if min(words, labels) < 0 or words + labels != size or words == 0:
        reason = (
            f"the dictionary has {size} entries, {words} words and {labels} labels; expected at least "
            "one word, and as many entries as words and labels"
        )
        cursor.fail(reason, 12)
    (tokens,) = cursor.read("<q", "the number of tokens")
    if tokens < 0:
        cursor.fail(f"the number of tokens is {tokens}, expected 0 or more", 8)
    kept_name = "the number of n-grams kept by pruning"
    kept_count = cursor.read("<q", kept_name)[0] if with_pruning else -1
    if not -1 <= kept_count <= buckets:
        cursor.fail(f"{kept_name} is {kept_count}, expected -1 (not pruned) to {buckets}", 8)
    cursor.require_bytes(size * (_TAIL_BYTES + 1), f"a dictionary of {size} entries")
    begin, word_ends = cursor.offset, []
    for number in range(size):
        end = cursor.data.find(b"\0", cursor.offset)
        if end < 0 or end + _TAIL_BYTES > cursor.size:
            cursor.fail(
                f"entry {number} of the dictionary does not end within the file: the file is truncated, "
                "or damaged before this entry"
            )
        word_ends.append(end)
        cursor.offset = end + _TAIL_BYTES
    ends = np.array(word_ends, dtype=np.int64)
    starts = np.append(begin, ends[:-1] + _TAIL_BYTES)
    _check_entries(cursor, ends, words)
    kept_buckets = None
    if kept_count >= 0:
        begin = cursor.offset
        content = cursor.read_bytes(kept_count * 8, f"{kept_count} n-grams kept by pruning")
        pairs = content.view("<i4").reshape(-1, 2).astype(np.int64)
        errors = np.flatnonzero(
            (pairs < 0).any(axis=1) | (pairs[:, 0] >= buckets) | (pairs[:, 1] >= kept_count)
        )
        if len(errors):
            cursor.offset = begin + 8 * int(errors[0])
            cursor.fail(
                f"an n-gram kept by pruning is {pairs[errors[0]].tolist()}, expected a bucket below "
                f"{buckets} and a row below {kept_count}"
            )
        kept_buckets = tuple(pairs[np.argsort(pairs[:, 0], kind="stable")].T)
    return Dictionary(cursor.file_bytes, starts, ends, words, kept_buckets)


def _check_entries(cursor: Cursor, ends: np.ndarray, words: int) -> None:
    types, counts = cursor.file_bytes[ends + 9], _as_uint64(cursor.file_bytes)[ends + 1].view(np.int64)
    for number in np.flatnonzero(types != (np.arange(len(ends)) >= words))[:1]:
        cursor.offset = int(ends[number]) + 9
        cursor.fail(
            f"type of entry {number} is {types[number]}, expected {int(number >= words)} (the first "
            f"{words} entries are words, the others labels)"
        )
    for number in np.flatnonzero(counts < 0)[:1]:
        cursor.offset = int(ends[number]) + 1
        cursor.fail(f"count of entry {number} is {counts[number]}, expected 0 or more")


def _as_uint64(codes: np.ndarray) -> np.ndarray:
    """Returns a view of the eight bytes that start at each byte as a little-endian uint64 (bytes - 7,)."""
    return np.ndarray((len(codes) - 7,), dtype="<u8", buffer=codes, strides=(1,))
