"""Two ranks on this machine (gloo): what they gain over one process, and rows replicated against rows sharded.

1. Titles a second of two ranks with one thread each against one process with one thread and with two, one guide.
2. One exchange of a step's rows, 10,000 distinct of 128 dimensions a rank: replicated, the gradients are gathered by all;
   sharded, rows travel from their owner (id modulo ranks) before the step and gradients back to it after.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from benchmarks.claims import Claim, guides, run
from benchmarks.road import make_corpus
from tasks.preprocess.corpus import open_corpus
from tasks.train.loop import Training
from tasks.train.ranks import Ranks, join_ranks
from tasks.train.settings import TrainSettings

ROWS, DIM, TABLE, EPOCHS = 10_000, 128, 100_000, 4


def measure_ranks(quick: bool) -> Sequence[Claim]:
    """All claims of this file."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = make_corpus(Path(folder) / "home", guides("ZA1"))
        alone = {threads: statistics.median(_speed(corpus, threads, None) for _ in range(1 if quick else 3)) for threads in (1, 2)}
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "benchmarks.ranks", "--as-rank", str(corpus)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    told = json.loads(done.stdout)
    return [
        *(Claim(name="two ranks, titles/s", value=told["titles_per_second"], rival=f"one process, threads: {threads}", rival_value=speed) for threads, speed in alone.items()),
        Claim(name="exchange of a step's rows, replicated, ms", value=told["replicated"], rival="sharded", rival_value=told["sharded"], aim=1, better="less"),
    ]


def _speed(corpus: Path, threads: int, ranks: Ranks | None) -> float:
    training = Training(corpus, TrainSettings(dim=DIM, epochs=EPOCHS, threads=threads, workers=0), ranks)
    started = time.perf_counter()
    list(training.run())
    return len(open_corpus(corpus).training) * EPOCHS / (time.perf_counter() - started)


def _as_rank(corpus: Path) -> None:
    """What each rank does; the first prints."""
    with join_ranks() as ranks:
        assert ranks is not None
        speed = _speed(corpus, 1, ranks)
        generator = torch.Generator().manual_seed(ranks.rank)
        ids = torch.randperm(TABLE, generator=generator)[:ROWS].sort().values
        grad, rows = torch.randn(ROWS, DIM), torch.randn(TABLE // ranks.size + 1, DIM)
        replicated = _milliseconds(lambda: ranks.mean_rows(ids, grad))
        sharded = _milliseconds(lambda: _exchange_sharded(ranks, ids, rows, grad))
        if ranks.rank == 0:
            print(json.dumps({"titles_per_second": speed, "replicated": replicated, "sharded": sharded}))


def _exchange_sharded(ranks: Ranks, ids: Tensor, rows: Tensor, grad: Tensor) -> Tensor:
    """Ids to their owners, rows back, gradients to the owners, who add them up."""
    owner = ids % ranks.size
    order = owner.argsort(stable=True)
    sent = torch.bincount(owner, minlength=ranks.size)
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent)
    out, into = sent.tolist(), received.tolist()
    wanted = torch.empty(sum(into), dtype=torch.int64)
    dist.all_to_all_single(wanted, ids[order], into, out)
    local = wanted // ranks.size
    mine = torch.empty(len(ids), DIM)
    dist.all_to_all_single(mine, rows.index_select(0, local), out, into)
    arrived = torch.empty(sum(into), DIM)
    dist.all_to_all_single(arrived, grad[order], into, out)
    union, place = torch.unique(local, return_inverse=True)
    return torch.zeros(len(union), DIM).index_add_(0, place, arrived).div_(ranks.size)


def _milliseconds(exchange: Callable[[], object]) -> float:
    """Median of thirty, all ranks starting together."""
    taken = []
    for _ in range(33):
        dist.barrier()
        started = time.perf_counter()
        exchange()
        taken.append(time.perf_counter() - started)
    return 1000 * statistics.median(taken[3:])


if __name__ == "__main__":
    sys.exit(_as_rank(Path(sys.argv[2])) if sys.argv[1:2] == ["--as-rank"] else run(measure_ranks, __doc__ or ""))
