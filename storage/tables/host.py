"""Stores the records of rows that are not permanently cached, in host memory or in a memory-mapped file.

A record is an embedding row with its optimizer state. Host memory is registered with CUDA (pinned) after all
pages have been written. PyTorch's pinned allocator is not used, because it rounds sizes up to powers of two
(pytorch/pytorch#95823). The scratch file has no name and disappears when the process ends. Its disk blocks
are allocated when it is created, because a write to a mapped page without a block raises SIGBUS, which kills
the process.
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
    """Host memory for the records of a table: anonymous memory, or a mapped scratch file in ``folder``.

    Args:
        records: Number of records.
        width: Size of a record in bytes.
        folder: Folder of the scratch file; None: anonymous memory.

    Attributes:
        data: The records, uint8 (records, width).
        pinned: Whether GPU kernels can access the memory.
    """

    def __init__(self, records: int, width: int, folder: Path | None = None) -> None:
        size, self.pinned, self._map, self._file = records * width, False, None, None
        if not size:
            self.data = torch.zeros(records, width, dtype=torch.uint8)
            return
        if folder is None:
            self._map = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            with contextlib.suppress(OSError, AttributeError):  # macOS and some kernels have no huge pages
                self._map.madvise(mmap.MADV_HUGEPAGE)
        else:
            self._file = tempfile.TemporaryFile(dir=folder, prefix="guidespace-table-")  # noqa: SIM115
            allocate(self._file.fileno(), size, folder)
            self._map = mmap.mmap(self._file.fileno(), size)
            self._map.madvise(mmap.MADV_RANDOM)  # read-ahead is useless, because rows are accessed randomly
        self.data = torch.frombuffer(self._map, dtype=torch.uint8).view(records, width)

    def pin(self, device: torch.device | None = None) -> None:
        """Pins the memory for kernels of ``device``, or logs that this failed. Does nothing for a file.

        The records must be written before this call.
        """
        if self.pinned or self._file is not None:
            return
        if self._map is None:  # there are no records
            self.pinned = True
        elif error := register(self.data):
            problem = f"pinning {self.data.nbytes / 1e9:.1f} GB of host memory was refused ({error})"
            log.warning("%s: rows are moved through a small pinned buffer, which is slower", problem)
        else:
            self.pinned = True
            # After a fork, a write would copy the page, but the GPU would still use the original page.
            with contextlib.suppress(OSError, AttributeError):
                self._map.madvise(mmap.MADV_DONTFORK)
            # __del__ would be too late, because the memory may be unmapped before it runs.
            weakref.finalize(self, unregister, self.data.data_ptr(), device)

    def will_need(self, ids: Tensor) -> None:
        """Asks the operating system to load the pages of some records of a file, to avoid a fault per page.

        Args:
            ids: Record numbers, int64 (any,).
        """
        if self._map is None or self._file is None:
            return
        width = self.data.shape[1]
        for page in (ids * width // mmap.PAGESIZE).unique_consecutive().tolist():
            begin = page * mmap.PAGESIZE
            self._map.madvise(mmap.MADV_WILLNEED, begin, min(width + mmap.PAGESIZE, len(self._map) - begin))

    def drop_pages(self) -> None:
        """Writes the changed pages of a file, and drops all its pages from memory and the page cache."""
        if self._map is not None and self._file is not None:
            self._map.flush()
            self._map.madvise(mmap.MADV_DONTNEED)
            if hasattr(os, "posix_fadvise"):  # not on macOS, where pages stay in the page cache
                os.posix_fadvise(self._file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def as_words(self) -> Tensor:
        """Returns a view of the memory as int64 (records, width / 8), which torch copies row by row."""
        return self.data.view(torch.int64)


def allocate(file: int, size: int, folder: Path) -> None:
    """Allocates ``size`` bytes on the disk for an open file in ``folder``.

    Raises:
        OSError: The disk has less free space.
    """
    disk = os.fstatvfs(file)
    free_bytes = disk.f_bavail * disk.f_frsize
    if size > free_bytes:
        problem = f"the rows of a table outside its cache take {size:,} bytes, but {free_bytes:,} are free"
        raise OSError(errno.ENOSPC, f"{problem}; choose a folder on another disk", str(folder))
    try:
        os.posix_fallocate(file, 0, size)
    except (AttributeError, OSError) as error:  # macOS and some file systems cannot allocate blocks
        if isinstance(error, OSError) and error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            raise
        os.ftruncate(file, size)


def register(data: Tensor) -> str:
    """Registers memory with CUDA. Returns the error message of CUDA, or an empty string if there is none."""
    try:
        error_code = int(_runtime().cudaHostRegister(data.data_ptr(), data.nbytes, 0))
    except RuntimeError as error:
        return str(error)
    if not error_code:
        return ""
    if torch.cuda.is_initialized():  # a kernel clears the error, which would make the next kernel fail
        with contextlib.suppress(RuntimeError):
            torch.empty(1, device="cuda").fill_(0)
    return f"CUDA error {error_code}"


def unregister(pointer: int, device: torch.device | None) -> None:
    """Waits for kernels that may still write to registered memory, and unregisters the memory."""
    try:
        if torch.cuda.is_initialized():
            torch.cuda.synchronize(device)
    finally:
        _runtime().cudaHostUnregister(pointer)


def _runtime() -> Any:
    return torch.cuda.cudart()
