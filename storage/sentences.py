"""Stores the vectors that a sentence encoder has computed, so that each text is encoded only once.

Each encoder has a folder ``HOME/sentences/DIGEST/``. DIGEST is a hash of the encoder's identity, which the
file ``encoder.txt`` contains. Vectors are in immutable files ``NUMBER-CHECKSUM.npy``, called segments. Each
row of a segment has the hash of a text and its float16 vector; texts are not stored. A segment is written to
a temporary file and renamed. Segments are added only by the process that has locked the home and by its
workers. Only the process that has locked the home compacts them. Other processes may read at the same time.
"""

import functools
import hashlib
import os
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import numpy as np

from storage.atomic import replace_file

SEGMENT_ROWS = 1 << 16  # rows per merged segment: 64 MB for 512 dimensions
MAX_SMALL_SEGMENTS = 16  # if more segments have fewer than SEGMENT_ROWS rows, these segments are merged
MAX_UNUSED_RATIO = 4  # maximum ratio of stored rows to used rows; above it, unused rows are removed


def text_keys(texts: Iterable[str]) -> np.ndarray:
    """Hashes texts to keys, uint64 (texts,).

    The probability that any two of ten million texts have the same key is 3e-6.
    """
    digests = (hashlib.blake2b(text.encode(errors="replace"), digest_size=8).digest() for text in texts)
    return np.frombuffer(b"".join(digests), dtype="<u8")


def _row_dtype(dim: int) -> np.dtype:
    return np.dtype([("key", "<u8"), ("vector", "<f2", (dim,))])


def write_segment(folder: Path, number: int, keys: np.ndarray, vectors: np.ndarray) -> Path:
    """Writes vectors (keys, dim), one per key, to a new segment file, and returns its path.

    The name of the file depends only on ``number`` and the content, so a repeated call writes the same file.
    """
    rows = np.empty(len(keys), _row_dtype(vectors.shape[1]))
    rows["key"], rows["vector"] = keys, vectors
    temporary = folder / f"{number:06}-{os.getpid()}.tmp"
    with open(temporary, "wb") as handle:
        np.save(handle, rows)
    segment = folder / f"{number:06}-{_checksum(temporary)}.npy"
    replace_file(temporary, segment, durable=False)  # readers verify the checksum
    return segment


class SentenceStore:
    """On-disk store of the vectors that one sentence encoder has computed, with hashes of texts as keys.

    Args:
        home: The home folder, in which the encoder's folder is created if it is missing.
        identity: Text that identifies the encoder and its version (SentenceEncoder.identity).
        dim: Dimension of the vectors.

    Attributes:
        folder: The encoder's folder.
        damaged_files: Segment files with a wrong checksum or dimension, which are ignored.
    """

    def __init__(self, home: Path, identity: str, dim: int) -> None:
        self.folder = home / "sentences" / hashlib.sha256(identity.encode()).hexdigest()[:16]
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (identity_file := self.folder / "encoder.txt").exists():
            identity_file.write_text(f"{identity}\n", encoding="utf-8")
        self._row_dtype = _row_dtype(dim)
        self._open_segments()

    def __len__(self) -> int:
        return len(self._sorted_index[0])

    def has(self, keys: np.ndarray) -> np.ndarray:
        """Returns, for each key, whether the store has its vector: bool (keys,)."""
        return self._find_positions(keys)[1]

    def take(self, keys: np.ndarray) -> np.ndarray:
        """Returns the vector of each key: float16 (keys, dim).

        Raises:
            KeyError: The store has no vector for a key.
        """
        try:
            return self._take_vectors(keys)
        except FileNotFoundError:  # another process has compacted the segments
            self._open_segments()
            return self._take_vectors(keys)

    def add(self, keys: np.ndarray, vectors: np.ndarray) -> None:
        """Stores vectors (keys, dim), one per key, in a new segment file."""
        self.register(write_segment(self.folder, self.next_number(), keys, vectors), keys)

    def next_number(self) -> int:
        """Returns the number for the next segment that is written."""
        return 1 + max((int(file.name.partition("-")[0]) for file in self._segment_files()), default=0)

    def register(self, segment: Path, keys: np.ndarray) -> None:
        """Makes the vectors of a segment available that ``write_segment`` has written in any process."""
        self._segments[segment] = keys
        self.__dict__.pop("_sorted_index", None)

    def compact(self, used_keys: np.ndarray) -> None:
        """Merges small segments if there are more than MAX_SMALL_SEGMENTS, and removes unused rows.

        Unused rows are removed if the store has more than MAX_UNUSED_RATIO times as many rows as are used.
        Also removes damaged segments and temporary files of killed processes. Other processes may read the
        remaining rows at the same time.

        Args:
            used_keys: Keys of the texts that are still used.
        """
        for file in (*self.damaged_files, *self.folder.glob("*.tmp")):
            file.unlink(missing_ok=True)
        removes_unused = len(self) > MAX_UNUSED_RATIO * self.has(np.unique(used_keys)).sum()
        segments_to_replace = [
            file for file, keys in self._segments.items() if removes_unused or len(keys) < SEGMENT_ROWS
        ]
        if not removes_unused and len(segments_to_replace) <= MAX_SMALL_SEGMENTS:
            return
        keys = np.unique(np.concatenate([self._segments[file] for file in segments_to_replace]))
        keys = keys[np.isin(keys, used_keys)] if removes_unused else keys
        for begin in range(0, len(keys), SEGMENT_ROWS):
            key_block = keys[begin : begin + SEGMENT_ROWS]
            self.add(key_block, self._take_vectors(key_block))
        for file in segments_to_replace:
            file.unlink()
        self._open_segments()

    def _segment_files(self) -> list[Path]:
        return sorted(self.folder.glob("*-*.npy"))

    def _open_segments(self) -> None:
        while True:
            with suppress(FileNotFoundError):  # another process has compacted the segments: try again
                files = self._segment_files()
                intact_files = [file for file in files if self._is_intact(file)]
                self._segments = {file: np.array(self._map_rows(file)["key"]) for file in intact_files}
                self.damaged_files = [file for file in files if file not in self._segments]
                self.__dict__.pop("_sorted_index", None)
                return

    def _is_intact(self, file: Path) -> bool:
        return (
            _checksum(file) == file.stem.partition("-")[2] and self._map_rows(file).dtype == self._row_dtype
        )

    @functools.cached_property
    def _sorted_index(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns three arrays (keys,): the sorted keys, and the segment and row with the vector of each key.

        A segment is an index into ``_segments``.
        """
        lengths = [len(keys) for keys in self._segments.values()]
        segments = np.repeat(np.arange(len(lengths)), lengths)
        rows = np.concatenate([np.zeros(0, np.int64), *map(np.arange, lengths)])
        all_keys = np.concatenate([np.zeros(0, "<u8"), *self._segments.values()])
        keys, positions = np.unique(all_keys, return_index=True)
        return keys, segments[positions], rows[positions]

    def _find_positions(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns two arrays (keys,): positions in ``_sorted_index``, and whether the keys are stored."""
        sorted_keys = self._sorted_index[0]
        positions = np.searchsorted(sorted_keys, keys)
        positions[positions == len(sorted_keys)] = 0
        is_stored = sorted_keys[positions] == keys if len(sorted_keys) else np.zeros(len(keys), dtype=bool)
        return positions, is_stored

    def _take_vectors(self, keys: np.ndarray) -> np.ndarray:
        positions, is_stored = self._find_positions(keys)
        if missing_count := int((~is_stored).sum()):
            problem = f"{missing_count} of {len(keys)} texts have no vector in {self.folder}"
            raise KeyError(f"{problem}; encode them first")
        vectors = np.empty((len(keys), *self._row_dtype["vector"].shape), np.float16)
        _, segments, rows = self._sorted_index
        files = list(self._segments)
        for segment in np.unique(segments[positions]):  # one memory map at a time, to limit resident memory
            in_segment = np.flatnonzero(segments[positions] == segment)
            vectors[in_segment] = self._map_rows(files[segment])["vector"][rows[positions[in_segment]]]
        return vectors

    @staticmethod
    def _map_rows(file: Path) -> np.ndarray:
        return np.load(file, mmap_mode="r")


def _checksum(file: Path) -> str:
    """Computes the CRC-32 of a file as eight hexadecimal digits (at about 1 GB/s)."""
    crc = 0
    with open(file, "rb") as handle:
        while block := handle.read(1 << 20):
            crc = zlib.crc32(block, crc)
    return f"{crc:08x}"
