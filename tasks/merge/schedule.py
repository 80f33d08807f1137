"""Merges the schedules that several feeds have for a channel.

Programmes of the other feeds fill gaps in the schedule of the preferred feed: a programme is used if at least
half of it is in a gap. With ``cut``, it is shortened to the part in the gap, and every programme ends when
the next programme of its feed begins. Times are integers in any unit.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Slot(NamedTuple):
    """Programme in a schedule; ``feed`` and ``row`` identify it in the indexes of the feeds."""

    start: int
    stop: int | None  # None if unknown
    feed: int  # index of the schedule in the list of merged schedules
    row: int  # row number of the programme in the feed
    clumped: bool = False  # whether it shares its time with other programmes (XMLTV attribute clumpidx)


@dataclass(frozen=True)
class MergedSchedule:
    """Merged schedule of a channel, with the numbers of changed and omitted programmes."""

    slots: list[Slot]  # programmes sorted by start
    cut_count: int = 0  # number of shortened programmes
    duplicate_count: int = 0  # number of programmes omitted, because another of the feed has the same start
    filled_count: int = 0  # number of programmes from schedules other than the first


def merge_schedules(schedules: Sequence[Sequence[Slot]], *, cut: bool) -> MergedSchedule:
    """Merges the schedules that several feeds have for a channel.

    Args:
        schedules: One schedule per feed, in order of preference; each is sorted by start.
        cut: Whether overlapping programmes are shortened.
    """
    if not schedules:
        return MergedSchedule([])
    result = _cut_overlaps(schedules[0]) if cut else MergedSchedule(list(schedules[0]))
    for schedule in schedules[1:]:
        candidates = _cut_overlaps(schedule) if cut else MergedSchedule(list(schedule))
        occupied_times = _OccupiedTimes(result.slots)
        gap_slots, cut_count = [], candidates.cut_count
        for slot in candidates.slots:
            gap = occupied_times.largest_gap(slot)
            if gap is None:
                continue
            if cut and gap != (slot.start, slot.stop):
                slot, cut_count = slot._replace(start=gap[0], stop=gap[1]), cut_count + 1
            gap_slots.append(slot)
        result = MergedSchedule(
            slots=sorted([*result.slots, *gap_slots], key=lambda slot: slot.start),
            cut_count=result.cut_count + cut_count,
            duplicate_count=result.duplicate_count + candidates.duplicate_count,
            filled_count=result.filled_count + len(gap_slots),
        )
    return result


def _cut_overlaps(schedule: Sequence[Slot]) -> MergedSchedule:
    """Ends each programme when the next one begins. If several have the same start, keeps only the first."""
    slots: list[Slot] = []
    cut_count = duplicate_count = 0
    for slot in schedule:
        previous_slot = slots[-1] if slots else None
        if previous_slot is not None and not (slot.clumped and previous_slot.clumped):
            if slot.start == previous_slot.start:
                duplicate_count += 1
                continue
            if previous_slot.stop is not None and previous_slot.stop > slot.start:
                slots[-1] = previous_slot._replace(stop=slot.start)
                cut_count += 1
        slots.append(slot)
    return MergedSchedule(slots, cut_count, duplicate_count)


class _OccupiedTimes:
    """Times of the programmes of a schedule as disjoint intervals."""

    def __init__(self, slots: Sequence[Slot]) -> None:
        self.begins: list[int] = []
        self.ends: list[int] = []
        for slot in slots:
            stop = slot.start + 1 if slot.stop is None else slot.stop
            if self.ends and slot.start <= self.ends[-1]:
                self.ends[-1] = max(self.ends[-1], stop)
            else:
                self.begins.append(slot.start)
                self.ends.append(stop)

    def largest_gap(self, slot: Slot) -> tuple[int, int | None] | None:
        """Returns (start, stop) of the largest free part of a slot, or None if less than half is free."""
        index = bisect_right(self.begins, slot.start)  # number of the first interval after slot.start
        begin = max(slot.start, self.ends[index - 1] if index else slot.start)
        next_begin = self.begins[index] if index < len(self.begins) else None
        if slot.stop is None:
            return (slot.start, next_begin) if begin == slot.start else None
        largest = (0, 0)
        while begin < slot.stop:
            end = min(slot.stop, self.begins[index] if index < len(self.begins) else slot.stop)
            largest = max(largest, (begin, end), key=lambda gap: gap[1] - gap[0])
            if index == len(self.begins):
                break
            begin, index = self.ends[index], index + 1
        return largest if 2 * (largest[1] - largest[0]) >= slot.stop - slot.start else None
