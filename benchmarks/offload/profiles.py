"""The measurements of benchmarks/profile_on_gpu.py."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.offload import measurements
from benchmarks.offload.gpu import Contest
from benchmarks.offload.steps import step, timed, train
from benchmarks.offload.transfers import GPU, grids
from benchmarks.on_gpu import Line, Measurement
from storage.tables import Offloaded, Planner
from tasks.optimizers import Adam, RowwiseAdagrad

RULES = {"rowwise_adagrad": RowwiseAdagrad(), "adam": Adam()}
TRACED = torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA
STEPS, EVENTS = 20, 20  # traced steps; events with a line


def profiles(out: Path, slow: Sequence[str]) -> list[Measurement]:
    """Returns the measurements of what was slow: "transfer" and names of RULES; seconds are estimates."""
    contest = Contest(measurements.ROWS)
    made = [Measurement("profile", "by grid size", 20, lambda left: grids())] if "transfer" in slow else []
    for name in filter(RULES.__contains__, slow):
        made.append(
            Measurement("profile", name, 60, lambda left, name=name: profile(out, contest, RULES[name]))
        )
    return made


def profile(out: Path, contest: Contest, rule: Any) -> Iterator[Line]:
    """Yields times of the parts of a step with 5 % cached, in ms, and the costliest events of 20 steps.

    If transfers alone take as long as the offloaded step, the link is the limit, otherwise the host or
    waiting. The trace in ``out`` is for ui.perfetto.dev.
    """
    bags = contest.bags(measurements.TOKENS)
    cache_rows, batch = contest.rows // 20, bags[0].ids
    table = Offloaded(contest.start, rule, device=GPU, cache_rows=cache_rows, batch=batch)
    planner = Planner(contest.rows, table.storage.hot, table.storage.recent)
    seconds = []
    for batch in bags:
        begun = time.perf_counter()
        planner.plan(batch.ids.numpy())
        seconds.append(time.perf_counter() - begun)
    yield {"planner_ms": 1000 * sorted(seconds)[len(seconds) // 2]}
    unused = torch.zeros((), device=GPU)
    moved = timed((unused for _ in table.prefetch(bags, lambda batch: batch.ids)), GPU, warm=6)
    yield {"transfers_alone_ms": 1000 * moved.median, **table.statistics.last_batch()}
    waited = table.statistics.wait_seconds
    offloaded = train(table, rule, bags, GPU, warm=6)
    waited = (table.statistics.wait_seconds - waited) / len(bags)
    yield {"offloaded_step_ms": 1000 * offloaded.median, "host_waited_for_rows_ms": 1000 * waited}
    if resident := contest.resident(rule):
        yield {"resident_step_ms": 1000 * train(resident, rule, bags, GPU, warm=6).median}
    with torch.profiler.profile(activities=TRACED) as trace:
        for number, batch in enumerate(table.prefetch(bags[:STEPS], lambda batch: batch.ids), start=1):
            step(table, rule, batch.to(GPU), number)
        torch.cuda.synchronize()
    trace.export_chrome_trace(str(out / f"{rule.name}.json"))
    costly: list[Any] = sorted(trace.key_averages(), key=lambda event: -event.device_time_total)[:EVENTS]
    for event in costly:
        yield {
            "event": event.key,
            "calls": event.count,
            "device_ms": event.device_time_total / 1000,
            "cpu_ms": event.cpu_time_total / 1000,
        }
