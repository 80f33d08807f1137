"""The planner of the cache: slots, eviction, and the steps for which transfers wait."""

import numpy as np
import pytest
import torch

from storage.tables.eviction.frequency_prefix import count_recent_slots
from storage.tables.eviction.least_frequent import LeastFrequent
from storage.tables.planner import NO_STEP, Planner


def plan(planner: Planner, *ids: int):
    return planner.plan(np.array(ids, dtype=np.int64))


def test_hot_rows_never_move():
    planner = Planner(10, hot=3, recent=2)
    made = plan(planner, 0, 1, 2)
    assert made.slots.tolist() == [0, 1, 2] and made.depends_on_step == NO_STEP
    assert not len(made.enter_ids) and not len(made.leave_ids) and not len(made.direct)


def test_a_row_enters_the_cache_once():
    planner = Planner(10, hot=3, recent=4)
    first, second = plan(planner, 1, 7, 9), plan(planner, 7, 8, 9)
    assert first.enter_ids.tolist() == [7, 9] and first.slots.tolist() == [1, 3, 4]
    assert (
        second.enter_ids.tolist() == [8]
        and second.slots.tolist() == [3, 5, 4]
        and second.depends_on_step == NO_STEP
    )
    assert planner.locate(np.array([0, 7, 5])).tolist() == [0, 3, -1]


def test_the_least_recently_used_row_leaves_after_its_last_step():
    planner = Planner(10, hot=0, recent=3)
    for ids in ([1, 2], [2, 3], [1]):  # used last: 1 in batch 2, 2 and 3 in batch 1
        plan(planner, *ids)
    made = plan(planner, 4)
    assert made.leave_ids.tolist() == [2] and made.depends_on_step == 1
    made = plan(planner, 5, 6)
    assert made.leave_ids.tolist() == [3, 1] and made.depends_on_step == 2


def test_rows_of_the_batch_are_not_evicted():
    planner = Planner(10, hot=0, recent=2)
    plan(planner, 1, 2)
    made = plan(planner, 1, 3)
    assert made.leave_ids.tolist() == [2] and made.enter_ids.tolist() == [3] and made.depends_on_step == 0


def test_rows_without_a_slot_are_used_from_host_memory():
    planner = Planner(10, hot=1, recent=2)
    made = plan(planner, 0, 4, 5, 6, 7)
    assert made.enter_ids.tolist() == [4, 5] and made.ids[made.direct].tolist() == [6, 7]
    later = plan(planner, 4)
    assert not len(later.enter_ids) and later.depends_on_step == NO_STEP  # nothing is moved
    assert plan(planner, 6).depends_on_step == 0  # it reads what the direct step writes


@pytest.mark.parametrize("seed", range(5))
def test_the_planner_equals_a_simple_implementation(seed: int):
    """A dictionary and a list say the same, batch by batch; no slot is given twice."""
    rng = np.random.default_rng(seed)
    rows, hot, recent = 80, 10, int(rng.integers(1, 40))
    planner, held, used, last_direct = Planner(rows, hot, recent), {}, {}, NO_STEP
    for number in range(200):
        ids = np.unique(rng.zipf(1.3, size=int(rng.integers(0, 60))) % rows)
        made = planner.plan(ids)
        for row, slot in zip(made.leave_ids, made.leave_slots):
            assert held.pop(row) == slot and row not in ids
            assert (
                used[row] == min(used[other] for other in [*held, row] if other not in ids)
                and used[row] <= made.depends_on_step < number
            )
        for row, slot in zip(made.enter_ids, made.enter_slots):
            assert row not in held and slot not in held.values() and hot <= slot < hot + recent
            held[row] = slot
        assert not len(made.enter_ids) or made.depends_on_step >= last_direct
        direct = set(made.direct.tolist())
        last_direct = number if direct else last_direct
        assert not direct or len(held) == recent
        for place, row in enumerate(ids):
            assert place in direct or made.slots[place] == (row if row < hot else held[row])
            used[row] = number
        assert np.array_equal(
            planner.locate(np.arange(rows)), [row if row < hot else held.get(row, -1) for row in range(rows)]
        )
        assert planner.order.queued <= 4 * recent + 1024


@pytest.mark.parametrize("lookahead", [0, 2, 5])
def test_the_lru_part_holds_the_prefetched_rows(lookahead: int):
    """No move waits for a step that runs, or is still to come, while its rows are fetched."""
    rng, rows, slots = np.random.default_rng(1), 20_000, 6_000
    batches = [np.unique(rng.zipf(1.15, size=1_500) % rows) for _ in range(60)]
    recent = count_recent_slots(
        slots, lookahead, torch.from_numpy(max(batches, key=lambda ids: (ids > slots).sum()))
    )
    waited = {}
    for size in (recent, slots // 10):
        planner = Planner(rows, slots - size, size)
        plans = [planner.plan(ids) for ids in batches]
        assert not any(len(made.direct) for made in plans)
        waited[size] = min(
            made.number - made.depends_on_step for made in plans if made.depends_on_step != NO_STEP
        )
    assert waited[recent] > lookahead + 1, waited
    assert lookahead == 0 or waited[slots // 10] <= lookahead + 1, waited
    assert count_recent_slots(slots, lookahead, None) == slots // 10


def test_the_lru_part_is_a_tenth_to_all_of_the_cache():
    assert count_recent_slots(1, 2, None) == count_recent_slots(9, 2, None) == 1
    assert count_recent_slots(100, 2, torch.arange(50)) == 10  # all of them hot
    assert count_recent_slots(100, 2, torch.arange(60, 200)) == 100


def test_duplicate_rows_are_refused():
    planner = Planner(20, 4, 6)
    for ids in ([3, 3], [7, 1, 7], [19, 2, 1, 2]):
        for use in (planner.plan, planner.locate):
            with pytest.raises(ValueError, match="more than once; pass"):
                use(np.array(ids))
    assert planner.plan(np.array([7, 1, 19])).slots.tolist() == [4, 1, 5]


@pytest.mark.parametrize("seed", range(3))
def test_the_least_frequently_used_rows_are_evicted_first(seed: int):
    """Those of the last three batches stay if others suffice, so that no transfer waits for a step."""
    rng = np.random.default_rng(seed)
    rows, slots, lookahead = 200, 60, 1
    planner = Planner(rows, 0, slots, LeastFrequent(rows, lookahead))
    uses, held, used, waited = np.zeros(rows), set(), np.full(rows, NO_STEP), 0
    order = rng.permutation(rows)  # ids are not in order of frequency
    for number in range(300):
        ids = np.unique(order[rng.zipf(1.5, size=int(rng.integers(0, 20))) % rows])
        made = planner.plan(ids)
        others = [row for row in held if row not in ids]
        leaving = sorted(made.leave_ids.tolist(), key=lambda row: (uses[row], used[row]))
        protected = {row for row in others if used[row] > number - lookahead - 2}
        staying = set(others) - set(leaving)
        if protected & set(leaving):
            assert not staying - protected  # nothing else is left
            waited += 1
        elif leaving:
            latest = uses[leaving[-1]], used[leaving[-1]]
            assert all(latest <= (uses[row], used[row]) for row in staying - protected)
            assert made.depends_on_step <= number - lookahead - 2
        held = (held - set(leaving)) | set(made.enter_ids.tolist())
        assert len(held) <= slots and not len(made.direct)
        uses[ids] += 1
        used[ids] = number
    assert waited < 30
