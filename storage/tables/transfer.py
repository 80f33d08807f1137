"""Transfers records between the host and the device, in the prefetcher's thread, plan after plan."""

import importlib.util
import logging
from functools import cache
from typing import Any, Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from storage.tables.host import Host

log = logging.getLogger(__name__)

TransferKind = Literal["auto", "uva", "staged"]
STAGED_BYTES = 32 << 20
THREADS, LARGEST_GRID = 256, 4096
UVA_BYTES = 128 << 20  # device memory that a call takes; the cache leaves little free
SOURCE = r"""
extern "C" __global__ void gather(const uint4* __restrict__ host, const long long* __restrict__ ids,
                                  uint4* __restrict__ block, long long words, long long records) {
    long long total = records * words, step = (long long)gridDim.x * blockDim.x;
    for (long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x; at < total; at += step) {
        long long record = at / words;
        block[at] = host[ids[record] * words + (at - record * words)];
    }
}
extern "C" __global__ void scatter(uint4* __restrict__ host, const long long* __restrict__ ids,
                                   const uint4* __restrict__ block, long long words, long long records) {
    long long total = records * words, step = (long long)gridDim.x * blockDim.x;
    for (long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x; at < total; at += step) {
        long long record = at / words;
        host[ids[record] * words + (at - record * words)] = block[at];
    }
}
"""


class Transfer(Protocol):
    """Moves at most ``block`` records a call."""

    block: int

    def read(self, ids: Tensor) -> Tensor:
        """Host records on the device, uint8 (any, width), valid until the next call."""
        ...

    def write(self, ids: Tensor, records: Tensor) -> None:
        """Writes records, uint8 (any, width), to the host: on return, or on the current stream."""
        ...


class Staged:
    """Gathers and scatters by the CPU, on a GPU through two alternating pinned buffers of 32 MB."""

    def __init__(self, host: Host, device: torch.device) -> None:
        self.host, self.device = host, device
        self.block = max(1, STAGED_BYTES // host.data.shape[1])
        on_gpu = device.type == "cuda"
        shape = min(self.block, max(1, len(host.data))), host.data.shape[1] // 8
        count = 1 + on_gpu
        try:
            self._buffers = [torch.empty(shape, dtype=torch.int64, pin_memory=on_gpu) for _ in range(count)]
        except RuntimeError as error:
            refused = f"pinning a buffer of {shape[0] * shape[1] * 8 / 1e6:.0f} MB was refused ({error})"
            log.warning("%s: rows are moved through pageable memory, which is slower", refused)
            self._buffers = [torch.empty(shape, dtype=torch.int64) for _ in range(count)]
        self._events: list[Any] = [None, None]
        self._turn = 0

    def read(self, ids: Tensor) -> Tensor:
        """As in Transfer."""
        self.host.will_need(ids)
        buffer = self._buffer(len(ids))
        torch.index_select(self.host.as_words(), 0, ids, out=buffer)
        if self.device.type == "cpu":
            return buffer.view(torch.uint8)
        records = buffer.to(self.device, non_blocking=True)
        stream = torch.cuda.current_stream(self.device)
        self._events[self._turn] = stream.record_event()  # behind it the buffer is free again
        return records.view(torch.uint8)

    def write(self, ids: Tensor, records: Tensor) -> None:
        """As in Transfer; the CPU scatters, so it waits for the copy from the GPU."""
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
        if event := self._events[self._turn]:
            event.synchronize()
        return self._buffers[self._turn][:records]


@cache
def _kernels() -> tuple[Any, Any]:
    import cupy  # pyright: ignore[reportMissingImports]

    module = cupy.RawModule(code=SOURCE)
    return module.get_function("gather"), module.get_function("scatter")


def grid(records: int, words: int) -> int:
    """Blocks of a launch."""
    return max(1, min(-(-records * words // THREADS), LARGEST_GRID))


class Unified:
    """The GPU gathers and scatters in pinned host memory itself (unified virtual addressing).

    Eight lanes of a warp read 128 bytes of a record, so that every transaction is whole; the capped grid
    strides on. Kernels run on torch's current stream, so its order holds without events.

    References:
        Min et al. Large Graph Convolutional Network Training with GPU-Oriented Data Communication
        Architecture. VLDB 2021. https://arxiv.org/abs/2103.03330
    """

    def __init__(self, host: Host, device: torch.device) -> None:
        self.host, self.device = host, device
        self.block = max(1, UVA_BYTES // host.data.shape[1])
        self._words = host.data.shape[1] // 16
        self._gather, self._scatter = _kernels()

    def read(self, ids: Tensor) -> Tensor:
        """As in Transfer."""
        block = torch.empty(len(ids), self.host.data.shape[1], dtype=torch.uint8, device=self.device)
        self._launch(self._gather, ids, block)
        return block

    def write(self, ids: Tensor, records: Tensor) -> None:
        """As in Transfer; on the current stream."""
        self._launch(self._scatter, ids, records)

    def _launch(self, kernel: Any, ids: Tensor, block: Tensor) -> None:
        import cupy  # pyright: ignore[reportMissingImports]

        on_device = ids.to(self.device, non_blocking=True)
        stream = torch.cuda.current_stream(self.device)
        if hasattr(cupy.cuda.Stream, "from_external") and hasattr(stream, "__cuda_stream__"):  # since CuPy 14
            shared = cupy.cuda.Stream.from_external(stream)
        else:
            shared = cupy.cuda.ExternalStream(stream.cuda_stream)
        arguments = (self.host.data.data_ptr(), on_device.data_ptr(), block.data_ptr(), self._words, len(ids))
        with cupy.cuda.Device(self.device.index or 0), shared:
            # as 64 bits: a table of ten million rows of 1,536 bytes is beyond 2^31
            kernel((grid(len(ids), self._words),), (THREADS,), tuple(map(np.uint64, arguments)))


def choose_transfer(kind: TransferKind, host: Host, device: torch.device) -> Transfer:
    """The transfer of a kind; "auto" is UVA where GPU, CuPy and pinned memory exist, as "uva" demands."""
    if kind == "staged":
        return Staged(host, device)
    on_gpu, has_cupy = device.type == "cuda", importlib.util.find_spec("cupy") is not None
    try:
        if on_gpu and has_cupy:
            check_kernels(device)  # first, since pinning a hundred gigabytes takes a minute
            host.pin(device)
            if host.pinned:
                return Unified(host, device)
    except Exception as error:  # CuPy's own derive from Exception: no compiler, built for another CUDA
        if kind == "uva":
            raise
        slower = "rows are moved through a small buffer, which is slower"
        log.warning("CuPy is installed but does not work (%s): %s", error, slower)
        return Staged(host, device)
    needs = {"a CUDA device": on_gpu, "CuPy": has_cupy, "pinned memory": host.pinned}
    if kind == "auto":
        return Staged(host, device)
    missing = " and ".join(name for name, there in needs.items() if not there)
    raise ValueError(f"transfer 'uva' needs {missing} too; use 'auto' or 'staged'")


def check_kernels(device: torch.device) -> None:
    """Compiles the kernels; on a GPU, moves a record of pinned memory there and back.

    Raises:
        Exception: CuPy's, where it does not load or compile.
        RuntimeError: The GPU cannot use the host's pointers, or moved other bytes.
    """
    import cupy  # pyright: ignore[reportMissingImports]

    if device.type != "cuda":
        program = cupy.cuda.nvrtc.createProgram(SOURCE, "kernels.cu", [], [])
        cupy.cuda.nvrtc.compileProgram(program, ["-arch=compute_80"])
        return
    # cudaDevAttrCanUseHostPointerForRegisteredMem: on some virtual GPUs and Windows the pointers differ
    if not cupy.cuda.Device(device.index or 0).attributes.get("CanUseHostPointerForRegisteredMem", 1):
        raise RuntimeError("the GPU cannot use the host's pointers to pinned memory")
    host, ids = Host(3, 512), torch.tensor([1])
    host.data.copy_(torch.arange(3 * 512).view(3, 512) % 251)
    before = host.data.clone()
    host.pin(device)
    transfer = Unified(host, device)
    if not host.pinned:
        return
    record = transfer.read(ids)
    transfer.write(ids, record.bitwise_not())
    torch.cuda.current_stream(device).synchronize()
    right = torch.equal(record.cpu(), before[ids])
    before[ids] = before[ids].bitwise_not()
    if not (right and torch.equal(host.data, before)):
        raise RuntimeError("a kernel moved other bytes than it should have")
