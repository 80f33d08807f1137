"""Detects anomalies of feeds: compares each day with the week before, and an import with the previous one."""

import datetime
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storage.catalogue.checks import feed_days, silent_channels
from storage.catalogue.connection import Catalogue
from storage.catalogue.feeds import Counts, last_stop, newest_import, previous_import
from storage.catalogue.ledger import FeedWriter
from storage.home.readings import FeedStatus

COLUMNS = (
    *("source", "day", "programmes", "channels", "category_share"),
    *("gaps", "overlaps", "new_titles", "languages", "anomalies"),
)
WEEK = 7  # days
MIN_DAYS = 3  # minimum number of days in the week before that a comparison needs
# A day is anomalous if its value divided by the mean of previous days is below MIN_RATIOS, or if it is above
# MAX_RATIOS and the value exceeds 5 % of the programmes.
MIN_RATIOS = {"programmes": 0.5, "channels": 0.7, "category_share": 0.7}
MAX_RATIOS = {"gaps": 3.0, "overlaps": 3.0}


@dataclass(frozen=True, kw_only=True)
class GuideCheck:
    """Statistics and anomalies of all feeds of a guide.

    Attributes:
        days: One row per feed and day; the column ``anomalies`` is "" if there are none.
        readings: One row per failed or anomalous import of a feed, with the same columns; ``day`` is
            "reading".
        anomalies: One line per anomaly: "uk.xml.gz 2025-03-31: channel bbc.one fell silent".
    """

    days: Sequence[Mapping[str, Any]]
    readings: Sequence[Mapping[str, Any]]
    anomalies: Sequence[str]

    @property
    def metrics(self) -> dict[str, float]:
        """Returns metrics for MLflow: totals over all feeds and days."""
        names = ("programmes", "channels", "gaps", "overlaps", "new_titles")
        sums = {name: float(sum(day[name] for day in self.days)) for name in names}
        with_categories = sum(day["category_share"] * day["programmes"] for day in self.days)
        totals = sums | {
            "category_share": with_categories / max(1.0, sums["programmes"]),
            "channels_a_day": sums.pop("channels") / max(1, len(self.days)),
            "anomalies": float(len(self.anomalies)),
        }
        return {f"guide/{name}": value for name, value in totals.items()}


def check_guide(guide: Path, statuses: Sequence[FeedStatus] = ()) -> GuideCheck:
    """Computes statistics per day of a guide, and detects anomalies.

    Args:
        guide: Folder with the Parquet files of a Guide.
        statuses: Results of the imports of feeds in the same run.
    """
    days = feed_days(guide)
    anomalies: dict[tuple[str, Any], list[str]] = defaultdict(list)
    for silent in silent_channels(guide, MIN_DAYS):
        anomalies[silent["source"], silent["day"]].append(f"channel {silent['channel']} fell silent")
    for number, day in enumerate(days):
        previous_days = [
            previous_day
            for previous_day in days[max(0, number - WEEK) : number]
            if previous_day["source"] == day["source"] and (day["day"] - previous_day["day"]).days <= WEEK
        ]
        # the last day of a guide is incomplete
        is_last = number + 1 == len(days) or days[number + 1]["source"] != day["source"]
        if len(previous_days) >= MIN_DAYS and not is_last:
            anomalies[day["source"], day["day"]] += _day_anomalies(day, previous_days)
    texts = ["; ".join(anomalies.get((day["source"], day["day"]), ())) for day in days]
    rows = [{**day, "day": f"{day['day']}", "anomalies": text} for day, text in zip(days, texts)]
    reading_rows, lines = [], []
    for feed_status in statuses:
        failure_texts = ["not read: " + feed_status.failure] if feed_status.failure else []
        if text := "; ".join([*feed_status.anomalies, *failure_texts]):
            row = {"source": feed_status.source, "day": "reading", "programmes": feed_status.programmes}
            reading_rows.append(dict.fromkeys(COLUMNS) | row | {"anomalies": text})
            lines.append(f"{Path(feed_status.source).name}: {text}")
    for (source, day), texts in sorted(anomalies.items()):
        lines += [f"{Path(source).name} {day}: {text}" for text in texts]
    return GuideCheck(days=rows, readings=reading_rows, anomalies=lines)


def _day_anomalies(day: Mapping[str, Any], previous_days: Sequence[Mapping[str, Any]]) -> list[str]:
    anomalies = []
    for name in (*MIN_RATIOS, *MAX_RATIOS):
        usual = sum(previous_day[name] for previous_day in previous_days) / len(previous_days)
        is_low = name in MIN_RATIOS and day[name] < MIN_RATIOS[name] * usual
        is_high = name in MAX_RATIOS and day[name] > max(MAX_RATIOS[name] * usual, 0.05 * day["programmes"])
        if is_low or is_high:
            share = f"category share {day[name]:.2g}, usually {usual:.2g}"
            count = f"{day[name]:,} {name}, usually {usual:,.0f}"
            anomalies.append(share if name == "category_share" else count)
    return anomalies


def import_anomalies(
    catalogue: Catalogue, source: str, counts: Counts, draft: FeedWriter | None, today: datetime.date | None
) -> tuple[str, ...]:
    """Returns the anomalies of one import of a feed, one text each, without the name of the feed.

    Args:
        catalogue: Open catalogue.
        source: Name of the feed.
        counts: Counts of programmes in the feed.
        draft: Writer of the feed, whose transaction is not committed yet; None for an unchanged feed.
        today: Date in UTC; None for a guide of the past, which may end at any time.
    """
    feed_id, grabbed_at = (
        (draft.grab.feed_id, draft.grab.guide_time) if draft else newest_import(catalogue, source)
    )
    previous = previous_import(catalogue, source, feed_id, grabbed_at)
    anomalies = []
    programmes = counts.seen - counts.rejected
    if not programmes or (previous and programmes < MIN_RATIOS["programmes"] * previous.programmes):
        note = f", {previous.programmes:,} in its reading of {previous.grabbed_at:%F}" if previous else ""
        anomalies.append(f"{programmes:,} programmes{note}")
    ends = last_stop(catalogue, feed_id)
    if today and ends and ends.date() < today:
        anomalies.append(f"the guide ends on {ends:%Y-%m-%d %H:%M} UTC, before today")
    return tuple(anomalies)
