"""Copies records between host and device, in the transfer thread of the prefetcher."""

import importlib.util
import logging
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from storage.tables.host import Host

log = logging.getLogger(__name__)

TransferKind = Literal["auto", "uva", "staged"]
BUFFER_BYTES = 32 << 20  # size of a pinned buffer
THREADS_PER_BLOCK, RECORDS_PER_WARP = 256, 4  # a warp loads four records before it stores the first one
# Kernels use an eighth of the multiprocessors, which is estimated to saturate the link to the host.
MULTIPROCESSORS_PER_BLOCK = 8
SOURCE = r"""
#define MOVE_RECORDS(FROM, TO) \
    long long warp = (blockIdx.x * (long long)blockDim.x + threadIdx.x) / 32; \
    long long warps = (long long)gridDim.x * blockDim.x / 32; \
    for (long long first = warp * 4; first < records; first += warps * 4) { \
        long long id[4], slot[4]; \
        _Pragma("unroll") for (int i = 0; i < 4; i++) { \
            id[i] = first + i < records ? ids[first + i] * words : 0; \
            slot[i] = first + i < records ? slots[first + i] * words : 0; \
        } \
        for (long long word = threadIdx.x % 32; word < words; word += 32) { \
            uint4 loaded[4]; /* issue four loads before the first store */ \
            _Pragma("unroll") for (int i = 0; i < 4; i++) \
                if (first + i < records) loaded[i] = FROM; \
            _Pragma("unroll") for (int i = 0; i < 4; i++) \
                if (first + i < records) TO = loaded[i]; \
        } \
    }
extern "C" __global__ void gather(const uint4* __restrict__ host, const long long* __restrict__ ids,
                                  uint4* __restrict__ cache, const long long* __restrict__ slots,
                                  long long words, long long records) {
    MOVE_RECORDS(host[id[i] + word], cache[slot[i] + word])
}
extern "C" __global__ void scatter(uint4* __restrict__ host, const long long* __restrict__ ids,
                                   const uint4* __restrict__ cache, const long long* __restrict__ slots,
                                   long long words, long long records) {
    MOVE_RECORDS(cache[slot[i] + word], host[id[i] + word])
}
"""


class Transfer(Protocol):
    """Copies records between the host and a cache on the device.

    Attributes:
        device_gathers: Whether ``ids`` must be on the device (True) or on the CPU (False).
    """

    device_gathers: bool

    def read(self, ids: Tensor, cache: Tensor, slots: Tensor) -> None:
        """Copies the host records ``ids`` to ``slots`` of the cache, on the current stream.

        Args:
            ids: Numbers of host records, int64 (any,).
            cache: Records on the device, uint8 (slots, width).
            slots: Slot of each record, int64 (any,), on the device.
        """
        ...

    def write(self, ids: Tensor, cache: Tensor, slots: Tensor) -> None:
        """Copies ``slots`` of the cache to the host records ``ids``.

        The copy is complete when this method returns, or is made on the current stream. The arguments are
        those of ``read``.
        """
        ...


class Staged:
    """Gathers and scatters records on the CPU. A GPU gets them through two alternating pinned buffers."""

    device_gathers = False

    def __init__(self, host: Host, device: torch.device) -> None:
        self.host, self.device = host, device
        self.block = max(1, BUFFER_BYTES // host.data.shape[1])  # number of records in a buffer
        on_gpu = device.type == "cuda"
        shape = min(self.block, max(1, len(host.data))), host.data.shape[1] // 8
        buffer_count = 1 + on_gpu
        options: dict[str, Any] = {"dtype": torch.int64}
        try:
            self._buffers = [torch.empty(shape, pin_memory=on_gpu, **options) for _ in range(buffer_count)]
        except RuntimeError as error:
            problem = f"pinning a buffer of {shape[0] * shape[1] * 8 / 1e6:.0f} MB was refused ({error})"
            log.warning("%s: rows are moved through pageable memory, which is slower", problem)
            self._buffers = [torch.empty(shape, **options) for _ in range(buffer_count)]
        self._events: list[Any] = [None, None]  # event after the last use of each buffer by the GPU
        self._current_buffer = 0

    def read(self, ids: Tensor, cache: Tensor, slots: Tensor) -> None:
        """Copies the host records ``ids`` to ``slots`` of the cache; for a GPU, through a pinned buffer."""
        cache_words = cache.view(torch.int64)
        for block_ids, block_slots in zip(ids.split(self.block), slots.split(self.block), strict=True):
            self.host.will_need(block_ids)
            buffer = self._next_buffer(len(block_ids))
            torch.index_select(self.host.as_words(), 0, block_ids, out=buffer)
            cache_words.index_copy_(0, block_slots, buffer.to(self.device, non_blocking=True))
            if self.device.type == "cuda":  # the buffer may be used again after this event
                self._events[self._current_buffer] = torch.cuda.current_stream(self.device).record_event()

    def write(self, ids: Tensor, cache: Tensor, slots: Tensor) -> None:
        """Copies ``slots`` of the cache to the host records ``ids``; waits for the copy from the GPU."""
        cache_words = cache.view(torch.int64)
        for block_ids, block_slots in zip(ids.split(self.block), slots.split(self.block), strict=True):
            self.host.will_need(block_ids)
            records = cache_words.index_select(0, block_slots)
            if self.device.type == "cuda":
                buffer = self._next_buffer(len(block_ids))
                buffer.copy_(records, non_blocking=True)
                torch.cuda.current_stream(self.device).synchronize()
                records = buffer
            self.host.as_words().index_copy_(0, block_ids, records)

    def _next_buffer(self, records: int) -> Tensor:
        """Returns memory for records, int64 (records, width / 8), when the GPU no longer uses it."""
        self._current_buffer = (self._current_buffer + 1) % len(self._buffers)
        if event := self._events[self._current_buffer]:
            event.synchronize()
        return self._buffers[self._current_buffer][:records]


@cache
def _kernels() -> tuple[Any, Any]:
    """Returns the compiled kernels gather and scatter."""
    import cupy  # pyright: ignore[reportMissingImports]

    module = cupy.RawModule(code=SOURCE)
    return module.get_function("gather"), module.get_function("scatter")


def grid(records: int, multiprocessors: int) -> int:
    """Returns the number of blocks of a kernel launch: one warp per four records, at least one block.

    The number is at most an eighth of the number of multiprocessors.
    """
    required_blocks = -(-records * 32 // (RECORDS_PER_WARP * THREADS_PER_BLOCK))
    return max(1, min(required_blocks, multiprocessors // MULTIPROCESSORS_PER_BLOCK))


def upload(arrays: Sequence[np.ndarray], device: torch.device) -> list[Tensor]:
    """Copies int64 arrays to a device. For a GPU, makes a single copy, and returns views of one tensor."""
    if device.type == "cpu":
        return [torch.from_numpy(array) for array in arrays]
    lengths = [len(array) for array in arrays]
    try:
        buffer = torch.empty(sum(lengths), dtype=torch.int64, pin_memory=True)
    except RuntimeError:  # pinning failed, so the copy is made from pageable memory
        buffer = torch.empty(sum(lengths), dtype=torch.int64)
    np.concatenate(arrays, out=buffer.numpy())
    return list(buffer.to(device, non_blocking=True).split(lengths))


class Unified:
    """Gathers and scatters records with GPU kernels, which access pinned host memory directly (UVA).

    UVA is CUDA's unified virtual addressing. A warp reads 512 consecutive bytes of each of four records, so
    memory transactions are full. Kernels run on the current stream of torch, so they need no events.

    References:
        Min et al. Large Graph Convolutional Network Training with GPU-Oriented Data Communication
        Architecture. VLDB 2021. https://arxiv.org/abs/2103.03330
    """

    device_gathers = True

    def __init__(self, host: Host, device: torch.device) -> None:
        self.host, self.device = host, device
        self._words = host.data.shape[1] // 16
        self._gather, self._scatter = _kernels()
        self._multiprocessors = torch.cuda.get_device_properties(device).multi_processor_count

    def read(self, ids: Tensor, cache: Tensor, slots: Tensor) -> None:
        """Copies the host records ``ids`` to ``slots`` of the cache, on the current stream."""
        self._launch(self._gather, ids, cache, slots)

    def write(self, ids: Tensor, cache: Tensor, slots: Tensor) -> None:
        """Copies ``slots`` of the cache to the host records ``ids``, on the current stream."""
        self._launch(self._scatter, ids, cache, slots)

    def _launch(self, kernel: Any, ids: Tensor, cache: Tensor, slots: Tensor) -> None:
        import cupy  # pyright: ignore[reportMissingImports]

        stream = torch.cuda.current_stream(self.device)
        if hasattr(cupy.cuda.Stream, "from_external") and hasattr(stream, "__cuda_stream__"):  # since CuPy 14
            cupy_stream = cupy.cuda.Stream.from_external(stream)
        else:
            cupy_stream = cupy.cuda.ExternalStream(stream.cuda_stream)
        pointers = (tensor.data_ptr() for tensor in (self.host.data, ids, cache, slots))
        arguments = (*pointers, self._words, len(ids))
        with cupy.cuda.Device(self.device.index or 0), cupy_stream:
            # 64-bit arguments, because ten million rows of 1,536 bytes exceed 2^31 bytes
            blocks = grid(len(ids), self._multiprocessors)
            kernel((blocks,), (THREADS_PER_BLOCK,), tuple(map(np.uint64, arguments)))


def choose_transfer(kind: TransferKind, host: Host, device: torch.device) -> Transfer:
    """Creates a transfer between ``host`` and ``device``.

    Args:
        kind: "uva" (Unified), "staged" (Staged), or "auto", which selects Unified if a GPU, CuPy and pinned
            memory are available, and otherwise Staged.
        host: Host records of the table.
        device: Device of the cache.

    Raises:
        ValueError: ``kind`` is "uva", and a GPU, CuPy or pinned memory is missing.
    """
    if kind == "staged":
        return Staged(host, device)
    on_gpu, has_cupy = device.type == "cuda", importlib.util.find_spec("cupy") is not None
    try:
        if on_gpu and has_cupy:
            check_kernels(device)  # first, because pinning a hundred gigabytes takes a minute
            host.pin(device)
            if host.pinned:
                return Unified(host, device)
    except Exception as error:  # CuPy raises Exception if the compiler is missing or CUDA is too old
        if kind == "uva":
            raise
        consequence = "rows are moved through a small buffer, which is slower"
        log.warning("CuPy is installed but does not work (%s): %s", error, consequence)
        return Staged(host, device)
    if kind == "auto":
        return Staged(host, device)
    requirements = {"a CUDA device": on_gpu, "CuPy": has_cupy, "pinned memory": host.pinned}
    missing_requirements = " and ".join(
        name for name, is_available in requirements.items() if not is_available
    )
    raise ValueError(f"transfer 'uva' needs {missing_requirements}; use 'auto' or 'staged'")


def check_kernels(device: torch.device) -> None:
    """Compiles the kernels; on a GPU, also copies a record of pinned memory to the device and back.

    Raises:
        Exception: CuPy cannot be loaded, or cannot compile the kernels.
        RuntimeError: The GPU cannot use pointers of the host, or a kernel copied wrong bytes.
    """
    import cupy  # pyright: ignore[reportMissingImports]

    if device.type != "cuda":
        program = cupy.cuda.nvrtc.createProgram(SOURCE, "kernels.cu", [], [])
        cupy.cuda.nvrtc.compileProgram(program, ["-arch=compute_80"])
        return
    # cudaDevAttrCanUseHostPointerForRegisteredMem: pointers differ on Windows and some virtual GPUs
    if not cupy.cuda.Device(device.index or 0).attributes.get("CanUseHostPointerForRegisteredMem", 1):
        raise RuntimeError("the GPU cannot use host pointers to pinned memory")
    host = Host(3, 512)
    host.data.copy_(torch.arange(3 * 512).view(3, 512) % 251)
    expected = host.data.clone()
    host.pin(device)
    transfer = Unified(host, device)
    if not host.pinned:
        return
    ids, slots = torch.tensor([1], device=device), torch.tensor([0], device=device)
    record = torch.empty(1, 512, dtype=torch.uint8, device=device)
    transfer.read(ids, record, slots)
    is_read_correctly = torch.equal(record.cpu(), expected[1:2])
    transfer.write(ids, record.bitwise_not_(), slots)
    torch.cuda.current_stream(device).synchronize()
    expected[1] = expected[1].bitwise_not()
    if not (is_read_correctly and torch.equal(host.data, expected)):
        raise RuntimeError("a kernel transferred wrong bytes; choose the transfer 'staged'")
