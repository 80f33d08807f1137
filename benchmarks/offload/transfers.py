"""Transfers between host memory and the GPU: copies, gathers and scatters."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from benchmarks.claims import Claim
from benchmarks.offload.steps import zipf
from storage.tables import Host, Staged, Transfer, choose_transfer, transfer

GPU = torch.device("cuda")
MOVED = 131_072  # records
COPIED = 1 << 28  # bytes of a plain copy
HELD = 1_000_000, 10_000_000  # records in host memory


def milliseconds(work: Callable[[], object], repeats: int = 20) -> list[float]:
    """Returns the milliseconds of each run by the clock of the GPU, without the first three runs."""
    times = []
    for _ in range(repeats + 3):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return times[3:]


def link() -> Iterator[Claim]:
    """Measures copies of 256 MB between pinned memory and the GPU, in GB/s."""
    host, device = (
        torch.empty(COPIED, dtype=torch.uint8, pin_memory=True),
        torch.empty(COPIED, dtype=torch.uint8, device=GPU),
    )
    ways: dict[str, Callable[[], object]] = {
        "host to device": lambda: device.copy_(host, non_blocking=True),
        "device to host": lambda: host.copy_(device, non_blocking=True),
    }
    for name, way in ways.items():
        speed = host.nbytes / 1e6 / statistics.median(milliseconds(way))
        yield Claim(f"link, {name}, GB/s", speed, better=None)


def both_at_once() -> Iterator[Claim]:
    """Measures simultaneous copies of 256 MB in both directions, on one stream each; total GB/s."""
    hosts = [torch.empty(COPIED, dtype=torch.uint8, pin_memory=True) for _ in range(2)]
    devices = [torch.empty(COPIED, dtype=torch.uint8, device=GPU) for _ in range(2)]
    out, current = torch.cuda.Stream(), torch.cuda.current_stream()

    def copy() -> None:
        out.wait_stream(current)
        devices[0].copy_(hosts[0], non_blocking=True)
        with torch.cuda.stream(out):
            hosts[1].copy_(devices[1], non_blocking=True)
        current.wait_stream(out)

    speed = 2 * hosts[0].nbytes / 1e6 / statistics.median(milliseconds(copy))
    yield Claim("link, both directions at once, GB/s", speed, better=None)


def grids() -> Iterator[Claim]:
    """Measures gathers and scatters within the GPU by number of blocks, compared with one copy of the same
    bytes.
    """
    for width in (512, 1024, 1536):
        host = Host(HELD[0], width)
        host.data.zero_()
        mover = choose_transfer("uva", host, GPU)
        chosen = np.random.default_rng(0).choice(HELD[0], MOVED // 2, replace=False)
        ids = torch.from_numpy(chosen).to(GPU)
        block = torch.empty(len(ids), width, dtype=torch.uint8, device=GPU)
        slots = torch.randperm(len(ids), device=GPU)
        flat = torch.empty(len(ids), width, dtype=torch.uint8, pin_memory=True)
        copied = statistics.median(milliseconds(lambda: block.copy_(flat, non_blocking=True)))  # noqa: B023
        size = block.nbytes / 1e6
        for blocks in (4 << power for power in range(0, 11, 2)):
            with patch.object(transfer, "grid", lambda records, multiprocessors: blocks):  # noqa: B023
                times = {
                    "gather": milliseconds(lambda: mover.read(ids, block, slots), 10),  # noqa: B023
                    "scatter": milliseconds(lambda: mover.write(ids, block, slots), 10),  # noqa: B023
                }
            for name, seconds in times.items():
                yield Claim(
                    f"{name}, {width} B, {blocks} blocks, GB/s",
                    size / statistics.median(seconds),
                    "one copy",
                    size / copied,
                    better=None,
                )


def gathers(has_cupy: bool, held: Sequence[int], widths: Sequence[int]) -> Iterator[Claim]:
    """Measures transfers of 131,072 records to the GPU and back, out of ``held`` records of ``widths`` bytes.

    Ids are ascending, as in a batch. Transfers are compared with one copy of the same bytes, and with
    ``W[idx]`` of torch for pageable memory and for pinned memory, which is the method of SpeedTorch.
    """
    rng = np.random.default_rng(0)
    for rows in held:
        for width in widths:
            host = Host(rows, width)
            host.data.zero_()
            drawn = {
                "random": torch.from_numpy(np.sort(rng.choice(rows, MOVED, replace=False))),
                "Zipf": torch.from_numpy(np.unique(zipf(rows, 4 * MOVED, rng))[:MOVED]),
            }
            pageable = {name: _indexed(host, ids) for name, ids in drawn.items()}
            host.pin()
            for name, ids in drawn.items():
                what = f"{width} B of {rows:,}, {name}"
                yield from _gather(host, ids, what, has_cupy, pageable[name])
            del host


def _indexed(host: Host, ids: Tensor) -> dict[str, float]:
    """Returns GB/s of ``W[idx]`` and a copy to the GPU, of a copy back and ``W[idx] = rows``, and of both."""
    rows = host.data[ids].to(GPU)

    def scatter() -> None:
        host.data[ids] = rows.cpu()

    there, back = (
        statistics.median(milliseconds(way, 5)) for way in (lambda: host.data[ids].to(GPU), scatter)
    )
    size = rows.nbytes / 1e6
    return {"gather": size / there, "scatter": size / back, "there and back": 2 * size / (there + back)}


def _gather(
    host: Host, ids: Tensor, what: str, has_cupy: bool, pageable: dict[str, float]
) -> Iterator[Claim]:
    size, width = len(ids) * host.data.shape[1], host.data.shape[1]
    flat, there = (
        torch.empty(size, dtype=torch.uint8, pin_memory=True),
        torch.empty(size, dtype=torch.uint8, device=GPU),
    )
    slots = torch.randperm(len(ids), device=GPU)  # slots of a cache, in random order as in an LRU cache
    copy = size / 1e6 / statistics.median(milliseconds(lambda: there.copy_(flat, non_blocking=True)))
    indexed = _indexed(host, ids)
    for name, speed in indexed.items():
        about = f"SpeedTorch's way (W[idx] of pinned memory), {name}, {what}, GB/s"
        rival = {"rival": "of pageable memory", "rival_value": pageable[name]}
        yield Claim(about, speed, **rival, better=None)
    movers: dict[str, Transfer] = {"staged": Staged(host, GPU)}
    if has_cupy and host.pinned:
        movers["uva"] = choose_transfer("uva", host, GPU)
    for name, mover in movers.items():
        moved = ids.to(GPU) if mover.device_gathers else ids, there.view(len(ids), width), slots
        times = milliseconds(lambda mover=mover, moved=moved: mover.read(*moved))
        speed = size / 1e6 / statistics.median(times)
        aim = (0.9 if width >= 1536 else 0.8 if width >= 512 else None) if name == "uva" else None
        yield Claim(f"{name} gather, {what}, GB/s", speed, "one copy", copy, aim=aim)
        yield Claim(
            f"{name} gather, {what}, p90, GB/s", size / 1e6 / float(np.quantile(times, 0.9)), better=None
        )
        back = milliseconds(lambda mover=mover, moved=moved: mover.write(*moved))
        yield Claim(
            f"{name} scatter, {what}, GB/s",
            size / 1e6 / statistics.median(back),
            "one copy",
            copy,
            better=None,
        )
        both = 2 * size / 1e6 / (statistics.median(times) + statistics.median(back))
        yield Claim(
            f"{name} there and back, {what}, GB/s",
            both,
            "SpeedTorch's way",
            indexed["there and back"],
            aim=20 if name == "uva" else None,
        )
