"""The report of categories that were dropped, as MLflow and Prefect show it: a row a category, with the reason."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

SHOWN = 200  # rows of the table on the flow run's page; MLflow has them all


def read_dropped(corpus: Path) -> list[dict[str, Any]]:
    """Rows of category, reason and titles, most titles first.

    Args:
        corpus: Folder of a Corpus.

    Raises:
        FileNotFoundError: The Corpus is of a version that kept no report.
    """
    return pq.read_table(corpus / "dropped_categories.parquet").to_pylist()


def dropped_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """The report as CSV, which MLflow shows as a table."""
    text = io.StringIO()
    writer = csv.DictWriter(text, ["category", "reason", "titles"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def dropped_by_reason(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many categories each reason dropped, most first."""
    return dict(Counter(row["reason"] for row in rows).most_common())


def dropped_summary(rows: Sequence[Mapping[str, Any]]) -> str:
    """One line over the table: how many, and why."""
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in dropped_by_reason(rows).items())
    return f"{len(rows):,} categories dropped" + (f": {reasons}" if reasons else "")
