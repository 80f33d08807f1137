"""Writes safetensors files in pieces, so that saving a table does not copy it in memory.

Tensors are in the order of the safetensors library (wide types first, then by name). Format:
https://github.com/huggingface/safetensors#format
"""

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

CHUNK_BYTES = 1 << 20
BLOCK_NUMBERS = 16  # torch draws normally distributed numbers in blocks of this size
_NAMES = {torch.float64: "F64", torch.float32: "F32", torch.int64: "I64", torch.int32: "I32"}
_NAMES |= {torch.bool: "BOOL", torch.float16: "F16", torch.bfloat16: "BF16", torch.int16: "I16"}
_NAMES |= {torch.uint8: "U8", torch.int8: "I8"}


@dataclass(frozen=True)
class Section:
    """One tensor of a file, generated as consecutive ``pieces`` along its first axis."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    pieces: Callable[[], Iterable[Tensor]]

    @property
    def nbytes(self) -> int:
        """Size of the tensor in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def copy_to(self, tensor: Tensor) -> Tensor:
        """Copies the pieces to ``tensor``, of the same shape on any device, and returns it."""
        start = 0
        for piece in self.pieces():
            tensor[start : start + len(piece)] = piece
            start += len(piece)
        return tensor

    def tensor(self, device: torch.device | str = "cpu") -> Tensor:
        """Returns the pieces as one new tensor on ``device``."""
        return self.copy_to(torch.empty(self.shape, dtype=self.dtype, device=device))


def as_section(tensor: Tensor) -> Section:
    """Wraps a tensor as a section with pieces of at most CHUNK_BYTES."""
    if tensor.ndim == 0:
        return Section(tensor.dtype, (), lambda: [tensor])
    bounds = len(tensor), tensor[:1].nbytes
    return Section(tensor.dtype, tuple(tensor.shape), lambda: (tensor[a:b] for a, b in spans(*bounds)))


def random_rows(rows: int, dim: int, std: float, seed: int | torch.Generator) -> Section:
    """Returns a section of normally distributed rows, drawn piece by piece: float32 (rows, dim).

    The rows equal ``torch.randn(rows, dim) * std``. If ``seed`` is a generator, its state afterwards is the
    same as after this call.
    """
    generator = seed if isinstance(seed, torch.Generator) else torch.Generator().manual_seed(seed)
    state = generator.get_state()
    # Pieces of complete blocks give the same numbers; the last block, if incomplete, must not be alone.
    step = max(1, CHUNK_BYTES // (BLOCK_NUMBERS * dim * 4)) * BLOCK_NUMBERS
    starts = [*range(0, max(1, rows - BLOCK_NUMBERS + 1), step), rows]

    def pieces() -> Iterator[Tensor]:
        generator.set_state(state)
        return (torch.randn(b - a, dim, generator=generator).mul_(std) for a, b in pairwise(starts))

    return Section(torch.float32, (rows, dim), pieces)


def initial_rows(shape: tuple[int, int], start: Tensor | Section | float, seed: int) -> Section:
    """Returns initial rows in pieces. A number is the standard deviation of drawn rows."""
    if isinstance(start, Section):
        return start
    return as_section(start) if isinstance(start, Tensor) else random_rows(*shape, start, seed)


def spans(rows: int, row_bytes: int) -> Iterator[tuple[int, int]]:
    """Yields the row ranges [start, end) of pieces of at most CHUNK_BYTES."""
    step = max(1, CHUNK_BYTES // max(1, row_bytes))
    return ((start, min(start + step, rows)) for start in range(0, rows, step))


def write_safetensors(file: Path, sections: Mapping[str, Section], metadata: Mapping[str, str]) -> None:
    """Writes a safetensors file atomically: a temporary file is written, synced and renamed."""
    ordered = sorted(sections.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    end = 0
    for name, section in ordered:
        start, end = end, end + section.nbytes
        dtype, shape = _NAMES[section.dtype], list(section.shape)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}
    content = json.dumps(header, separators=(",", ":")).encode()
    content += b" " * (-len(content) % 8)
    temporary = file.with_name(file.name + ".tmp")
    try:
        with open(temporary, "wb") as handle:
            handle.write(len(content).to_bytes(8, "little") + content)
            for name, section in ordered:
                pieces = (piece.detach().cpu().reshape(-1) for piece in section.pieces() if piece.numel())
                written = sum(handle.write(piece.view(torch.uint8).numpy().data) for piece in pieces)
                if written != section.nbytes:
                    expected = f"shape {section.shape} takes {section.nbytes}"
                    raise ValueError(f"{name}: pieces have {written} bytes, {expected}")
            handle.flush()
            os.fsync(handle.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)  # frees its space on a full disk
        raise
    os.replace(temporary, file)
