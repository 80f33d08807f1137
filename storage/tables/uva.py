"""The GPU reads and writes the host's records itself, through unified addresses: a gather and a scatter kernel in CuPy.

No CPU core takes part, and only the rows that are asked for cross the bus. Eight lanes of a warp read 128 bytes of a
record at a time, so that every transaction is whole; the grid is capped and walks on, for any number of rows. Offsets
are 64-bit: a table of ten million rows of 1,536 bytes is beyond 2^31.

Streams: the kernels run on torch's current stream, handed to CuPy, so that torch's own order holds and
no event is needed between the two. What torch allocates on that stream is freed in its order too.

References:
    Min et al. Large Graph Convolutional Network Training with GPU-Oriented Data Communication Architecture. VLDB 2021.
    https://arxiv.org/abs/2103.03330
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor

from storage.tables.host import Host

THREADS, LARGEST_GRID = 256, 4096
BLOCK_BYTES = 128 << 20  # of the device's memory that a call takes; the cache leaves little free

SOURCE = r"""
extern "C" __global__ void gather(const uint4* __restrict__ host, const long long* __restrict__ ids, uint4* __restrict__ block, long long words, long long records) {
    long long total = records * words;
    for (long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x; at < total; at += (long long)gridDim.x * blockDim.x) {
        long long record = at / words;
        block[at] = host[ids[record] * words + (at - record * words)];
    }
}
extern "C" __global__ void scatter(uint4* __restrict__ host, const long long* __restrict__ ids, const uint4* __restrict__ block, long long words, long long records) {
    long long total = records * words;
    for (long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x; at < total; at += (long long)gridDim.x * blockDim.x) {
        long long record = at / words;
        host[ids[record] * words + (at - record * words)] = block[at];
    }
}
"""


@cache
def _kernels() -> tuple[Any, Any]:
    import cupy  # pyright: ignore[reportMissingImports]

    module = cupy.RawModule(code=SOURCE)
    return module.get_function("gather"), module.get_function("scatter")


def grid(records: int, words: int) -> int:
    """Blocks of the launch."""
    return max(1, min(-(-records * words // THREADS), LARGEST_GRID))


class Unified:
    """Gathers and scatters by the GPU; ``host`` must be pinned."""

    def __init__(self, host: Host, device: torch.device) -> None:
        self.host, self.device = host, device
        self.block = max(1, BLOCK_BYTES // host.data.shape[1])
        self._words = host.data.shape[1] // 16
        self._gather, self._scatter = _kernels()

    def read(self, ids: Tensor) -> Tensor:
        """As in Mover."""
        block = torch.empty(len(ids), self.host.data.shape[1], dtype=torch.uint8, device=self.device)
        self._launch(self._gather, ids, block)
        return block

    def write(self, ids: Tensor, records: Tensor) -> None:
        """As in Mover; on the current stream."""
        self._launch(self._scatter, ids, records)

    def _launch(self, kernel: Any, ids: Tensor, block: Tensor) -> None:
        import cupy  # pyright: ignore[reportMissingImports]

        on_device = ids.to(self.device, non_blocking=True)
        stream = torch.cuda.current_stream(self.device)
        arguments = (self.host.data.data_ptr(), on_device.data_ptr(), block.data_ptr(), self._words, len(ids))
        with cupy.cuda.Device(self.device.index or 0), _shared(stream):
            kernel((grid(len(ids), self._words),), (THREADS,), tuple(_as_long(value) for value in arguments))


def _shared(stream: torch.cuda.Stream) -> Any:
    """Torch's stream for CuPy: by the protocol that both speak since CuPy 14, else by its address."""
    import cupy  # pyright: ignore[reportMissingImports]

    if hasattr(cupy.cuda.Stream, "from_external") and hasattr(stream, "__cuda_stream__"):
        return cupy.cuda.Stream.from_external(stream)
    return cupy.cuda.ExternalStream(stream.cuda_stream)


def _as_long(value: int) -> Any:
    """Kernel arguments as 64-bit integers, pointers too."""
    import numpy as np

    return np.uint64(value) if value >= 2**63 else np.int64(value)
