"""What carries records between the host and the cache: a mover. It runs in a thread of its own, plan after plan.

``Staged`` gathers on the CPU into a buffer (pinned where there is a GPU) and copies that; it needs torch alone. On a
machine without a GPU the buffer is the destination. ``storage/tables/uva.py`` lets the GPU itself gather and scatter.

Both give ``Mover.read`` and ``Mover.write``: records of the host to and from a block of records on the device.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Mapping
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from storage.tables.host import Host
from storage.tables.records import Records

log = logging.getLogger(__name__)

Kind = Literal["auto", "uva", "staged"]
BLOCK_BYTES = 32 << 20


class Mover(Protocol):
    """Moves at most ``block`` records a call."""

    block: int

    def read(self, ids: Tensor) -> Tensor:
        """Records of the host, on the device: uint8 (any, width), valid on the current stream until the next call."""
        ...

    def write(self, ids: Tensor, records: Tensor) -> None:
        """Puts records, uint8 (any, width) on the device, at their places in the host; when it returns, or on the current stream."""
        ...


class Staged:
    """Gathers and scatters by the CPU, through two buffers of 32 MB in turn.

    Args:
        host: Where the records are.
        device: Where they are needed.
    """

    def __init__(self, host: Host, device: torch.device) -> None:
        self.host, self.device = host, device
        self.block = max(1, BLOCK_BYTES // host.data.shape[1])
        on_gpu = device.type == "cuda"
        shape = min(self.block, max(1, len(host.data))), host.data.shape[1] // 8
        try:
            self._buffers = [torch.empty(shape, dtype=torch.int64, pin_memory=on_gpu) for _ in range(1 + on_gpu)]
        except RuntimeError as error:
            if not on_gpu:
                raise
            log.warning("pinning a buffer of %.0f MB was refused (%s): rows are moved through pageable memory, which is slower", shape[0] * shape[1] * 8 / 1e6, error)
            self._buffers = [torch.empty(shape, dtype=torch.int64) for _ in range(2)]
        self._events: list[Any] = [None, None]
        self._turn = 0

    def read(self, ids: Tensor) -> Tensor:
        """As in Mover."""
        self.host.will_need(ids)
        buffer = self._buffer(len(ids))
        torch.index_select(self.host.as_words(), 0, ids, out=buffer)
        if self.device.type == "cpu":
            return buffer.view(torch.uint8)
        records = buffer.to(self.device, non_blocking=True)
        self._events[self._turn] = torch.cuda.current_stream(self.device).record_event()  # the buffer is free again behind it
        return records.view(torch.uint8)

    def write(self, ids: Tensor, records: Tensor) -> None:
        """As in Mover; the CPU scatters, so the copy from the GPU is waited for."""
        self.host.will_need(ids)
        words = records.view(torch.int64)
        if self.device.type == "cuda":
            buffer = self._buffer(len(ids))
            buffer.copy_(words, non_blocking=True)
            torch.cuda.current_stream(self.device).synchronize()
            words = buffer
        self.host.as_words().index_copy_(0, ids, words)

    def _buffer(self, records: int) -> Tensor:
        self._turn = (self._turn + 1) % len(self._buffers)
        event = self._events[self._turn]
        if event is not None:
            event.synchronize()
        return self._buffers[self._turn][:records]


def choose_mover(kind: Kind, host: Host, device: torch.device) -> Mover:
    """The mover that a setting names; "auto" is UVA where GPU, CuPy and pinned memory are there. The host is pinned for UVA alone.

    Raises:
        ValueError: UVA is asked for and one of the three is missing.
    """
    missing = [what for what, there in (("a CUDA device", device.type == "cuda"), ("CuPy", importlib.util.find_spec("cupy") is not None)) if not there]
    if kind != "staged" and not missing:
        host.pin(device)
    if not host.pinned:
        missing.append("pinned memory")
    if kind == "staged" or (kind == "auto" and missing):
        return Staged(host, device)
    if missing:
        raise ValueError(f"mover is 'uva', which needs {' and '.join(missing)} too; use 'auto' or 'staged'")
    from storage.tables.uva import Unified

    try:
        return Unified(host, device)
    except (ImportError, RuntimeError) as error:  # of another CUDA than the driver's, or without its compiler
        if kind == "uva":
            raise
        log.warning("CuPy is here and does not work (%s): rows are moved through a small buffer, which is slower", error)
        return Staged(host, device)


def enter(mover: Mover, records: Records, cells: Mapping[str, Tensor], ids: Tensor, slots: Tensor) -> None:
    """Brings rows into the cache; ``ids`` and ``slots`` int64 on the CPU, ids counted from the first record of the host."""
    for start in range(0, len(ids), mover.block):
        piece = slice(start, start + mover.block)
        records.unpack(mover.read(ids[piece]), cells, slots[piece].to(cells["rows"].device, non_blocking=True))


def leave(mover: Mover, records: Records, cells: Mapping[str, Tensor], ids: Tensor, slots: Tensor) -> None:
    """Brings rows of the cache back to the host."""
    device = cells["rows"].device
    for start in range(0, len(ids), mover.block):
        piece = slice(start, start + mover.block)
        block = torch.zeros(len(ids[piece]), records.width, dtype=torch.uint8, device=device)
        records.pack(cells, slots[piece].to(device, non_blocking=True), block)
        mover.write(ids[piece], block)
