"""What the simulated device must show, and what only it can show of a table.

Each law is one of CUDA's, or of torch's caching allocator.
"""

import gc
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch

from storage.tables import Offloaded, as_section
from storage.tables.planner import NO_STEP
from storage.tables.prefetch import Steps
from storage.tables.transfer import Unified
from tasks.optimizers import SGD, Adam
from tests.device.streams import DRAW, GPU, STARVE_MAIN, STARVE_OTHERS

pytestmark = pytest.mark.gpu


def starving(policy: int) -> torch.cuda.Stream:
    """Resets the device to a policy that starves one of two streams, and returns the second stream."""
    gc.collect()  # what earlier tests left would be freed amid this one, which runs work
    GPU.reset(policy)
    return torch.cuda.Stream()


def test_a_stream_that_does_not_wait_reads_what_was_there():
    for waits in (False, True):
        side, value = starving(STARVE_MAIN), torch.zeros(3, device="cuda")
        torch.cuda.synchronize()
        value += 1
        if waits:
            side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            copy = value + 0
            assert copy.cpu().tolist() == [float(waits)] * 3
        assert value.cpu().tolist() == [1] * 3


def test_fresh_memory_is_poison_and_freed_memory_is_again():
    side = starving(STARVE_OTHERS)
    assert torch.empty(2, device="cuda").isnan().all()
    for recorded in (False, True):
        value = torch.ones(2, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            copy = value * 1
        if recorded:
            value.record_stream(side)
        del value
        side.synchronize()
        assert copy.cpu().isnan().all() != recorded


def test_memory_that_is_freed_runs_no_work(monkeypatch: pytest.MonkeyPatch):
    """A collector frees it at any moment, amid the scheduler's own lines too."""
    side, value, ran = starving(STARVE_OTHERS), torch.ones(2, device="cuda"), []
    value.record_stream(side)
    torch.cuda.synchronize()
    monkeypatch.setattr(GPU, "run_some", lambda: ran.append(True))
    del value
    assert not ran and len(GPU.freed) == 1


def test_pageable_memory_is_read_at_once_and_pinned_memory_when_the_copy_runs():
    for pinned in (False, True):
        starving(STARVE_MAIN)
        source = torch.ones(2, pin_memory=pinned)
        copy = source.to("cuda", non_blocking=True)
        source.zero_()
        assert copy.cpu().tolist() == [1.0 - pinned] * 2


def test_a_copy_to_pinned_memory_is_complete_after_a_wait():
    starving(STARVE_MAIN)
    value, target = torch.ones(2, device="cuda"), torch.zeros(2, pin_memory=True)
    target.copy_(value, non_blocking=True)
    assert target.tolist() == [0, 0]
    torch.cuda.current_stream().synchronize()
    assert target.tolist() == [1, 1]


def test_an_event_covers_only_work_before_its_record():
    side = starving(STARVE_MAIN)
    value = torch.zeros(1, device="cuda")
    event = torch.cuda.current_stream().record_event()
    value += 1
    side.wait_event(event)
    with torch.cuda.stream(side):
        assert (value + 0).cpu().item() == 0
    assert not torch.cuda.current_stream().query()


def test_the_host_waits_for_values_and_counts_it():
    starving(DRAW)
    value, before = torch.arange(4, device="cuda"), GPU.synchronisations
    (value * 2).sum().add_(1)
    assert GPU.synchronisations == before
    assert value.sum().item() == 6 and value.nonzero().shape == (3, 1)
    assert GPU.synchronisations == before + 2


def test_tensors_of_both_devices_do_not_meet():
    with pytest.raises(RuntimeError, match="same device"):
        torch.ones(2, device="cuda").add_(torch.ones(2))


def test_a_move_waits_for_the_step_that_matters_and_no_later_one():
    side, steps, value = starving(STARVE_MAIN), Steps(torch.device("cuda", 0)), torch.zeros(1, device="cuda")
    for step in range(3):
        value += 1
        steps.done(step)
    for step in range(3):
        with torch.cuda.stream(side):
            steps.wait(step)
            assert (value + 0).cpu().item() == step + 1


def test_ids_on_the_device_in_another_order_stop_the_step():
    """A device-side assertion ends a real GPU's context."""
    starving(STARVE_MAIN)
    rows, ids = torch.randn(60, 5), torch.arange(5, 20)
    table = Offloaded(as_section(rows), SGD(), cache_rows=12, device="cuda")
    for given, expected in (
        (ids, nullcontext()),
        (ids.flip(0), pytest.raises(RuntimeError, match="another order")),
    ):
        loop: Any = table.prefetch([ids], lambda ids: ids)
        next(loop)
        on_device, before = given.to("cuda", non_blocking=True), GPU.synchronisations
        with expected:
            found, _ = table.gather(on_device)
            assert GPU.synchronisations == before
            assert torch.equal(found.cpu(), rows[given])
        loop.close()


def test_a_transfer_is_one_upload_and_three_launches_without_a_wait():
    table = Offloaded(as_section(torch.randn(60, 5)), Adam(), cache_rows=40, device="cuda", transfer="uva")
    plans = [table.planner.plan(torch.arange(first, first + 4).numpy()) for first in range(36, 56, 4)]
    for plan in plans[:-1]:
        table.execute(replace(plan, depends_on_step=NO_STEP))
    before = GPU.launches, GPU.pageable_copies, GPU.synchronisations
    assert len(plans[-1].leave_ids) and len(plans[-1].enter_ids)
    table.execute(replace(plans[-1], depends_on_step=NO_STEP))
    assert GPU.launches - before[0] <= 3
    assert (GPU.pageable_copies, GPU.synchronisations) == before[1:]


def test_rows_leave_without_waiting_for_those_that_enter(monkeypatch: pytest.MonkeyPatch):
    """Both directions of the link at once: a plan's rows leave while those of the plan before enter."""
    starving(STARVE_OTHERS)
    table = Offloaded(as_section(torch.randn(60, 5)), SGD(), cache_rows=40, device="cuda", transfer="uva")
    mover, ran = table.storage.transfer, []
    assert isinstance(mover, Unified)

    def run(name: str, own: Any, *given: Any) -> None:
        ran.append(name)
        own(*given)

    for kernel in (mover._gather, mover._scatter):
        monkeypatch.setattr(kernel, "run", partial(run, kernel.name, kernel.run))
    for first in range(36, 46, 2):
        plan = table.planner.plan(torch.arange(first, first + 2).numpy())
        table.execute(replace(plan, depends_on_step=NO_STEP))
    assert table._write_stream is not None
    table._write_stream.synchronize()
    assert set(ran) == {"scatter"}
    torch.cuda.synchronize()
    assert ran.count("gather") == 5
