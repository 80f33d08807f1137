"""Writes a safetensors file piece by piece: a table larger than memory is saved without a second copy of it.

The file: eight bytes, the length of the header; the header, JSON with type, shape and place of every tensor; the data,
in the order in which safetensors itself writes it (wide types first, then by name). Any safetensors reader reads it.

References:
    The format: https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

CHUNK_BYTES = 16 << 20
_NAMES = {torch.float64: "F64", torch.float32: "F32", torch.bool: "BOOL", torch.int32: "I32", torch.int64: "I64"}


@dataclass(frozen=True)
class Part:
    """One tensor of a file, which need never exist as a whole.

    Attributes:
        dtype: Of every piece.
        shape: Of the whole.
        pieces: Makes the pieces, first axis after first axis.
    """

    dtype: torch.dtype
    shape: tuple[int, ...]
    pieces: Callable[[], Iterable[Tensor]]

    @property
    def bytes(self) -> int:
        """Size of the whole."""
        return math.prod(self.shape) * self.dtype.itemsize


def whole(tensor: Tensor) -> Part:
    """A tensor that exists, in pieces of at most 16 MiB."""
    return Part(tensor.dtype, tuple(tensor.shape), lambda: (tensor[start:stop] for start, stop in spans(len(tensor), tensor[:1].nbytes)))


def spans(rows: int, row_bytes: int) -> Iterator[tuple[int, int]]:
    """Bounds of the pieces of so many rows."""
    step = max(1, CHUNK_BYTES // max(1, row_bytes))
    return ((start, min(start + step, rows)) for start in range(0, rows, step))


def write_safetensors(file: Path, parts: Mapping[str, Part], metadata: Mapping[str, str]) -> None:
    """Writes the file beside its place, forces it to disk and renames it: there is the old file or the new one, whole.

    Raises:
        ValueError: The pieces of a part are fewer or more than its shape says.
    """
    ordered = sorted(parts.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    end = 0
    for name, part in ordered:
        header[name] = {"dtype": _NAMES[part.dtype], "shape": list(part.shape), "data_offsets": [end, end + part.bytes]}
        end += part.bytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    temporary = file.with_name(file.name + ".tmp")
    try:
        with open(temporary, "wb") as handle:
            handle.write(len(text).to_bytes(8, "little"))
            handle.write(text)
            for name, part in ordered:
                written = 0
                for piece in part.pieces():
                    written += handle.write(piece.detach().cpu().contiguous().numpy().data) if piece.numel() else 0
                if written != part.bytes:
                    raise ValueError(f"{name} has {written} bytes in its pieces, its shape {part.shape} takes {part.bytes}")
            handle.flush()
            os.fsync(handle.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)  # of a full disk it holds the last room
        raise
    os.replace(temporary, file)
