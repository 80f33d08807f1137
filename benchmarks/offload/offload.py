"""Embedding tables larger than device memory, measured on the CPU: planner, mapped file, gather and
scatter.

Needs torch, NumPy and pyarrow. Measures on the CPU: the share of the planner in a step of 98,304 tokens over
ten million rows; a mapped table of 10 M × 128 whose pages are removed from the page cache before each epoch,
compared with a table in memory, if a tenth of the rows is used frequently (the 5 GB file is in
$GUIDESPACE_SCRATCH, or else in the temporary folder); the gather of 131,072 rows of 128 out of a million,
which is SpeedTorch's set-up. ``python -m benchmarks.on_gpu`` measures what needs a GPU.
"""

import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from benchmarks.claims import Claim, run
from benchmarks.offload.steps import DIM, batches, tenth, train, zipf
from benchmarks.timing import in_turn
from storage.tables import Host, Offloaded, Planner, Resident, Staged, random_rows
from tasks.optimizers import Adagrad, RowwiseAdagrad

CPU = torch.device("cpu")
TOKENS = 98_304
SPEEDTORCH_ROWS = 131_072


def measure_offload(quick: bool) -> Sequence[Claim]:
    """Measures all claims of this file."""
    torch.set_num_threads(1)
    return [*planner_share(quick), *mapped(quick), *speedtorch_setup(quick)]


def planner_share(quick: bool) -> list[Claim]:
    """Measures the planner over ten million rows, and the step over a million, resident and offloaded.

    A step over fewer rows is not slower.
    """
    rows, step_rows, rule, count = 10_000_000, 200_000 if quick else 1_000_000, Adagrad(), 8 if quick else 16
    planner, seconds = Planner(rows, rows // 20 * 9 // 10, rows // 20 // 10), []
    for batch in batches(zipf, rows, TOKENS, 4 + count):
        started = time.process_time()
        planner.plan(batch.ids.numpy())
        seconds.append(time.process_time() - started)
    plan = statistics.median(seconds[4:])
    bags = batches(zipf, step_rows, TOKENS, count)
    start = random_rows(step_rows, DIM, 0.1, 1)
    table = torch.cat(list(start.pieces()))
    resident = train(Resident(table, rule.initial_state(table)), rule, bags, CPU)
    offloaded = train(Offloaded(start, rule, cache_rows=step_rows // 20), rule, bags, CPU)
    return [
        Claim(
            f"planner over 10 M rows, {TOKENS:,} tokens, share of the step, %",
            100 * plan / resident.median,
            aim=3,
            better="less",
        ),
        Claim("planner, ms a step (CPU)", 1000 * plan, better=None),
        Claim(
            f"step over {step_rows:,} rows, Adagrad, 5 % cached, ms",
            1000 * offloaded.median,
            "resident",
            1000 * resident.median,
            better=None,
        ),
        Claim(
            "losses that differ from resident",
            float((resident.losses != offloaded.losses).sum()),
            aim=0,
            better="less",
        ),
    ]


def mapped(quick: bool) -> list[Claim]:
    """Measures two epochs of each table; the pages of the mapped table are written and dropped before each
    epoch.
    """
    rows, rule, epochs, count = 1_000_000 if quick else 10_000_000, RowwiseAdagrad(), 2, 8 if quick else 16
    claims = []
    folder = Path(os.environ.get("GUIDESPACE_SCRATCH", tempfile.gettempdir()))
    draws = {"a tenth hot": tenth, "Zipf": zipf}
    bags = {
        name: [batches(draw, rows, TOKENS, count, seed=epoch) for epoch in range(epochs)]
        for name, draw in draws.items()
    }
    table = Offloaded(random_rows(rows, DIM, 0.1, 1), rule, cache_rows=rows, lookahead=2)  # all in memory
    memory = {name: [train(table, rule, epoch, CPU) for epoch in bags[name]] for name in draws}
    del table
    table = Offloaded(random_rows(rows, DIM, 0.1, 1), rule, cache_rows=rows // 10, lookahead=2, folder=folder)
    for name in draws:
        measured, faults = [], np.zeros(3)
        for epoch in bags[name]:
            table.storage.host.drop_pages()
            before = _faults()
            measured.append(train(table, rule, epoch, CPU))
            faults += _faults() - before
        ours, theirs = (
            1000 * statistics.mean(float(epoch.seconds.mean()) for epoch in runs)
            for runs in (measured, memory[name])
        )
        aim = 1.5 if draws[name] is tenth else None
        claims.append(
            Claim(
                f"mapped {rows:,} × {DIM}, {name}, cold pages, ms a step",
                ours,
                "in memory",
                theirs,
                aim=aim,
                better="less",
            )
        )
        kinds = ("page faults that waited for the disk", "other page faults", "pages read from disk")
        claims += [
            Claim(f"{kind} a step, {name}", value, better=None)
            for kind, value in zip(kinds, faults / epochs / count, strict=True)
        ]
        differ = sum(
            int((one.losses != other.losses).sum()) for one, other in zip(measured, memory[name], strict=True)
        )
        claims.append(
            Claim(f"losses that differ from the table in memory, {name}", float(differ), aim=0, better="less")
        )
    return claims


def _faults() -> np.ndarray:
    """Returns major and minor page faults of this process, and the 4 KiB pages that it read from disk.

    Pages that were read ahead mostly cause no major fault.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    return np.array([used.ru_majflt, used.ru_minflt, used.ru_inblock * 512 / 4096])


def speedtorch_setup(quick: bool) -> list[Claim]:
    """Measures the copy of 131,072 random rows of 128 out of a million to a variable and back; GB/s, one
    thread.
    """
    rows = 200_000 if quick else 1_000_000
    host = Host(rows, DIM * 4)
    host.data.view(torch.float32).normal_()
    mover, weights = Staged(host, CPU), torch.randn(rows, DIM)
    ids = torch.from_numpy(np.random.default_rng(0).choice(rows, SPEEDTORCH_ROWS, replace=False))
    variable, out = torch.randn(SPEEDTORCH_ROWS, DIM), torch.empty(SPEEDTORCH_ROWS, DIM)
    records, slots = variable.view(torch.uint8), torch.arange(SPEEDTORCH_ROWS)

    def assign() -> None:
        weights[ids] = variable

    ways: dict[str, Callable[[], object]] = {
        "ours, gather": lambda: mover.read(ids, records, slots),
        "W[idx]": lambda: weights[ids],
        "index_select(out=)": lambda: torch.index_select(weights, 0, ids, out=out),
        "ours, scatter": lambda: mover.write(ids, records, slots),
        "W[idx] = rows": assign,
        "index_copy_": lambda: weights.index_copy_(0, ids, variable),
    }
    in_turn(ways, 1)  # warm-up
    seconds = in_turn(ways, 9 if quick else 25, time.perf_counter)
    speed = {name: variable.nbytes / 1e9 / seconds[name] for name in ways}
    rivals = {
        "gather": {"W[idx]": 1.0, "index_select(out=)": 0.9},
        "scatter": {"W[idx] = rows": 1.0, "index_copy_": 0.9},
    }
    return [
        Claim(f"{way} {SPEEDTORCH_ROWS:,} × {DIM}, GB/s", speed[f"ours, {way}"], rival, speed[rival], aim=aim)
        for way, aims in rivals.items()
        for rival, aim in aims.items()
    ]


if __name__ == "__main__":
    sys.exit(run(measure_offload, __doc__ or ""))
