"""Schedules of one channel: holes, overlaps, and laws on random schedules."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tasks.merge.schedule import Slot, merge_schedules


def schedule(feed: int, *times: tuple[int, int | None]) -> list[Slot]:
    return [Slot(start, stop, feed, row) for row, (start, stop) in enumerate(times)]


def times(slots: list[Slot]) -> list[tuple[int, int | None, int]]:
    return [(slot.start, slot.stop, slot.feed) for slot in slots]


def test_holes_before_between_and_after_are_filled() -> None:
    first = schedule(0, (10, 20), (30, 40))
    second = schedule(1, (0, 10), (10, 20), (20, 30), (40, 50))
    merged = merge_schedules([first, second], cut=True)
    assert times(merged.slots) == [(0, 10, 1), (10, 20, 0), (20, 30, 1), (30, 40, 0), (40, 50, 1)]
    assert (merged.filled_count, merged.cut_count) == (3, 0)


def test_the_third_feed_fills_only_what_the_second_leaves() -> None:
    merged = merge_schedules(
        [schedule(0, (0, 10)), schedule(1, (10, 20)), schedule(2, (10, 20), (20, 30))], cut=True
    )
    assert times(merged.slots) == [(0, 10, 0), (10, 20, 1), (20, 30, 2)]


def test_a_programme_is_cut_to_its_hole_if_half_of_it_is_free() -> None:
    first = schedule(0, (0, 10), (20, 30))
    half, less = schedule(1, (5, 15)), schedule(1, (3, 14))
    assert times(merge_schedules([first, half], cut=True).slots)[1] == (10, 15, 1)
    assert times(merge_schedules([first, half], cut=False).slots)[1] == (5, 15, 1)
    assert len(merge_schedules([first, less], cut=True).slots) == 2
    across = merge_schedules([schedule(0, (40, 45)), schedule(1, (0, 100))], cut=True)
    assert times(across.slots) == [(40, 45, 0), (45, 100, 1)]


def test_overlaps_are_cut_or_kept() -> None:
    overlapping = schedule(0, (0, 15), (10, 20), (10, 30), (50, None))
    merged = merge_schedules([overlapping], cut=True)
    assert times(merged.slots) == [(0, 10, 0), (10, 20, 0), (50, None, 0)]
    assert (merged.cut_count, merged.duplicate_count) == (1, 1)
    assert merge_schedules([overlapping], cut=False).slots == overlapping


def test_clumped_programmes_share_their_time() -> None:
    clumped = [Slot(0, 10, 0, 0, True), Slot(0, 10, 0, 1, True), Slot(10, 20, 0, 2)]
    assert merge_schedules([clumped], cut=True).slots == clumped


def test_an_unknown_stop_occupies_its_start() -> None:
    first, second = schedule(0, (0, 10), (20, 30)), schedule(1, (5, None), (12, None))
    assert times(merge_schedules([first, second], cut=True).slots)[1] == (12, 20, 1)


intervals = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), max_size=12)


@given(st.lists(intervals, min_size=1, max_size=3))
def test_properties_of_merged_schedules(feeds: list[list[tuple[int, int]]]) -> None:
    schedules = [
        schedule(feed, *sorted((start, start + length) for start, length in rows))
        for feed, rows in enumerate(feeds)
    ]
    slots = merge_schedules(schedules, cut=True).slots
    assert slots == sorted(slots, key=lambda slot: slot.start)
    assert all((first.stop or 0) <= second.start for first, second in itertools.pairwise(slots))
    assert {slot.start for slot in slots if slot.feed == 0} == {slot.start for slot in schedules[0]}
    assert all((slot.stop or 0) > slot.start for slot in slots)
