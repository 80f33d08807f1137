"""fastText's .bin: the header, and reading that never trusts a size.

    int32 magic, version      (neither in files older than 2017-05: the first int32 is the number of dimensions)
    int32 dim ws epoch minCount neg wordNgrams loss model bucket minn maxn lrUpdateRate; double t
    dictionary (dictionary.py); uint8 quantised; input matrix; uint8 quantised; output matrix (matrices.py)

Little endian, nothing aligned. floret writes the same magic and version with two integers more after maxn; such a file is
told by its t, which is then made of two integers.

References:
    fastText 0.9.2: FastText::loadModel, Args::load, Dictionary::load. https://github.com/facebookresearch/fastText
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

MAGIC, VERSION = 793712314, 12
LOSSES = {1: "hs", 2: "ns", 3: "softmax", 4: "ova"}
MODELS = {1: "cbow", 2: "sg", 3: "sup"}
_ARGS = struct.Struct("<12id")
_LONGEST_NGRAM, _MOST_DIMENSIONS = 1000, 1_000_000


class FastTextError(ValueError):
    """A file that cannot be read as a fastText model: where, and why.

    Attributes:
        offset: Byte of the file at which it was noticed.
    """

    def __init__(self, path: Path, offset: int, reason: str) -> None:
        super().__init__(f"{path}: at byte {offset}: {reason}")
        self.offset = offset


class Cursor:
    """A place in a mapped file; every read is checked against what is left of it.

    Args:
        path: File to map.

    Raises:
        FastTextError: It is empty.
        OSError: It cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.offset = path, 0
        with open(path, "rb") as handle:
            if not handle.seek(0, 2):
                raise FastTextError(path, 0, "the file is empty")
            self.data = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
        self.size = len(self.data)
        self.codes = np.frombuffer(self.data, dtype=np.uint8)

    def fail(self, reason: str, back: int = 0) -> NoReturn:
        """Refuses the file, ``back`` bytes before here."""
        raise FastTextError(self.path, self.offset - back, reason)

    def need(self, count: int, what: str) -> None:
        """Refuses the file unless so many bytes are left."""
        if count > self.size - self.offset:
            self.fail(f"{what} would take {count} bytes and {self.size - self.offset} are left: the file is cut short, or a size before it is wrong")

    def read(self, form: struct.Struct, what: str) -> tuple[Any, ...]:
        """Numbers of a fixed form."""
        self.need(form.size, what)
        values = form.unpack_from(self.data, self.offset)
        self.offset += form.size
        return values

    def take(self, count: int, what: str) -> np.ndarray:
        """The next bytes, mapped: uint8 (count,)."""
        self.need(count, what)
        self.offset += count
        return self.codes[self.offset - count : self.offset]


@dataclass(frozen=True, kw_only=True)
class Header:
    """What a model was trained with; ``version`` is 0 for files without one."""

    version: int
    dim: int
    ws: int
    epoch: int
    min_count: int
    neg: int
    word_ngrams: int
    loss: int
    model: int
    bucket: int
    minn: int
    maxn: int
    lr_update_rate: int
    t: float

    @property
    def supervised(self) -> bool:
        """Whether labels were learnt."""
        return self.model == 3

    def pack(self) -> bytes:
        """Bytes of a version 12 header."""
        args = (self.dim, self.ws, self.epoch, self.min_count, self.neg, self.word_ngrams, self.loss, self.model, self.bucket, self.minn, self.maxn, self.lr_update_rate, self.t)
        return struct.pack("<2i", MAGIC, VERSION) + _ARGS.pack(*args)


def read_header(cursor: Cursor) -> Header:
    """Reads and checks the header.

    Raises:
        FastTextError: No fastText model, one of floret's, of a newer version, or with values that cannot be.
    """
    version = 0
    (first,) = cursor.read(struct.Struct("<i"), "the first number")
    if first == MAGIC:
        (version,) = cursor.read(struct.Struct("<i"), "the version")
        if version not in (11, 12):
            cursor.fail(f"version is {version}; known are 11, 12 and files without a version", 4)
    else:
        cursor.offset = 0
    begin = cursor.offset
    names = [name for name in Header.__dataclass_fields__ if name != "version"]
    values = dict(zip(names, cursor.read(_ARGS, "the header"), strict=True))
    _refuse_floret(cursor, begin, values["t"])
    limits = {
        "dim": (1, _MOST_DIMENSIONS), "ws": (0, None), "epoch": (0, None), "min_count": (0, None), "neg": (0, None), "word_ngrams": (0, None), "loss": (1, 4),
        "model": (1, 3), "bucket": (0, None), "minn": (0, None), "maxn": (0, _LONGEST_NGRAM), "lr_update_rate": (0, None), "t": (0.0, 1.0),
    }  # fmt: skip
    for place, (name, (least, most)) in enumerate(limits.items()):
        if not (values[name] >= least and (most is None or values[name] <= most)):
            cursor.offset = begin + 4 * place
            told = f"{least} to {most}" if most is not None else f"{least} or more"
            hint = "" if version else "; the file does not start with fastText's magic number either, so it is probably no fastText model"
            cursor.fail(f"{name} is {values[name]!r}, it should be {told}{hint}")
    header = Header(version=version, **values)
    if header.maxn > 0 and header.bucket == 0 and header.minn <= header.maxn:
        cursor.fail(f"n-grams of {header.minn} to {header.maxn} characters but no bucket for them", cursor.offset - begin - 32)
    if header.supervised and header.word_ngrams > 1 and header.bucket == 0:
        cursor.fail(f"word n-grams up to {header.word_ngrams} but no bucket for them", cursor.offset - begin - 32)
    # Up to version 11 supervised models were trained without n-grams, whatever maxn says.
    return Header(**{**header.__dict__, "maxn": 0}) if version < VERSION and header.supervised else header


def _refuse_floret(cursor: Cursor, begin: int, t: float) -> None:
    """A double made of two small integers is denormal or absurd; eight bytes on stands floret's own t."""
    if 0 < t < 1e-300 and cursor.offset + 8 <= cursor.size:
        mode, hashes, rate, real_t = struct.unpack_from("<3id", cursor.data, begin + 44)
        if mode in (0, 1, 2, 3) and 0 <= hashes <= 4 and rate > 0 and 0 <= real_t <= 1:
            cursor.offset = begin + 44
            cursor.fail(f"this is a model of floret (mode {mode}, {hashes} hashes), not of fastText: its n-grams are hashed otherwise; read it with floret")
