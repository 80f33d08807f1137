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

MAX_PIECE_BYTES = 1 << 20
RANDOM_BLOCK = 16  # torch draws normally distributed numbers in blocks of 16 numbers
_DTYPE_NAMES = {torch.float64: "F64", torch.float32: "F32", torch.int64: "I64", torch.int32: "I32"}
_DTYPE_NAMES |= {torch.bool: "BOOL", torch.float16: "F16", torch.bfloat16: "BF16", torch.int16: "I16"}
_DTYPE_NAMES |= {torch.uint8: "U8", torch.int8: "I8"}


@dataclass(frozen=True)
class Section:
    """A tensor that is generated in pieces, so that it need not be in memory as a whole.

    Attributes:
        dtype: Type of the tensor.
        shape: Shape of the tensor.
        pieces: Function that generates consecutive pieces of the tensor along its first axis.
    """

    dtype: torch.dtype
    shape: tuple[int, ...]
    pieces: Callable[[], Iterable[Tensor]]

    @property
    def nbytes(self) -> int:
        """Size of the tensor in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def copy_to(self, tensor: Tensor) -> Tensor:
        """Copies the pieces to ``tensor``, which has the same shape and may be on any device. Returns it."""
        start = 0
        for piece in self.pieces():
            tensor[start : start + len(piece)] = piece
            start += len(piece)
        return tensor

    def tensor(self, device: torch.device | str = "cpu") -> Tensor:
        """Returns a new tensor on ``device`` that consists of all pieces."""
        return self.copy_to(torch.empty(self.shape, dtype=self.dtype, device=device))


def as_section(tensor: Tensor) -> Section:
    """Returns a section whose pieces are views of ``tensor`` of at most MAX_PIECE_BYTES."""
    if tensor.ndim == 0:
        return Section(tensor.dtype, (), lambda: [tensor])
    rows, row_bytes = len(tensor), tensor[:1].nbytes
    return Section(
        tensor.dtype,
        tuple(tensor.shape),
        lambda: (tensor[begin:end] for begin, end in divide_rows(rows, row_bytes)),
    )


def random_rows(rows: int, dim: int, std: float, seed: int | torch.Generator) -> Section:
    """Returns a section of normally distributed rows, drawn piece by piece: float32 (rows, dim).

    The rows equal ``torch.randn(rows, dim) * std``. If ``seed`` is a generator, its state also changes as by
    this call.
    """
    generator = seed if isinstance(seed, torch.Generator) else torch.Generator().manual_seed(seed)
    state = generator.get_state()
    # Pieces that consist of complete blocks contain the same numbers as one large tensor. If the last block
    # is incomplete, it must be in a piece with other blocks.
    step = max(1, MAX_PIECE_BYTES // (RANDOM_BLOCK * dim * 4)) * RANDOM_BLOCK
    bounds = [*range(0, max(1, rows - RANDOM_BLOCK + 1), step), rows]

    def pieces() -> Iterator[Tensor]:
        generator.set_state(state)
        sizes = (last - first for first, last in pairwise(bounds))
        return (torch.randn(size, dim, generator=generator).mul_(std) for size in sizes)

    return Section(torch.float32, (rows, dim), pieces)


def make_initial_rows(shape: tuple[int, int], start: Tensor | Section | float, seed: int) -> Section:
    """Returns a section of initial rows, float32.

    Args:
        shape: Number of rows, and their dimension.
        start: The rows, or the standard deviation of normally distributed random rows.
        seed: Seed of random rows.
    """
    if isinstance(start, Section):
        return start
    return as_section(start) if isinstance(start, Tensor) else random_rows(*shape, start, seed)


def divide_rows(rows: int, row_bytes: int) -> Iterator[tuple[int, int]]:
    """Divides rows into pieces of at most MAX_PIECE_BYTES. Yields the range [begin, end) of each piece."""
    step = max(1, MAX_PIECE_BYTES // max(1, row_bytes))
    return ((begin, min(begin + step, rows)) for begin in range(0, rows, step))


def write_safetensors(file: Path, sections: Mapping[str, Section], metadata: Mapping[str, str]) -> None:
    """Writes sections to a safetensors file atomically: writes, syncs and renames a temporary file.

    Args:
        file: The file to write or to replace.
        sections: Tensors by name.
        metadata: Metadata of the file by name.

    Raises:
        ValueError: The total size of the pieces of a section differs from the size of its shape.
    """
    ordered_sections = sorted(sections.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    end = 0
    for name, section in ordered_sections:
        start, end = end, end + section.nbytes
        dtype, shape = _DTYPE_NAMES[section.dtype], list(section.shape)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}
    header_bytes = json.dumps(header, separators=(",", ":")).encode()
    header_bytes += b" " * (-len(header_bytes) % 8)
    temporary = file.with_name(file.name + ".tmp")
    try:
        with open(temporary, "wb") as handle:
            handle.write(len(header_bytes).to_bytes(8, "little") + header_bytes)
            for name, section in ordered_sections:
                pieces = (piece.detach().cpu().reshape(-1) for piece in section.pieces() if piece.numel())
                written_bytes = sum(handle.write(piece.view(torch.uint8).numpy().data) for piece in pieces)
                if written_bytes != section.nbytes:
                    expected = f"shape {section.shape} takes {section.nbytes}"
                    raise ValueError(f"{name}: pieces have {written_bytes} bytes, {expected}")
            handle.flush()
            os.fsync(handle.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)  # frees space if the disk is full
        raise
    os.replace(temporary, file)
