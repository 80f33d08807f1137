"""Merges the schedules that several feeds have for a channel.

Gaps in the preferred schedule are filled from the others: a programme of another feed is used if at least
half of it is in a gap. With ``cut``, it is shortened to the part in the gap, and every programme ends when
the next one of its feed begins. Times are integers in any unit.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple


class Slot(NamedTuple):
    """Programme in a schedule; ``feed`` and ``row`` identify it in the indexes of the feeds."""

    start: int
    stop: int | None  # None if unknown
    feed: int  # number of the schedule
    row: int  # row number of the programme in the feed
    clumped: bool = False  # whether it shares its time with others (XMLTV attribute clumpidx)


@dataclass(frozen=True)
class MergedSchedule:
    """Merged schedule of a channel, with the number of programmes that were changed."""

    slots: list[Slot]  # programmes sorted by start
    cut: int = 0  # number of shortened programmes
    doubled: int = 0  # number of omitted programmes, because another one of the feed begins at the same time
    filled: int = 0  # number of programmes from another schedule than the first


def merge_schedules(schedules: Sequence[Sequence[Slot]], *, cut: bool) -> MergedSchedule:
    """Merges schedules of a channel, which are in order of preference and sorted by start.

    With ``cut``, overlapping programmes are shortened.
    """
    if not schedules:
        return MergedSchedule([])
    result = _without_overlaps(schedules[0]) if cut else MergedSchedule(list(schedules[0]))
    for schedule in schedules[1:]:
        added = _without_overlaps(schedule) if cut else MergedSchedule(list(schedule))
        occupied = _OccupiedTimes(result.slots)
        slots, shortened = [], added.cut
        for slot in added.slots:
            piece = occupied.largest_gap(slot)
            if piece is None:
                continue
            if cut and piece != (slot.start, slot.stop):
                slot, shortened = slot._replace(start=piece[0], stop=piece[1]), shortened + 1
            slots.append(slot)
        result = replace(
            result,
            slots=sorted([*result.slots, *slots], key=lambda slot: slot.start),
            cut=result.cut + shortened,
            doubled=result.doubled + added.doubled,
            filled=result.filled + len(slots),
        )
    return result


def _without_overlaps(schedule: Sequence[Slot]) -> MergedSchedule:
    """Ends each programme when the next one begins. Of several with the same start, keeps the first."""
    slots: list[Slot] = []
    cut = duplicates = 0
    for slot in schedule:
        previous_slot = slots[-1] if slots else None
        if previous_slot is not None and not (slot.clumped and previous_slot.clumped):
            if slot.start == previous_slot.start:
                duplicates += 1
                continue
            if previous_slot.stop is not None and previous_slot.stop > slot.start:
                slots[-1] = previous_slot._replace(stop=slot.start)
                cut += 1
        slots.append(slot)
    return MergedSchedule(slots, cut, duplicates)


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
        """Returns the largest free part of a slot, (start, stop), or None if less than half is free."""
        index = bisect_right(self.begins, slot.start)  # of the first interval that begins later
        begin = max(slot.start, self.ends[index - 1] if index else slot.start)
        next_begin = self.begins[index] if index < len(self.begins) else None
        if slot.stop is None:
            return (slot.start, next_begin) if begin == slot.start else None
        best = (0, 0)
        while begin < slot.stop:
            end = min(slot.stop, self.begins[index] if index < len(self.begins) else slot.stop)
            best = max(best, (begin, end), key=lambda piece: piece[1] - piece[0])
            if index == len(self.begins):
                break
            begin, index = self.ends[index], index + 1
        return best if 2 * (best[1] - best[0]) >= slot.stop - slot.start else None
