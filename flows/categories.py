"""The command ``categories``: what the last run's labels are, and which categories were dropped and why."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from flows.latest import read_latest
from storage.workspace import HomeError
from tasks.publish.dropped import read_dropped


def describe_categories(home: str | Path) -> dict[str, Any]:
    """``{"labels": [{"category", "titles"}], "dropped": [{"category", "reason", "titles"}]}``, most titles first.

    Raises:
        HomeError: No run has finished, or one of a version that kept no report, or its corpus is gone.
    """
    corpus = Path(read_latest(home, "corpus")["corpus"])
    titles = Counter(label for labels in pq.read_table(corpus / "titles.parquet", columns=["labels"])["labels"].to_pylist() for label in labels)
    labels = [{"category": name, "titles": count} for name, count in sorted(titles.items(), key=lambda item: (-item[1], item[0]))]
    try:
        dropped = read_dropped(corpus)
    except FileNotFoundError as error:
        raise HomeError(f"the last run in {home} was made by an older version, which kept no report of categories; run `guidespace nightly --feed …` again") from error
    return {"labels": labels, "dropped": dropped}


def category_lines(document: dict[str, Any], limit: int = 15) -> list[str]:
    """The same for people: all labels, and of each reason the categories with the most titles."""
    lines = [f"{len(document['labels'])} labels (category, titles):", *(f"  {label['titles']:>7,}  {label['category']}" for label in document["labels"])]
    reasons = dict.fromkeys(row["reason"] for row in document["dropped"])
    for reason in reasons:
        rows = [row for row in document["dropped"] if row["reason"] == reason]
        lines += ["", f"dropped, {reason}: {len(rows):,}", *(f"  {row['titles']:>7,}  {row['category']}" for row in rows[:limit])]
    return lines
