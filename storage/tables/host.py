"""Where the records lie that are not cached: host memory of their own, or a file that is mapped.

The memory is taken by the byte (pools of pinned memory round up to powers of two) and pinned by registering it with
CUDA, after every page has been touched by the filling of the table. A file is a scratch file without a name: it is gone
when the process ends, however it ends; what must last is in the checkpoint, which is written whole and then renamed. Its
room on the disk is taken at once, where the system can do that (macOS cannot): a mapped page for which there is none when
it is written ends the process without a word.

References:
    Rounding of pinned pools: https://github.com/cupy/cupy/issues/7742, https://github.com/pytorch/pytorch/issues/95823
"""

from __future__ import annotations

import contextlib
import errno
import logging
import mmap
import os
import tempfile
import weakref
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

log = logging.getLogger(__name__)


class Host:
    """Records in host memory.

    Args:
        records: How many.
        width: Bytes of each.
        folder: Of the scratch file; None keeps them in memory.

    Attributes:
        data: uint8 (records, width).
        pinned: Whether the GPU may read and write it.

    Raises:
        OSError: The disk has no room for the file.
    """

    def __init__(self, records: int, width: int, folder: Path | None = None) -> None:
        size = records * width
        self.pinned, self._map, self._file = False, None, None
        if not size:
            self.data = torch.zeros(records, width, dtype=torch.uint8)
            return
        if folder is None:
            self._map = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            with contextlib.suppress(OSError, AttributeError):  # a kernel built without huge pages; macOS has no such advice
                self._map.madvise(mmap.MADV_HUGEPAGE)
        else:
            self._file = tempfile.TemporaryFile(dir=folder, prefix="guidespace-table-")  # noqa: SIM115  (as long as the map)
            take_room(self._file.fileno(), size, folder)
            self._map = mmap.mmap(self._file.fileno(), size)
            self._map.madvise(mmap.MADV_RANDOM)  # a row is less than a page: reading ahead would read in vain
        self.data = torch.frombuffer(self._map, dtype=torch.uint8).view(records, width)

    def pin(self, device: torch.device | None = None) -> None:
        """Pins the memory, once it is filled; where that is refused, says so and leaves it pageable. A file is never pinned.

        Args:
            device: Whose kernels will read and write it; None is the current one.
        """
        if self.pinned or self._file is not None:
            return
        if self._map is None:  # no record that a GPU could not reach
            self.pinned = True
            return
        error = register(self.data)
        if error:
            log.warning("pinning %.1f GB of host memory was refused (%s): rows are moved through a small pinned buffer, which is slower", self.data.nbytes / 1e9, error)
            return
        self.pinned = True
        weakref.finalize(self, unregister, self.data.data_ptr(), device)  # a map unmaps itself before its own finalizers run

    def will_need(self, ids: Tensor) -> None:
        """Asks for the pages of records of a file, all at once: one after the other, each would be waited for."""
        if self._map is None or self._file is None:
            return
        width = self.data.shape[1]
        for page in (ids * width // mmap.PAGESIZE).unique_consecutive().tolist():
            self._map.madvise(mmap.MADV_WILLNEED, page * mmap.PAGESIZE, min(width + mmap.PAGESIZE, len(self._map) - page * mmap.PAGESIZE))

    def drop_pages(self) -> None:
        """Writes a file's changed pages and lets go of all of them, in this process and in the system's cache."""
        if self._map is not None and self._file is not None:
            self._map.flush()
            self._map.madvise(mmap.MADV_DONTNEED)
            if hasattr(os, "posix_fadvise"):  # not on macOS, where the system's cache keeps them
                os.posix_fadvise(self._file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def as_words(self) -> Tensor:
        """The same memory as int64 (records, width / 8), which torch copies in whole rows."""
        return self.data.view(torch.int64)


def take_room(file: int, size: int, folder: Path) -> None:
    """Makes a file so large, with all of its blocks.

    Raises:
        OSError: The disk has no room for it.
    """
    disk = os.fstatvfs(file)
    if size > disk.f_bavail * disk.f_frsize:
        raise OSError(errno.ENOSPC, f"a table's rows outside the cache take {size:,} bytes, {disk.f_bavail * disk.f_frsize:,} are free; name a folder on another disk", str(folder))
    if hasattr(os, "posix_fallocate"):  # not on macOS
        try:
            os.posix_fallocate(file, 0, size)
            return
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):  # a file system that cannot promise room
                raise
    os.ftruncate(file, size)


def register(data: Tensor) -> str:
    """Registers memory with CUDA; "" or what CUDA said against it."""
    try:
        code = int(_runtime().cudaHostRegister(data.data_ptr(), data.nbytes, 0))
    except RuntimeError as error:
        return str(error)
    if code:
        _forget_refusal()
    return f"CUDA error {code}" if code else ""


def unregister(pointer: int, device: torch.device | None) -> None:
    """Takes the registration back before the memory goes; a kernel may still be writing there."""
    try:
        if torch.cuda.is_initialized():
            torch.cuda.synchronize(device)
    finally:
        _runtime().cudaHostUnregister(pointer)


def _forget_refusal() -> None:
    """CUDA keeps a call's error for the next launch of a kernel in this thread, which fails with it: so one is launched for that."""
    if torch.cuda.is_initialized():
        with contextlib.suppress(RuntimeError):
            torch.empty(1, device="cuda").fill_(0)


def _runtime() -> Any:
    return torch.cuda.cudart()
