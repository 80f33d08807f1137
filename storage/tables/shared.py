"""Shares tensors between processes, in shared memory or in a mapped scratch file.

The file has no name, so the operating system deletes it when the last process that maps the file ends.
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
from storage.tables.records import round_up

_ALIGN_BYTES = 64  # size of a cache line, so that no two tensors share one


class Shared:
    """Tensors by name, initialized with zeros. A copy that a child process unpickles shares the memory.

    Args:
        shapes: Shape and dtype of each tensor by name.
        folder: Folder of the scratch file; None: shared memory.

    Raises:
        OSError: The disk has too little free space.
    """

    def __init__(
        self, shapes: Mapping[str, tuple[tuple[int, ...], torch.dtype]], folder: Path | None = None
    ) -> None:
        self._shapes = dict(shapes)
        self._offsets, size = {}, 0
        for name, (shape, dtype) in shapes.items():
            self._offsets[name] = size
            size += round_up(math.prod(shape) * dtype.itemsize, _ALIGN_BYTES)
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

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in self.__dict__.items() if name not in ("_map", "tensors")}
        return state | {"_file": DupFd(self._file), "_size": len(self._map)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        size = state.pop("_size")
        self.__dict__ |= state | {"_file": state["_file"].detach()}
        self._open(size)

    def __del__(self) -> None:
        os.close(self._file)

    def _open(self, size: int) -> None:
        self._map, self.tensors = mmap.mmap(self._file, size), {}
        for name, (shape, dtype) in self._shapes.items():
            options = {"dtype": dtype, "count": math.prod(shape), "offset": self._offsets[name]}
            elements = (
                torch.frombuffer(self._map, **options) if options["count"] else torch.empty(0, dtype=dtype)
            )
            self.tensors[name] = elements.view(shape)
