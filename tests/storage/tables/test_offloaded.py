"""An offloaded table equals the resident table, bit for bit, for any timing of transfers."""

import random
import threading
import time
from typing import get_args

import pytest
import torch
from safetensors import safe_open

from storage.tables import Eviction, Offloaded, write_safetensors
from storage.tables.planner import NO_STEP
from tasks.optimizers import SGD, Adagrad, Adam, Optimizer, RowwiseAdagrad

OPTIMIZERS = [pytest.param(kind(learning_rate=0.1), id=kind.__name__) for kind in get_args(Optimizer)]
CACHES = [
    (60, 2),
    (25, 3),
    (12, 0),
    (4, 5),
]  # rows in the cache (the whole table, down to one), batches ahead


class Delayed(Offloaded):
    """Transfer with random delays."""

    def execute(self, plan):
        chance = random.Random(plan.number)
        time.sleep(chance.choice([0, 0, 0.001, 0.004]))
        ready = super().execute(plan)
        time.sleep(chance.choice([0, 0, 0.002]))
        return ready


class Stale(Offloaded):
    """Transfer that does not wait for the training steps, which is an error."""

    def execute(self, plan):
        moved = super().execute(plan.__class__(**{**plan.__dict__, "depends_on_step": NO_STEP}))
        threading.Event.set(self.ahead_of_step)
        return moved


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_it_equals_the_resident_table_bit_for_bit(world, optimizer: Optimizer):
    expected = world.resident(optimizer)
    batches = world.schedule(90, seed=7)
    world.drive(expected, optimizer, batches)
    for cache_rows, lookahead in CACHES:
        table = world.offloaded(optimizer, cache_rows, lookahead=lookahead)
        world.drive(table, optimizer, batches[:50])
        world.drive(table, optimizer, batches[50:], first=50)  # a second epoch, on a warm cache
        assert world.same(world.tensors(table), world.tensors(expected)), (cache_rows, lookahead)


@pytest.mark.parametrize("optimizer", [Adam(), RowwiseAdagrad()], ids=lambda optimizer: optimizer.name)
@pytest.mark.parametrize("eviction", get_args(Eviction))
@pytest.mark.parametrize("seed", range(6))
def test_random_schedules_and_slow_transfers_change_nothing(
    world, optimizer: Optimizer, seed: int, eviction: type[Eviction]
):
    chance = random.Random(seed)
    expected, table = (
        world.resident(optimizer),
        world.offloaded(
            optimizer,
            chance.randint(2, 50),
            kind=Delayed,
            lookahead=chance.randint(0, 6),
            eviction=eviction(),
        ),
    )
    batches = world.schedule(40, seed=seed, largest=chance.choice([5, 30, 200]))
    world.drive(expected, optimizer, batches)
    world.drive(table, optimizer, batches, between=lambda step: time.sleep(chance.choice([0, 0, 0.002])))
    assert world.same(world.tensors(table), world.tensors(expected))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_stale_control_differs(world, optimizer: Optimizer):
    """Rows move as soon as they are planned, before the steps that change them: equality must see it."""
    expected, table = world.resident(optimizer), world.offloaded(optimizer, 12, kind=Stale, lookahead=3)
    table.ahead_of_step = threading.Event()
    batches = world.schedule(25, seed=7)
    world.drive(expected, optimizer, batches)

    def let_transfers_run_ahead(step: int) -> None:
        table.ahead_of_step.clear()
        table.ahead_of_step.wait(0.01)

    world.drive(table, optimizer, batches, between=let_transfers_run_ahead)
    assert not torch.equal(world.tensors(table)["rows"], world.tensors(expected)["rows"])


def test_rows_are_prefetched_while_a_step_runs(world):
    """With one batch ahead and nothing shared, the second batch is in its slots before the first step is
    written back."""
    table, moved = world.offloaded(SGD(), 50, kind=Delayed, lookahead=1), []
    original = table.execute
    table.execute = lambda plan: (original(plan), moved.append(plan.number))[0]
    batches = table.prefetch(
        [torch.arange(0, 3), torch.arange(50, 53), torch.arange(53, 55)], lambda ids: ids
    )
    next(batches)
    deadline = time.monotonic() + 5
    while moved != [0, 1] and time.monotonic() < deadline:
        time.sleep(0.001)
    assert moved == [0, 1]  # and not the third: one batch ahead was asked for
    batches.close()


def test_outside_an_epoch_rows_are_accessed_directly(world):
    optimizer = Adagrad()
    expected, table = world.resident(optimizer), world.offloaded(optimizer, 12)
    world.drive(table, optimizer, batches := world.schedule(20, seed=3))
    world.drive(expected, optimizer, batches)
    ids = torch.tensor([0, 5, 59, 30, 11])
    assert torch.equal(table.gather(ids)[0], expected.gather(ids)[0])
    for one in (expected, table):
        rows, state = one.gather(ids)
        one.write_back(ids, rows + 1, {name: tensor * 2 for name, tensor in state.items()})
    assert world.same(world.tensors(table), world.tensors(expected))


def test_gathering_other_rows_than_prefetched_is_an_error(world):
    table = world.offloaded(SGD(), 12)
    batches = table.prefetch([torch.tensor([1, 2, 50])], lambda ids: ids)
    next(batches)
    for ids in (torch.tensor([1, 2]), torch.tensor([1, 2, 51])):
        with pytest.raises(ValueError, match="ids of `gather` are not the 3 ids of the batch"):
            table.gather(ids)


@pytest.mark.parametrize("lookahead", [0, 1, 5])
def test_a_checkpoint_between_two_batches_is_the_table_after_the_last_step(world, lookahead: int):
    """Transfers go on while the checkpoint is read, and the epoch goes on behind it."""
    optimizer, batches = Adam(), world.schedule(40, seed=4)
    expected, table = (
        world.resident(optimizer),
        world.offloaded(optimizer, 9, kind=Delayed, lookahead=lookahead),
    )
    found = []

    def announced():
        yield from enumerate(batches)

    def saving():
        for number, ids in table.prefetch(announced(), lambda batch: batch[1]):
            yield ids
            if number % 7 == 3:
                found.append(world.tensors(table))

    class Saving:
        prefetch = staticmethod(lambda batches, ids: batches)
        gather, write_back = table.gather, table.write_back

    world.drive(Saving, optimizer, saving())
    first = 0
    for number in range(3, 40, 7):
        world.drive(expected, optimizer, batches[first : number + 1], first=first)
        first = number + 1
        assert world.same(found.pop(0), world.tensors(expected))
    world.drive(expected, optimizer, batches[first:], first=first)
    assert found == [] and world.same(world.tensors(table), world.tensors(expected))


def test_leaving_an_epoch_early_loses_no_update(world):
    optimizer = Adam()
    batches = world.schedule(30, seed=5)
    expected, table = world.resident(optimizer), world.offloaded(optimizer, 12, lookahead=4)
    for number, ids in enumerate(batches[:10], start=1):
        world.drive(expected, optimizer, [ids], first=number - 1)
    stopped = iter(batches)
    epoch = table.prefetch(stopped, lambda ids: ids)
    for step in range(1, 11):
        ids = next(epoch)
        rows, state = table.gather(ids)
        noise = torch.randn(len(ids), rows.shape[1], generator=torch.Generator().manual_seed(step))
        optimizer.update_(rows, rows * 0.3 + noise, state, (0.5 + ids.unsqueeze(1).float() % 3) * 0.05, step)
        table.write_back(ids, rows, state)
    # nobody closed the epoch: four batches are planned and moved, none of them stepped
    assert world.same(world.tensors(table), world.tensors(expected))
    world.drive(table, optimizer, batches[10:], first=10)
    world.drive(expected, optimizer, batches[10:], first=10)
    assert world.same(world.tensors(table), world.tensors(expected))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize(
    "types", [{}, {"row_dtype": torch.bfloat16, "state_dtype": torch.bfloat16}], ids=["float32", "bfloat16"]
)
def test_training_continues_from_a_checkpoint_with_the_same_bits(
    world, tmp_path, optimizer: Optimizer, types: dict
):
    batches, file = world.schedule(60, seed=9), tmp_path / "table.safetensors"
    whole_run, stopped, resumed = (world.offloaded(optimizer, cache, **types) for cache in (60, 20, 9))
    world.drive(whole_run, optimizer, batches)
    world.drive(stopped, optimizer, batches[:30])
    write_safetensors(file, stopped.sections(), {})
    with safe_open(file, framework="pt") as opened:
        assert {name: tuple(opened.get_slice(name).get_shape()) for name in resumed.sections()} == {
            name: part.shape for name, part in resumed.sections().items()
        }
        resumed.restore(opened.get_slice)
    world.drive(resumed, optimizer, batches[30:], first=30)
    assert world.same(world.tensors(resumed), world.tensors(whole_run))


def test_a_mapped_file_gives_the_same_bits(world, tmp_path):
    optimizer, batches = Adam(), world.schedule(60, seed=2)
    expected, table = world.resident(optimizer), world.offloaded(optimizer, 12, folder=tmp_path)
    assert list(tmp_path.iterdir()) == []  # a file without a name: a killed run leaves nothing behind
    world.drive(expected, optimizer, batches)
    world.drive(table, optimizer, batches[:30])
    table.storage.host.drop_pages()
    world.drive(table, optimizer, batches[30:], first=30)
    assert world.same(world.tensors(table), world.tensors(expected))


class Finer:
    """A optimizer of one's own, whose state is wider than the rows and has steps that float32 would lose."""

    learning_rate = 0.1

    def initial_state(self, rows):
        return {
            "sum": torch.ones_like(rows, dtype=torch.float64),
            "count": torch.zeros_like(rows, dtype=torch.int64),
        }

    def update_(self, rows, grad, state, rate, step):
        state["sum"].add_(grad.double(), alpha=1e-9)
        state["count"].add_(2**40 + step)
        rows.sub_((state["sum"] * rate).to(rows.dtype))


def test_the_type_of_optimizer_state_is_preserved(world, tmp_path):
    optimizer, batches, file = Finer(), world.schedule(40, seed=5), tmp_path / "table.safetensors"
    expected, table, again = (
        world.resident(optimizer),
        world.offloaded(optimizer, 12),
        world.offloaded(optimizer, 9),
    )
    world.drive(expected, optimizer, batches)
    world.drive(table, optimizer, batches[:20])
    write_safetensors(file, table.sections(), {})
    with safe_open(file, framework="pt") as opened:
        again.restore(opened.get_slice)
    world.drive(again, optimizer, batches[20:], first=20)
    found = world.tensors(again)
    assert (
        world.same(found, world.tensors(expected))
        and found["state.sum"].dtype == torch.float64
        and found["state.count"].dtype == torch.int64
    )


def test_nested_epochs_are_an_error(world):
    """The inner one ends the outer: its batches were once given all the same, rows and slots in disorder, and
    then no more."""
    table = world.offloaded(SGD(), 12, lookahead=3)
    outer = table.prefetch([torch.arange(first, first + 6) for first in range(0, 50, 5)], lambda ids: ids)
    next(outer)
    assert len(list(table.prefetch([torch.arange(30, 36)], lambda ids: ids))) == 1
    with pytest.raises(RuntimeError, match="the table was restored, or another `prefetch` began"):
        next(outer)


def test_an_epoch_cannot_continue_after_a_restore(world):
    table = world.offloaded(SGD(), 12, lookahead=3)
    before = world.tensors(table)
    epoch = table.prefetch([torch.arange(first, first + 6) for first in range(0, 50, 5)], lambda ids: ids)
    next(epoch)
    table.restore(before.__getitem__)
    with pytest.raises(RuntimeError, match="finish or leave the loop first"):
        next(epoch)


def test_no_cache_at_all_is_refused(world):
    with pytest.raises(ValueError, match="cache_rows must be at least 1, got 0"):
        world.offloaded(SGD(), 0)
