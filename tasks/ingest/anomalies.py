"""Detects anomalies of feeds: compares days with the week before, and imports with previous imports."""

import datetime
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storage.catalogue.connection import Catalogue
from storage.catalogue.feed_statistics import feed_days, silent_channels
from storage.catalogue.feeds import Counts, last_stop, newest_import, previous_import
from storage.catalogue.ledger import FeedWriter
from storage.home.readings import FeedStatus

_TABLE_COLUMNS = (
    *("source", "day", "programmes", "channels", "category_share"),
    *("gaps", "overlaps", "new_titles", "languages", "anomalies"),
)
WEEK = 7  # days
MIN_DAYS = 3  # a day is compared only if the feed has at least this number of days in the week before
# A count or share of a day is anomalous if its ratio to the mean of the days before is below MIN_RATIOS, or
# if the ratio is above MAX_RATIOS and the count exceeds 5 % of the programmes of the day.
MIN_RATIOS = {"programmes": 0.5, "channels": 0.7, "category_share": 0.7}
MAX_RATIOS = {"gaps": 3.0, "overlaps": 3.0}


@dataclass(frozen=True, kw_only=True)
class GuideCheck:
    """Statistics and anomalies of all feeds of a guide.

    Attributes:
        days: One row per feed and day; the column ``anomalies`` is "" if there are none.
        readings: One row per failed or anomalous import of a feed, with the columns of ``days``; ``day`` is
            "reading".
        anomalies: One line per anomaly: "uk.xml.gz 2025-03-31: channel bbc.one fell silent".
    """

    days: Sequence[Mapping[str, Any]]
    readings: Sequence[Mapping[str, Any]]
    anomalies: Sequence[str]

    @property
    def metrics(self) -> dict[str, float]:
        """Returns metrics for MLflow by name: totals over all feeds and days."""
        names = ("programmes", "channels", "gaps", "overlaps", "new_titles")
        sums = {name: float(sum(day[name] for day in self.days)) for name in names}
        with_category = sum(day["category_share"] * day["programmes"] for day in self.days)
        totals = sums | {
            "category_share": with_category / max(1.0, sums["programmes"]),
            "channels_a_day": sums.pop("channels") / max(1, len(self.days)),
            "anomalies": float(len(self.anomalies)),
        }
        return {f"guide/{name}": value for name, value in totals.items()}


def check_guide(guide: Path, statuses: Sequence[FeedStatus] = ()) -> GuideCheck:
    """Computes statistics per feed and day of a guide, and detects anomalies.

    Args:
        guide: Folder with the Parquet files of a Guide.
        statuses: Results of importing feeds in the run that checks the guide.
    """
    days = feed_days(guide)
    anomalies: dict[tuple[str, Any], list[str]] = defaultdict(list)
    for row in silent_channels(guide, MIN_DAYS):
        anomalies[row["source"], row["day"]].append(f"channel {row['channel']} fell silent")
    for index, day in enumerate(days):
        previous_days = [
            previous_day
            for previous_day in days[max(0, index - WEEK) : index]
            if previous_day["source"] == day["source"] and (day["day"] - previous_day["day"]).days <= WEEK
        ]
        # the last day of a guide is incomplete
        is_last = index + 1 == len(days) or days[index + 1]["source"] != day["source"]
        if len(previous_days) >= MIN_DAYS and not is_last:
            anomalies[day["source"], day["day"]] += _find_day_anomalies(day, previous_days)
    texts = ["; ".join(anomalies.get((day["source"], day["day"]), ())) for day in days]
    rows = [{**day, "day": f"{day['day']}", "anomalies": text} for day, text in zip(days, texts)]
    rows_of_readings, lines = [], []
    for status in statuses:
        failure_texts = ["not read: " + status.failed] if status.failed else []
        if text := "; ".join([*status.anomalies, *failure_texts]):
            row = {"source": status.source, "day": "reading", "programmes": status.programmes}
            rows_of_readings.append(dict.fromkeys(_TABLE_COLUMNS) | row | {"anomalies": text})
            lines.append(f"{Path(status.source).name}: {text}")
    for (source, day), texts in sorted(anomalies.items()):
        lines += [f"{Path(source).name} {day}: {text}" for text in texts]
    return GuideCheck(days=rows, readings=rows_of_readings, anomalies=lines)


def _find_day_anomalies(day: Mapping[str, Any], previous_days: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns a text for each unusual value of a day of a feed, such as "12 channels, usually 40"."""
    anomalies = []
    for name in (*MIN_RATIOS, *MAX_RATIOS):
        usual = sum(previous_day[name] for previous_day in previous_days) / len(previous_days)
        is_low = name in MIN_RATIOS and day[name] < MIN_RATIOS[name] * usual
        is_high = name in MAX_RATIOS and day[name] > max(MAX_RATIOS[name] * usual, 0.05 * day["programmes"])
        if is_low or is_high:
            share_text = f"category share {day[name]:.2g}, usually {usual:.2g}"
            count_text = f"{day[name]:,} {name}, usually {usual:,.0f}"
            anomalies.append(share_text if name == "category_share" else count_text)
    return anomalies


def find_import_anomalies(
    catalogue: Catalogue, source: str, counts: Counts, writer: FeedWriter | None, today: datetime.date | None
) -> tuple[str, ...]:
    """Returns a text for each anomaly of an import of a feed. The texts do not contain the name of the feed.

    Args:
        catalogue: Open catalogue.
        source: Name of the feed.
        counts: Counts of the programmes in the feed.
        writer: Writer of the feed, whose transaction is not committed yet; None for an unchanged feed.
        today: Current date in UTC; None for a guide of the past, which may end before today.
    """
    feed_id, grabbed_at = (
        (writer.grab.feed_id, writer.grab.grabbed_at) if writer else newest_import(catalogue, source)
    )
    previous = previous_import(catalogue, source, feed_id, grabbed_at)
    anomalies = []
    programmes = counts.seen - counts.rejected
    if not programmes or (previous and programmes < MIN_RATIOS["programmes"] * previous.programmes):
        note = f" ({previous.programmes:,} in the reading of {previous.grabbed_at:%F})" if previous else ""
        anomalies.append(f"{programmes:,} programmes{note}")
    guide_end = last_stop(catalogue, feed_id)
    if today and guide_end and guide_end.date() < today:
        anomalies.append(f"the guide ends on {guide_end:%Y-%m-%d %H:%M} UTC, before today")
    return tuple(anomalies)
