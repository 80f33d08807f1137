"""Offloaded tables on a GPU, and tests of this code path that need no GPU."""

import importlib.util
from functools import partial
from types import SimpleNamespace
from typing import get_args

import pytest
import torch

from storage.tables import Host, Offloaded, Staged, choose_transfer, transfer
from storage.tables.transfer import _kernels, grid
from tasks.optimizers import Adam, Optimizer

OPTIMIZERS = [pytest.param(kind(learning_rate=0.1), id=kind.__name__) for kind in get_args(Optimizer)]
TRANSFERS = ["staged", "uva"]


def needs(transfer: str) -> str:
    """Skips the test if CuPy is missing."""
    if transfer == "uva" and importlib.util.find_spec("cupy") is None:
        pytest.skip("CuPy is not installed: the GPU cannot gather by itself")
    return transfer


class Waiting(Offloaded):
    """Transfer whose streams are delayed before every plan."""

    def execute(self, plan):
        for number, stream in enumerate((self._read_stream, self._write_stream)):
            with torch.cuda.stream(stream):
                torch.cuda._sleep(2_000_000 if (plan.number + number) % 3 else 10)
        return super().execute(plan)


class Stale(Offloaded):
    """Transfer that does not wait for the training steps, which is an error."""

    def execute(self, plan):
        return super().execute(plan.__class__(**{**plan.__dict__, "depends_on_step": -1}))


@pytest.mark.gpu
@pytest.mark.parametrize("transfer", TRANSFERS)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_it_equals_the_resident_table_bit_for_bit_on_a_gpu(world, optimizer: Optimizer, transfer: str):
    needs(transfer)
    batches = world.schedule(80, seed=7)
    expected = world.offloaded(optimizer, 60, device="cuda")  # the whole table cached: nothing moves
    world.drive(expected, optimizer, batches)
    for cache_rows, lookahead in ((25, 3), (12, 0), (4, 5)):
        table = world.offloaded(
            optimizer, cache_rows, kind=Waiting, lookahead=lookahead, device="cuda", transfer=transfer
        )
        world.drive(table, optimizer, batches)
        assert world.same(world.tensors(table), world.tensors(expected)), (cache_rows, lookahead)


@pytest.mark.gpu
def test_the_stale_control_differs_on_a_gpu(world):
    optimizer, batches = Adam(), world.schedule(60, seed=7)
    expected, table = (
        world.offloaded(optimizer, 60, device="cuda"),
        world.offloaded(optimizer, 12, kind=Stale, lookahead=3, device="cuda"),
    )
    world.drive(expected, optimizer, batches)
    world.drive(table, optimizer, batches, between=lambda step: torch.cuda._sleep(5_000_000))
    assert not torch.equal(world.tensors(table)["rows"], world.tensors(expected)["rows"])


@pytest.mark.gpu
@pytest.mark.parametrize("transfer", TRANSFERS)
def test_records_are_copied_there_and_back(transfer: str):
    needs(transfer)
    host, device = Host(5000, 384), torch.device("cuda")
    host.data.copy_(torch.randint(0, 256, host.data.shape, dtype=torch.uint8))
    host.pin()
    assert host.pinned
    before, carrier = host.data.clone(), choose_transfer(transfer, host, device)
    ids = torch.randperm(5000)[:1777]
    there, slots = (
        ids.to(device) if carrier.device_gathers else ids,
        torch.randperm(2000, device=device)[:1777],
    )
    cache = torch.zeros(2000, 384, dtype=torch.uint8, device=device)
    carrier.read(there, cache, slots)
    assert torch.equal(cache.cpu()[slots.cpu()], before[ids])
    carrier.write(there.flip(0), cache, slots)
    torch.cuda.synchronize()
    before[ids.flip(0)] = cache.cpu()[slots.cpu()]
    assert torch.equal(host.data, before)


@pytest.mark.gpu
def test_a_refused_registration_spoils_no_later_kernel(caplog):
    """CUDA keeps the error for whoever launches next."""
    memory = Host(1000, 128)
    memory.data.fill_(1)
    memory.pin()
    again = Host(1, 128)
    again.data = memory.data  # registered already, which CUDA refuses
    again.pin()
    assert memory.pinned and not again.pinned and "refused (CUDA error" in caplog.text
    assert torch.ones(3, device="cuda").sum().item() == 3


@pytest.mark.gpu
@pytest.mark.parametrize("transfer", TRANSFERS)
@pytest.mark.parametrize("cache_rows", [12, 1])  # of one row no upload makes the host wait
def test_restored_rows_are_not_overwritten_by_a_running_transfer(world, transfer: str, cache_rows: int):
    needs(transfer)
    optimizer, batches = Adam(), world.schedule(20, seed=7)
    settings = {"kind": Waiting, "lookahead": 4, "device": "cuda", "transfer": transfer}
    table = world.offloaded(optimizer, cache_rows, **settings)
    world.drive(table, optimizer, batches)
    before = world.tensors(table)
    epoch = table.prefetch(batches, lambda ids: ids)
    for _ in range(12):
        next(epoch)
    epoch.close()  # moves are on the stream, rows to the host among them
    table.restore({name: tensor + 1 for name, tensor in before.items()}.__getitem__)
    assert world.same(world.tensors(table), {name: tensor + 1 for name, tensor in before.items()})


@pytest.mark.gpu
@pytest.mark.parametrize("transfer", TRANSFERS)
def test_a_checkpoint_between_two_batches_has_every_step(world, transfer: str):
    """Also of a cache without hot rows, whose copies the host would wait for anyway."""
    needs(transfer)
    optimizer, batches = Adam(), world.schedule(24, seed=3)
    settings = {"kind": Waiting, "lookahead": 4, "device": "cuda", "transfer": transfer}
    snapshots = {
        cache_rows: (world.offloaded(optimizer, cache_rows, **settings), [])
        for cache_rows in (world.TOKENS, 12, 1)
    }

    def save(table: Offloaded, found: list[dict], step: int) -> None:
        if step % 5 == 4:
            found.append(world.tensors(table))

    for table, found in snapshots.values():
        world.drive(table, optimizer, batches, between=partial(save, table, found))
    expected = snapshots[world.TOKENS][1]
    assert len(expected) == 5
    for _, found in snapshots.values():
        assert all(map(world.same, found, expected))


@pytest.mark.gpu
@pytest.mark.parametrize("transfer", TRANSFERS)
def test_steps_outside_a_loop_and_loops_left_early_are_seen_by_one_another(world, transfer: str):
    needs(transfer)
    optimizer, batches = Adam(), world.schedule(24, seed=3)
    expected = world.offloaded(optimizer, 60, device="cuda")
    table = world.offloaded(optimizer, 12, kind=Waiting, lookahead=4, device="cuda", transfer=transfer)
    ids, found = torch.arange(world.TOKENS), []
    for one in (expected, table):
        for _ in range(4):
            loop = one.prefetch(batches, lambda ids: ids)
            for _, some in zip(range(6), loop, strict=False):
                rows, state = one.gather(some)
                one.write_back(some, rows * 1.5 + 1, state)
            loop.close()  # moves of later batches are on the stream
            rows, state = one.gather(ids)
            found.append(rows)
            one.write_back(ids, rows * 0.5 - 1, state)  # on the main stream, as the next loop's moves begin
    assert all(torch.equal(one.cpu(), other.cpu()) for one, other in zip(found[:4], found[4:], strict=True))
    assert world.same(world.tensors(table), world.tensors(expected))


@pytest.mark.gpu
@pytest.mark.parametrize("transfer", TRANSFERS)
def test_batches_that_no_step_follows_move_the_right_rows(world, transfer: str):
    """Rows that enter wait for no step then, and those that leave must wait for them."""
    needs(transfer)
    table = world.offloaded(Adam(), 12, kind=Waiting, lookahead=4, device="cuda", transfer=transfer)
    before = world.tensors(table)
    for _ in table.prefetch(world.schedule(40, seed=7), lambda ids: ids):
        pass
    assert world.same(world.tensors(table), before)


@pytest.mark.gpu
def test_a_hundred_tables_leave_the_gpu_as_it_was(world):
    for number in range(100):
        table = world.offloaded(Adam(), 300, tokens=1000, device="cuda")
        world.drive(table, Adam(), [torch.arange(number, 1000, 7)])
        del table
        if number == 9:
            torch.cuda.synchronize()
            taken = torch.cuda.memory_allocated()
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() <= taken + (1 << 20)


@pytest.mark.gpu
@pytest.mark.parametrize("broken", ["pointers", "gather", "scatter", "launch"])
def test_kernels_that_do_not_work_here_are_not_trusted(broken: str, monkeypatch, caplog):
    """The GPU cannot use the host's pointers, a kernel does nothing, or none can be launched."""
    needs("uva")
    import cupy

    host, device, kernels = (
        Host(5, 128),
        torch.device("cuda"),
        dict(zip(("gather", "scatter"), _kernels(), strict=True)),
    )

    def fail(*arguments):
        raise Exception("CUDA_ERROR_NO_BINARY_FOR_GPU")  # CuPy's errors derive from Exception

    if broken == "pointers":
        without = SimpleNamespace(attributes={"CanUseHostPointerForRegisteredMem": 0})
        monkeypatch.setattr(cupy.cuda, "Device", lambda number: without)
    elif broken == "launch":
        kernels["gather"] = fail
    else:
        kernels[broken] = lambda *arguments: None
    monkeypatch.setattr(transfer, "_kernels", lambda: tuple(kernels.values()))
    assert isinstance(choose_transfer("auto", host, device), Staged) and not host.pinned
    (record,) = caplog.records
    assert record.message.startswith("CuPy is installed but does not work (")
    with pytest.raises(Exception, match=r"pointers|wrong bytes|NO_BINARY"):
        choose_transfer("uva", host, device)


@pytest.mark.gpu
def test_offsets_are_64_bit():
    """A record beyond 2^31 bytes, in five gigabytes of host memory."""
    needs("uva")
    host, device = Host(10_000_000, 512), torch.device("cuda")
    host.data[9_999_999] = 77
    host.pin()
    record, places = (
        torch.empty(1, 512, dtype=torch.uint8, device=device),
        torch.tensor([9_999_999, 0], device=device),
    )
    choose_transfer("uva", host, device).read(places[:1], record, places[1:])
    assert (record == 77).all()


def test_the_launch_is_capped_and_covers_small_ones():
    assert [grid(records, 132) for records in (0, 1, 32, 33, 10**9)] == [1, 1, 1, 2, 16]
    assert grid(10**9, 4) == 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_without_a_gpu_auto_is_staged_and_uva_is_an_error():
    host = Host(4, 128)
    assert isinstance(choose_transfer("auto", host, torch.device("cpu")), Staged)
    with pytest.raises(ValueError, match="transfer 'uva' needs a CUDA device"):
        choose_transfer("uva", host, torch.device("cpu"))
