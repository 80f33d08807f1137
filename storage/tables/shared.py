"""Tensors that several processes change: in shared memory, or in a mapped scratch file.

The file is unnamed, so nothing is left of it when the last process that maps it has ended, however it ended.
"""

import math
import mmap
import os
import tempfile
from collections.abc import Mapping
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from storage.tables.host import allocate

_ALIGNED = 64  # bytes: a line of the processor's cache, which only one of two tensors is in


class Shared:
    """Tensors by name, zeros at first. As an argument of a process that is started, it maps the same there.

    Args:
        shapes: Shape and dtype of each.
        folder: Of the scratch file; None: memory.

    Raises:
        OSError: The disk has no room.
    """

    def __init__(
        self, shapes: Mapping[str, tuple[tuple[int, ...], torch.dtype]], folder: Path | None = None
    ) -> None:
        self._shapes = dict(shapes)
        self._begins, size = {}, 0
        for name, (shape, dtype) in shapes.items():
            self._begins[name] = size
            size += -(-math.prod(shape) * dtype.itemsize // _ALIGNED) * _ALIGNED
        if folder is None and hasattr(os, "memfd_create"):  # not on macOS
            self._file = os.memfd_create("guidespace")
            os.ftruncate(self._file, size)
        else:
            with tempfile.TemporaryFile(dir=folder, prefix="guidespace-shared-") as file:
                self._file = os.dup(file.fileno())
            allocate(self._file, size, Path(folder or tempfile.gettempdir()))
        self._open(size)

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]

    def below(self, prefix: str) -> dict[str, Tensor]:
        """Tensors whose names begin so, by the rest of the name."""
        found = self.tensors.items()
        return {name.removeprefix(prefix): own for name, own in found if name.startswith(prefix)}

    def __getstate__(self) -> dict[str, Any]:
        own = {name: value for name, value in self.__dict__.items() if name not in ("_map", "tensors")}
        return own | {"_file": DupFd(self._file), "_size": len(self._map)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        size = state.pop("_size")
        self.__dict__ |= state | {"_file": state["_file"].detach()}
        self._open(size)

    def __del__(self) -> None:
        os.close(self._file)

    def _open(self, size: int) -> None:
        self._map, self.tensors = mmap.mmap(self._file, size), {}
        for name, (shape, dtype) in self._shapes.items():
            about = {"dtype": dtype, "count": math.prod(shape), "offset": self._begins[name]}
            found = torch.frombuffer(self._map, **about) if about["count"] else torch.empty(0, dtype=dtype)
            self.tensors[name] = found.view(shape)
