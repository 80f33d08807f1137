"""Data checks: each reading beside the one before it, each feed's days beside the week before them; what is odd, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storage.catalogue.checks import feed_days, silent_channels
from storage.readings import Told

COLUMNS = ("source", "day", "programmes", "channels", "category_share", "gaps", "overlaps", "new_titles", "languages", "anomalies")
WEEK = 7
LEAST_DAYS = 3  # fewer days before say nothing of what is usual
FALLS = {"programmes": 0.5, "channels": 0.7, "category_share": 0.7}  # below this share of the week before: an anomaly
RISES = {"gaps": 3.0, "overlaps": 3.0}  # above this multiple, and above 5 % of the programmes


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What the checks found.

    Attributes:
        days: One row a feed and day; ``anomalies`` is among the columns, "" where all is usual.
        readings: A row with the same columns for each feed that failed or was odd as a whole; ``day`` is "reading".
        anomalies: One line each: "uk.xml.gz 2025-03-31: channel bbc.one fell silent".
    """

    days: Sequence[Mapping[str, Any]]
    readings: Sequence[Mapping[str, Any]]
    anomalies: Sequence[str]

    @property
    def metrics(self) -> dict[str, float]:
        """Totals of all feeds and days, for MLflow."""
        programmes = sum(day["programmes"] for day in self.days)
        return {
            "guide/programmes": float(programmes),
            "guide/category_share": sum(day["category_share"] * day["programmes"] for day in self.days) / programmes if programmes else 0.0,
            "guide/channels_a_day": sum(day["channels"] for day in self.days) / len(self.days) if self.days else 0.0,
            **{f"guide/{name}": float(sum(day[name] for day in self.days)) for name in ("gaps", "overlaps", "new_titles")},
            "guide/anomalies": float(len(self.anomalies)),
        }


def check_guide(guide: Path, readings: Sequence[Told] = ()) -> Checked:
    """Checks a published Guide.

    Args:
        guide: Its folder.
        readings: What the run that published it read.
    """
    days = feed_days(guide)
    odd: dict[tuple[str, Any], list[str]] = {}
    for silent in silent_channels(guide, LEAST_DAYS):
        odd.setdefault((silent["source"], silent["day"]), []).append(f"channel {silent['channel']} fell silent")
    for place, day in enumerate(days):
        before = [other for other in days[max(0, place - WEEK) : place] if other["source"] == day["source"] and (day["day"] - other["day"]).days <= WEEK]
        if len(before) >= LEAST_DAYS and not _is_last(days, place):
            odd.setdefault((day["source"], day["day"]), []).extend(_unusual(day, before))
    rows = [{**day, "day": day["day"].isoformat(), "anomalies": "; ".join(odd.get((day["source"], day["day"]), []))} for day in days]
    told = [(reading, "; ".join([*reading.anomalies, *(["not read: " + reading.failed] if reading.failed else [])])) for reading in readings]
    return Checked(
        days=rows,
        readings=[
            dict.fromkeys(COLUMNS) | {"source": reading.source, "day": "reading", "programmes": reading.programmes, "anomalies": what}
            for reading, what in told
            if what
        ],
        anomalies=[
            *(f"{Path(reading.source).name}: {what}" for reading, what in told if what),
            *(f"{Path(source).name} {day}: {what}" for (source, day), found in sorted(odd.items()) for what in found),
        ],
    )


def _unusual(day: Mapping[str, Any], before: Sequence[Mapping[str, Any]]) -> list[str]:
    """What of a day lies outside of the days before it."""
    found = []
    for name in (*FALLS, *RISES):
        usual = sum(other[name] for other in before) / len(before)
        fell = name in FALLS and day[name] < FALLS[name] * usual
        rose = name in RISES and day[name] > RISES[name] * usual and day[name] > 0.05 * day["programmes"]
        if fell or rose:
            found.append(f"{name.replace('_', ' ')} {day[name]:.2g}, usually {usual:.2g}" if name == "category_share" else f"{day[name]:,} {name}, usually {usual:,.0f}")
    return found


def _is_last(days: Sequence[Mapping[str, Any]], place: int) -> bool:
    """Whether it is a feed's last day: guides end in the middle of it."""
    return place + 1 == len(days) or days[place + 1]["source"] != days[place]["source"]
