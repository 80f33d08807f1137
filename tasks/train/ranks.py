"""Training by several processes, on one machine or more: ``torchrun --nproc-per-node 2 -m tasks.train CORPUS OUT``.

Rows are replicated: each rank has all of them. Of a batch each rank takes every n-th title and its gradients, all
exchange the rows they touched, and every rank takes the same step with the mean. The negatives of a title are those of
its own rank, a share of what one process would give it.
All ranks thereby hold the same bits at every moment, decide alike when to stop, and the first one writes checkpoints.

Why not sharded (each rank keeps every n-th row, and rows travel to whoever needs them): rows would travel before the
step and gradients after it, where replicated ones need one exchange; benchmarks/ranks.py measures both. A rank's share of
a table that is too large for it belongs into an offloaded table, not onto another rank.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from storage.tables.embedding import add_up


@dataclass(frozen=True)
class Ranks:
    """The processes that train together, as torch.distributed's default group.

    Attributes:
        rank: Of this process, from 0.
        size: How many there are.
    """

    rank: int = 0
    size: int = 1

    def mean_rows(self, ids: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
        """The rows that any rank touched, and their mean gradient over all ranks.

        Args:
            ids: int64 (unique,), distinct.
            grad: float32 (unique, dim).

        Returns:
            int64 (union,), rising, and float32 (union, dim); the same bits on every rank.
        """
        counts = [torch.zeros(1, dtype=torch.int64, device=ids.device) for _ in range(self.size)]
        dist.all_gather(counts, torch.tensor([len(ids)], device=ids.device))
        lengths = [int(count) for count in counts]
        all_ids, all_grads = (self._gather(tensor, lengths) for tensor in (ids, grad))
        union, place = torch.unique(all_ids, return_inverse=True)
        return union, add_up(all_grads, place, len(union)).div_(self.size)  # not index_add_: a GPU's atomics give each rank another sum of three

    def _gather(self, tensor: Tensor, lengths: list[int]) -> Tensor:
        """Every rank's tensor, one after the other in the order of the ranks."""
        longest = max(lengths)
        padded = tensor.new_zeros(longest, *tensor.shape[1:])
        padded[: len(tensor)] = tensor
        received = [torch.empty_like(padded) for _ in lengths]
        dist.all_gather(received, padded)
        return torch.cat([one[:length] for one, length in zip(received, lengths, strict=True)])

    def wait(self) -> None:
        """Until every rank is here."""
        dist.barrier()

    def mean(self, tensor: Tensor) -> Tensor:
        """The mean of a tensor over all ranks."""
        tensor = tensor.clone()
        dist.all_reduce(tensor)
        return tensor.div_(self.size)


@contextmanager
def join_ranks() -> Iterator[Ranks | None]:
    """The group that torchrun started this process for; None where it was started alone.

    torchrun names the group in the environment: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield None
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")  # train.device may be cpu beside a GPU
    try:
        yield Ranks(dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()
