"""Reads the header of fastText .bin files. Every size is compared with the file length before reading.

The layout of a file is

    int32 magic, version (absent in files older than 2017-05, which begin with dim)
    int32 dim ws epoch minCount neg wordNgrams loss model bucket minn maxn lrUpdateRate; double t
    dictionary (dictionary.py)
    uint8 quantised; input matrix; uint8 quantised; output matrix (matrices.py)

Numbers are little endian and not aligned. The program floret writes the same magic and version, but inserts
two integers after maxn. Its files are recognized by an impossible value of t.

References:
    fastText 0.9.2: FastText::loadModel, Args::load, Dictionary::load.
    https://github.com/facebookresearch/fastText
"""

import mmap
import struct
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

MAGIC, VERSION = 793712314, 12
_ARGUMENTS_FORMAT = "<12id"
_RANGES = {"dim": (1, 1_000_000), "loss": (1, 4), "model": (1, 3), "maxn": (0, 1000), "t": (0.0, 1.0)}


class FastTextError(ValueError):
    """Raised if a file is not a valid fastText model; the message has the byte offset and the reason."""

    def __init__(self, path: Path, offset: int, reason: str) -> None:
        super().__init__(f"{path}: at byte {offset}: {reason}")
        self.offset = offset


class Cursor:
    """Reads a memory-mapped file from a position onwards, and checks the remaining size before each read."""

    def __init__(self, path: Path) -> None:
        self.path, self.offset = path, 0
        with open(path, "rb") as handle:
            if not handle.seek(0, 2):
                raise FastTextError(path, 0, "the file is empty")
            self.data = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
        self.size = len(self.data)
        self.file_bytes = np.frombuffer(self.data, dtype=np.uint8)

    def fail(self, reason: str, bytes_back: int = 0) -> NoReturn:
        """Raises FastTextError for the byte that is ``bytes_back`` bytes before the current position."""
        raise FastTextError(self.path, self.offset - bytes_back, reason)

    def require_bytes(self, count: int, description: str) -> None:
        """Raises FastTextError if fewer than ``count`` bytes remain; ``description`` says what they are."""
        if count > (remaining_bytes := self.size - self.offset):
            self.fail(
                f"{description} would take {count} bytes, but only {remaining_bytes} remain: the file is "
                "truncated, or an earlier size is wrong"
            )

    def read(self, struct_format: str, description: str) -> tuple[Any, ...]:
        """Reads numbers in a format of the module struct; error messages contain ``description``."""
        size = struct.calcsize(struct_format)
        self.require_bytes(size, description)
        self.offset += size
        return struct.unpack_from(struct_format, self.data, self.offset - size)

    def read_flag(self, description: str) -> bool:
        """Reads a byte that must be 0 or 1. Error messages contain ``description``, the meaning of 1."""
        (value,) = self.read("<B", f"the flag {description!r}")
        if value > 1:
            self.fail(f"the flag {description!r} is {value}, expected 0 or 1", 1)
        return bool(value)

    def read_bytes(self, count: int, description: str) -> np.ndarray:
        """Reads ``count`` bytes as a view, uint8 (count,); error messages contain ``description``."""
        self.require_bytes(count, description)
        self.offset += count
        return self.file_bytes[self.offset - count : self.offset]


@dataclass(frozen=True, kw_only=True)
class Header:
    """Header of a fastText file: version (0 if the file has none) and the training arguments of the model.

    The defaults describe a skip-gram model with negative sampling. Exported files contain the defaults.
    """

    version: int = VERSION
    dim: int
    ws: int = 5
    epoch: int = 1
    min_count: int = 1
    neg: int = 5
    word_ngrams: int = 1
    loss: int = 2
    model: int = 2
    bucket: int
    minn: int
    maxn: int
    lr_update_rate: int = 100
    t: float = 1e-4

    @property
    def supervised(self) -> bool:
        """Returns whether the model is a classifier with labels."""
        return self.model == 3

    def pack(self) -> bytes:
        """Encodes the header in the file format of version 12."""
        return struct.pack("<2i", MAGIC, VERSION) + struct.pack(_ARGUMENTS_FORMAT, *astuple(self)[1:])


def read_header(cursor: Cursor) -> Header:
    """Reads the header of a fastText file.

    Raises:
        FastTextError: The file is from floret, has an unsupported version, or contains impossible values.
    """
    version = 0
    (first,) = cursor.read("<i", "the first number")
    if first == MAGIC:
        (version,) = cursor.read("<i", "the version")
        if version not in (11, 12):
            cursor.fail(f"version is {version}; supported are 11, 12 and files without a version", 4)
    else:
        cursor.offset = 0
    begin = cursor.offset
    names = [field.name for field in fields(Header)][1:]
    values = dict(zip(names, cursor.read(_ARGUMENTS_FORMAT, "the header"), strict=True))
    _reject_floret(cursor, begin, values["t"])
    for index, name in enumerate(names):
        minimum, maximum = _RANGES.get(name, (0, None))
        if not (values[name] >= minimum and (maximum is None or values[name] <= maximum)):
            cursor.offset = begin + 4 * index
            hint = "; the magic number is also missing, so this is probably not a fastText model"
            bounds = f"{minimum} or more" if maximum is None else f"{minimum} to {maximum}"
            cursor.fail(f"{name} is {values[name]!r}, expected {bounds}{'' if version else hint}")
    header = Header(version=version, **values)
    bytes_back = cursor.offset - begin - 32  # from here back to the number of buckets
    if header.bucket == 0 and 0 < header.maxn >= header.minn:
        cursor.fail(
            f"bucket is 0, expected 1 or more for n-grams of {header.minn} to {header.maxn} characters",
            bytes_back,
        )
    if header.bucket == 0 and header.supervised and header.word_ngrams > 1:
        cursor.fail(
            f"bucket is 0, expected 1 or more for word n-grams of up to {header.word_ngrams} words",
            bytes_back,
        )
    # Up to version 11, supervised models were trained without n-grams, whatever the value of maxn.
    return replace(header, maxn=0) if version < VERSION and header.supervised else header


def _reject_floret(cursor: Cursor, begin: int, t: float) -> None:
    """Raises FastTextError for a file of floret, which has two small integers in the place of t.

    Read as a float64, the two integers are a denormal number. The actual t follows eight bytes later.
    """
    if 0 < t < 1e-300 and cursor.offset + 8 <= cursor.size:
        mode, hashes, rate, real_t = struct.unpack_from("<3id", cursor.data, begin + 44)
        if mode in (0, 1, 2, 3) and 0 <= hashes <= 4 and rate > 0 and 0 <= real_t <= 1:
            cursor.offset = begin + 44
            cursor.fail(
                f"this is a model of floret (mode {mode}, {hashes} hashes), not of fastText: its "
                "n-grams have other hashes; read it with floret"
            )
