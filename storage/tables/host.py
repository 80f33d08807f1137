"""Records that are not cached: in host memory, or in a mapped file.

Memory is allocated to the byte (pools of pinned memory round up to powers of two, pytorch/pytorch#95823) and
pinned by registering it with CUDA, after filling has touched every page. A file is unnamed, gone when the
process ends. Its blocks are allocated at once: writing a mapped page without a block is killed by SIGBUS.
"""

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
    """Records in host memory, or in a scratch file in ``folder``: ``data``, uint8 (records, width)."""

    def __init__(self, records: int, width: int, folder: Path | None = None) -> None:
        size, self.pinned, self._map, self._file = records * width, False, None, None
        if not size:
            self.data = torch.zeros(records, width, dtype=torch.uint8)
            return
        if folder is None:
            self._map = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            with contextlib.suppress(OSError, AttributeError):  # a kernel without huge pages; macOS
                self._map.madvise(mmap.MADV_HUGEPAGE)
        else:
            self._file = tempfile.TemporaryFile(dir=folder, prefix="guidespace-table-")  # noqa: SIM115
            allocate(self._file.fileno(), size, folder)
            self._map = mmap.mmap(self._file.fileno(), size)
            self._map.madvise(mmap.MADV_RANDOM)  # a row is less than a page: read-ahead would be wasted
        self.data = torch.frombuffer(self._map, dtype=torch.uint8).view(records, width)

    def pin(self, device: torch.device | None = None) -> None:
        """Pins filled memory for kernels of ``device``; logs a refusal. A file is never pinned."""
        if self.pinned or self._file is not None:
            return
        if self._map is None:  # there is nothing that a GPU could not reach
            self.pinned = True
        elif error := register(self.data):
            refused = f"pinning {self.data.nbytes / 1e9:.1f} GB of host memory was refused ({error})"
            log.warning("%s: rows are moved through a small pinned buffer, which is slower", refused)
        else:
            self.pinned = True
            with contextlib.suppress(OSError, AttributeError):  # pages shared with a child are copied on
                self._map.madvise(mmap.MADV_DONTFORK)  # writing, and the GPU goes on with the old ones
            # not in __del__: a map unmaps itself before its own finalizers run
            weakref.finalize(self, unregister, self.data.data_ptr(), device)

    def will_need(self, ids: Tensor) -> None:
        """Requests the pages of these records of a file, all at once instead of fault by fault."""
        if self._map is None or self._file is None:
            return
        width = self.data.shape[1]
        for page in (ids * width // mmap.PAGESIZE).unique_consecutive().tolist():
            start = page * mmap.PAGESIZE
            self._map.madvise(mmap.MADV_WILLNEED, start, min(width + mmap.PAGESIZE, len(self._map) - start))

    def drop_pages(self) -> None:
        """Writes a file's changed pages and drops all of them from memory and the system's cache."""
        if self._map is not None and self._file is not None:
            self._map.flush()
            self._map.madvise(mmap.MADV_DONTNEED)
            if hasattr(os, "posix_fadvise"):  # not on macOS, where the system's cache keeps them
                os.posix_fadvise(self._file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def as_words(self) -> Tensor:
        """The same memory as int64 (records, width / 8), which torch copies in whole rows."""
        return self.data.view(torch.int64)


def allocate(file: int, size: int, folder: Path) -> None:
    """Gives an open file, which is in ``folder``, its blocks; OSError where the disk has not as many."""
    disk = os.fstatvfs(file)
    free = disk.f_bavail * disk.f_frsize
    if size > free:
        need = f"a table's rows outside the cache take {size:,} bytes, {free:,} are free"
        raise OSError(errno.ENOSPC, f"{need}; name a folder on another disk", str(folder))
    try:
        os.posix_fallocate(file, 0, size)
    except (AttributeError, OSError) as error:  # macOS; or the file system cannot reserve blocks
        if isinstance(error, OSError) and error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            raise
        os.ftruncate(file, size)


def register(data: Tensor) -> str:
    """Registers memory with CUDA; returns "" or CUDA's error."""
    try:
        code = int(_runtime().cudaHostRegister(data.data_ptr(), data.nbytes, 0))
    except RuntimeError as error:
        return str(error)
    if not code:
        return ""
    if torch.cuda.is_initialized():  # CUDA fails this thread's next kernel with the error: launch one
        with contextlib.suppress(RuntimeError):
            torch.empty(1, device="cuda").fill_(0)
    return f"CUDA error {code}"


def unregister(pointer: int, device: torch.device | None) -> None:
    """Unregisters memory before it is unmapped; waits for kernels that may still write there."""
    try:
        if torch.cuda.is_initialized():
            torch.cuda.synchronize(device)
    finally:
        _runtime().cudaHostUnregister(pointer)


def _runtime() -> Any:
    return torch.cuda.cudart()
