"""Workers write batches to a ring of shared blocks."""

import threading
from typing import Any, NamedTuple

import pytest
import torch

from tasks.loading.delivery import ALIGNMENT, MIN_BLOCK_BYTES, Delivery, assign_slots, copy_batch, read, write


class Inner(NamedTuple):
    flags: torch.Tensor
    note: Any


class Made(NamedTuple):
    numbers: torch.Tensor
    inner: Inner


class Numbers:
    """Item n contains n rows of the number n, a flag per row, and the note n (None for 0)."""

    def __getitem__(self, item: int) -> Made:
        return Made(torch.full((item, 3), item), Inner(torch.arange(item) % 2 == 0, item if item else None))


class Failing:
    def __getitem__(self, item: int) -> Made:
        if item == 3:
            raise ValueError("title 3 cannot be made")
        return Numbers()[item]


def same(one: Made, other: Made) -> bool:
    return (
        torch.equal(one.numbers, other.numbers)
        and torch.equal(one.inner.flags, other.inner.flags)
        and one.inner.note == other.inner.note
    )


def test_tensors_round_trip_through_a_block():
    batch = Made(torch.arange(7).view(7, 1), Inner(torch.tensor([True, False]), "kept"))
    slots, used = assign_slots(batch)
    assert used == 2 * ALIGNMENT and slots.numbers.begin == 0 and slots.inner.flags.begin == ALIGNMENT
    block = torch.zeros(200, dtype=torch.uint8)
    write(batch, slots, block)
    mine = copy_batch(slots, used, block, pin=False)
    assert same(read(slots, block), batch) and same(mine, batch)
    block.zero_()
    assert same(mine, batch) and not read(slots, block).numbers.any()


def test_delivery_without_workers():
    assert all(
        same(made, Numbers()[item])
        for item, made in enumerate(Delivery(Numbers(), workers=0).deliver(range(5)))
    )
    assert list(Delivery(Numbers(), workers=2).deliver([])) == []


class Noting:
    """Records which items were made, and in which thread."""

    def __init__(self) -> None:
        self.made: list[tuple[int, str]] = []

    def __getitem__(self, item: int) -> Made:
        self.made.append((item, threading.current_thread().name))
        return Numbers()[item]


def test_a_thread_prepares_only_the_next_batch(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tasks.loading.delivery.cores", lambda: 2)
    maker = Noting()
    delivery = Delivery(maker, workers=0)
    given_up = delivery.deliver(range(10, 30))
    assert same(next(given_up), Numbers()[10]) and same(next(given_up), Numbers()[11])
    again = list(delivery.deliver(range(5)))  # by the same thread, behind what it was at
    assert [item for item, _ in maker.made] == [10, 11, 12, *range(5)]
    assert len({name for _, name in maker.made}) == 1 and threading.current_thread().name not in {
        name for _, name in maker.made
    }
    assert all(same(made, Numbers()[item]) for item, made in enumerate(again))
    with pytest.raises(ValueError, match="title 3 cannot be made"):
        list(Delivery(Failing(), workers=0).deliver([1, 2, 3, 4]))


def test_on_one_core_batches_are_created_on_request(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tasks.loading.delivery.cores", lambda: 1)
    maker = Noting()
    batches = Delivery(maker, workers=0).deliver(range(5))
    next(batches)
    assert maker.made == [(0, threading.current_thread().name)]


@pytest.mark.slow
def test_delivery_by_workers(monkeypatch: pytest.MonkeyPatch):
    """More batches than blocks, all kept, fetched by a thread; a batch larger than a block; an epoch given
    up; the same workers again."""
    fetched_by: set[str] = set()

    def noting(*given: Any) -> Any:
        fetched_by.add(threading.current_thread().name)
        return copy_batch(*given)

    monkeypatch.setattr("tasks.loading.delivery.cores", lambda: 2)
    monkeypatch.setattr("tasks.loading.delivery.copy_batch", noting)
    large = MIN_BLOCK_BYTES // 8
    items = [2, 5, large, 0, *range(40), large + 1]
    delivery = Delivery(Numbers(), workers=2)
    for _ in range(2):
        kept = list(delivery.deliver(items))  # held all at once
        assert len(kept) == len(items) and all(
            same(made, Numbers()[item]) for item, made in zip(items, kept, strict=True)
        )
    assert len(fetched_by) == 1 and threading.current_thread().name not in fetched_by
    assert delivery._blocks is not None and delivery._blocks.shape[0] == 5 and delivery._blocks.is_shared()
    processes = delivery._loader._iterator._workers  # pyright: ignore
    given_up = delivery.deliver(items)
    assert same(next(given_up), Numbers()[2]) and same(next(given_up), Numbers()[5])
    again = delivery.deliver([7, 8, 9, 10, 11, 12, 13])
    assert [int(made.inner.note) for made in again] == [7, 8, 9, 10, 11, 12, 13]
    assert delivery._loader._iterator._workers is processes and all(
        process.is_alive() for process in processes
    )  # pyright: ignore
    with pytest.raises(ValueError, match="title 3 cannot be made"):
        list(Delivery(Failing(), workers=1).deliver([1, 2, 3, 4]))


@pytest.mark.gpu
def test_batches_are_pinned_on_request():
    for workers in (0, 1):
        for item, made in enumerate(Delivery(Numbers(), workers=workers, pin=True).deliver(range(1, 9))):
            assert (
                made.numbers.is_pinned() and made.inner.flags.is_pinned() and same(made, Numbers()[item + 1])
            )
            assert torch.equal(made.numbers.to("cuda", non_blocking=True).cpu(), made.numbers)
