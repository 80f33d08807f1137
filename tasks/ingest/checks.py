"""Data checks: each feed's days compared with the week before them, with the anomalies of the reading."""

import datetime
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storage.catalogue.checks import feed_days, silent_channels
from storage.catalogue.connection import Catalogue
from storage.catalogue.feeds import Counts, last_stop, newest_reading, previous_reading
from storage.catalogue.ledger import FeedWriter
from storage.home.readings import FeedStatus

COLUMNS = (
    *("source", "day", "programmes", "channels", "category_share"),
    *("gaps", "overlaps", "new_titles", "languages", "anomalies"),
)
WEEK = 7
LEAST_DAYS = 3  # with fewer days before there is nothing to compare with
FALLS = {
    "programmes": 0.5,
    "channels": 0.7,
    "category_share": 0.7,
}  # an anomaly below this share of the usual
RISES = {"gaps": 3.0, "overlaps": 3.0}  # an anomaly above this multiple, and above 5 % of the programmes


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What the checks found.

    Attributes:
        days: One row per feed and day; ``anomalies`` is among the columns, "" where there are none.
        readings: The same columns per feed that failed or has anomalies as a whole; ``day`` is "reading".
        anomalies: One line each: "uk.xml.gz 2025-03-31: channel bbc.one fell silent".
    """

    days: Sequence[Mapping[str, Any]]
    readings: Sequence[Mapping[str, Any]]
    anomalies: Sequence[str]

    @property
    def metrics(self) -> dict[str, float]:
        """Totals of all feeds and days, for MLflow."""
        names = ("programmes", "channels", "gaps", "overlaps", "new_titles")
        sums = {name: float(sum(day[name] for day in self.days)) for name in names}
        in_categories = sum(day["category_share"] * day["programmes"] for day in self.days)
        found = sums | {
            "category_share": in_categories / max(1.0, sums["programmes"]),
            "channels_a_day": sums.pop("channels") / max(1, len(self.days)),
            "anomalies": float(len(self.anomalies)),
        }
        return {f"guide/{name}": value for name, value in found.items()}


def check_guide(guide: Path, readings: Sequence[FeedStatus] = ()) -> Checked:
    """Checks a published Guide (its folder), with the readings of the run that published it."""
    days = feed_days(guide)
    found: dict[tuple[str, Any], list[str]] = defaultdict(list)
    for silent in silent_channels(guide, LEAST_DAYS):
        found[silent["source"], silent["day"]].append(f"channel {silent['channel']} fell silent")
    for place, day in enumerate(days):
        before = [
            other
            for other in days[max(0, place - WEEK) : place]
            if other["source"] == day["source"] and (day["day"] - other["day"]).days <= WEEK
        ]
        # guides end in the middle of their last day
        is_last = place + 1 == len(days) or days[place + 1]["source"] != day["source"]
        if len(before) >= LEAST_DAYS and not is_last:
            found[day["source"], day["day"]] += _unusual(day, before)
    rows = [
        {**day, "day": f"{day['day']}", "anomalies": "; ".join(found.get((day["source"], day["day"]), []))}
        for day in days
    ]
    odd, lines = [], []
    for reading in readings:
        failed = ["not read: " + reading.failed] if reading.failed else []
        if what := "; ".join([*reading.anomalies, *failed]):
            row = {"source": reading.source, "day": "reading", "programmes": reading.programmes}
            odd.append(dict.fromkeys(COLUMNS) | row | {"anomalies": what})
            lines.append(f"{Path(reading.source).name}: {what}")
    for (source, day), each in sorted(found.items()):
        lines += [f"{Path(source).name} {day}: {what}" for what in each]
    return Checked(days=rows, readings=odd, anomalies=lines)


def _unusual(day: Mapping[str, Any], before: Sequence[Mapping[str, Any]]) -> list[str]:
    found = []
    for name in (*FALLS, *RISES):
        usual = sum(other[name] for other in before) / len(before)
        fell = name in FALLS and day[name] < FALLS[name] * usual
        rose = name in RISES and day[name] > RISES[name] * usual and day[name] > 0.05 * day["programmes"]
        if fell or rose:
            share = f"category share {day[name]:.2g}, usually {usual:.2g}"
            found.append(share if name == "category_share" else f"{day[name]:,} {name}, usually {usual:,.0f}")
    return found


def reading_anomalies(
    catalogue: Catalogue, source: str, counts: Counts, draft: FeedWriter | None, today: datetime.date | None
) -> tuple[str, ...]:
    """One text each, without the source.

    Args:
        draft: The reading, settled and not yet committed; None where the feed is unchanged: its last one.
        today: UTC; None for a guide read after the fact, which may end at any time.
    """
    feed_id, grabbed_at = (draft.grab.feed_id, draft.grab.at) if draft else newest_reading(catalogue, source)
    before = previous_reading(catalogue, source, feed_id, grabbed_at)
    found = []
    programmes = counts.seen - counts.rejected
    if not programmes or (before and programmes < FALLS["programmes"] * before.programmes):
        last = f", {before.programmes:,} in its reading of {before.grabbed_at:%Y-%m-%d}" if before else ""
        found.append(f"{programmes:,} programmes{last}")
    ends = last_stop(catalogue, feed_id)
    if today and ends and ends.date() < today:
        found.append(f"the guide ends on {ends:%Y-%m-%d %H:%M} UTC, before today")
    return tuple(found)
