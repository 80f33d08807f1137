"""Sentence vectors of texts, kept in the home across nights, so that a text is encoded once.

``home/sentences/DIGEST/`` is one encoder's: ``encoder.txt`` holds its identity, whose digest names the
folder, and each ``NUMBER-CHECKSUM.npy`` is a piece: rows of a text's key (hash) and its float16 vector. A
piece is written beside its place, renamed, and never changed; a killed run leaves the pieces before it. The
home's one writer adds and compacts; others may read meanwhile. Texts are not kept.
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

FULL_PIECE = 1 << 16  # rows that small pieces are merged into: 64 MB of 512 numbers
SMALL_PIECES = 16  # more than these are merged
KEPT = 4  # times the rows in use: a store of more drops what is not in use


def text_keys(texts: Iterable[str]) -> np.ndarray:
    """uint64 (texts,): hashes; among ten million texts two share one with probability 3e-6."""
    digests = (hashlib.blake2b(text.encode(errors="replace"), digest_size=8).digest() for text in texts)
    return np.frombuffer(b"".join(digests), dtype="<u8")


class SentenceStore:
    """The kept vectors of one encoder.

    Args:
        home: Of GuideSpace; the encoder's folder in it is made if missing.
        identity: Of the encoder (SentenceEncoder.identity).
        dim: Numbers in its vectors.

    Attributes:
        folder: The encoder's.
        damaged: Files that are not what was written; their texts count as never encoded.
    """

    def __init__(self, home: Path, identity: str, dim: int) -> None:
        self.folder = home / "sentences" / hashlib.sha256(identity.encode()).hexdigest()[:16]
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (about := self.folder / "encoder.txt").exists():
            about.write_text(f"{identity}\n", encoding="utf-8")
        self._row = np.dtype([("key", "<u8"), ("vector", "<f2", (dim,))])
        self._open()

    def __len__(self) -> int:
        return len(self._index[0])

    def has(self, keys: np.ndarray) -> np.ndarray:
        """Whether the vector of each is kept: bool (keys,)."""
        return self._find(keys)[1]

    def take(self, keys: np.ndarray) -> np.ndarray:
        """float16 (keys, dim): their vectors; a KeyError where one is not kept."""
        try:
            return self._take(keys)
        except FileNotFoundError:  # another process has compacted since this one opened
            self._open()
            return self._take(keys)

    def add(self, keys: np.ndarray, vectors: np.ndarray) -> None:
        """Keeps vectors (keys, dim) as a piece, which is there when this returns."""
        rows = np.empty(len(keys), self._row)
        rows["key"], rows["vector"] = keys, vectors
        temporary = self.folder / f"{os.getpid()}.tmp"
        with open(temporary, "wb") as handle:
            np.save(handle, rows)
        number = 1 + max((int(file.name.partition("-")[0]) for file in self._listed()), default=0)
        piece = self.folder / f"{number:06}-{_checksum(temporary)}.npy"
        replace_file(temporary, piece, durable=False)  # a reader verifies the checksum
        self._pieces[piece] = keys
        self.__dict__.pop("_index", None)

    def compact(self, used: np.ndarray) -> None:
        """Merges many small pieces; drops rows that are not ``used`` where these are less than a KEPT-th.

        Removes damaged pieces and what killed runs left. A reader finds every other row at any instant.
        """
        for stale in (*self.damaged, *self.folder.glob("*.tmp")):
            stale.unlink(missing_ok=True)
        drop = len(self) > KEPT * self.has(np.unique(used)).sum()
        old = [file for file, keys in self._pieces.items() if drop or len(keys) < FULL_PIECE]
        if not drop and len(old) <= SMALL_PIECES:
            return
        keys = np.unique(np.concatenate([self._pieces[file] for file in old]))
        keys = keys[np.isin(keys, used)] if drop else keys
        for begin in range(0, len(keys), FULL_PIECE):
            part = keys[begin : begin + FULL_PIECE]
            self.add(part, self._take(part))
        for file in old:
            file.unlink()
        self._open()

    def _listed(self) -> list[Path]:
        return sorted(self.folder.glob("*-*.npy"))

    def _open(self) -> None:
        while True:
            with suppress(FileNotFoundError):  # compacted while it was read: list the pieces anew
                files = {file: _checksum(file) == file.stem.partition("-")[2] for file in self._listed()}
                intact = [
                    file for file, good in files.items() if good and self._rows(file).dtype == self._row
                ]
                self._pieces = {file: np.array(self._rows(file)["key"]) for file in intact}
                self.damaged = [file for file in files if file not in self._pieces]
                self.__dict__.pop("_index", None)
                return

    @functools.cached_property
    def _index(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rising keys, and the piece and the row of each."""
        lengths = [len(keys) for keys in self._pieces.values()]
        rows = np.concatenate([np.zeros(0, np.int64), *map(np.arange, lengths)])
        every = np.concatenate([np.zeros(0, "<u8"), *self._pieces.values()])
        keys, first = np.unique(every, return_index=True)
        return keys, np.repeat(np.arange(len(lengths)), lengths)[first], rows[first]

    def _find(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Places of keys in the index, and whether they are there."""
        known = self._index[0]
        found = np.searchsorted(known, keys)
        found[found == len(known)] = 0
        return found, known[found] == keys if len(known) else np.zeros(len(keys), dtype=bool)

    def _take(self, keys: np.ndarray) -> np.ndarray:
        found, known = self._find(keys)
        if missing := int((~known).sum()):
            raise KeyError(
                f"{missing} of {len(keys)} texts have no vector in {self.folder}; encode them first"
            )
        vectors = np.empty((len(keys), *self._row["vector"].shape), np.float16)
        _, pieces, rows = self._index
        files = list(self._pieces)
        for piece in np.unique(pieces[found]):  # mapped for this alone, so that no more of it is in memory
            own = np.flatnonzero(pieces[found] == piece)
            vectors[own] = self._rows(files[piece])["vector"][rows[found[own]]]
        return vectors

    @staticmethod
    def _rows(file: Path) -> np.ndarray:
        return np.load(file, mmap_mode="r")


def _checksum(file: Path) -> str:
    """CRC-32 of a file's bytes: against damage, at some 1 GB/s."""
    total = 0
    with open(file, "rb") as handle:
        while part := handle.read(1 << 20):
            total = zlib.crc32(part, total)
    return f"{total:08x}"
