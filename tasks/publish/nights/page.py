"""Renders nights.html, which shows the metrics of the last nightly runs and which models were promoted."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from storage.tracking.nights import SECONDS_METRIC, Night
from tasks.pages import encode_data, render_page

FOLDER = Path(__file__).parent
CHARTS = {  # small charts by metric: label, and whether larger values are better (None: neutral)
    "at_a_glance/quality": ("Quality, which the gate compares", True),
    "at_a_glance/precision_at_k": ("Precision at k, unseen titles", True),
    "at_a_glance/accuracy_unseen_show": ("Accuracy, unseen franchises", True),
    "drift/neighbours_stayed": ("Overlap of the ten nearest titles with the previous night", None),
    "drift/vocabulary_distance": ("Divergence of word frequencies from the previous night, bits", None),
    "drift/oov_share": ("Share of held-out titles with unseen words", None),
    "drift/category_distance": ("Divergence of category frequencies from the previous night, bits", None),
    "drift/new_titles": ("Share of titles that are new since the previous night", None),
    "counts/corpus/labels": ("Categories", None),
    "at_a_glance/clusters": ("Clusters", None),
    "at_a_glance/titles": ("Titles", None),
    "guide/programmes": ("Programmes", None),
    SECONDS_METRIC: ("Duration, seconds", None),
}


def promotion_flags(nights: Sequence[Night]) -> list[bool]:
    """Returns, for each nightly run (oldest first), whether its model replaced the served model."""
    flags, served_version = [], ""
    for night in nights:
        flags.append(night.champion and night.version != served_version)
        served_version = night.version if night.champion else served_version
    return flags


def render_nights(nights: Sequence[Night], heading: str) -> str:
    """Returns nights.html as text, to be written as UTF-8.

    Args:
        nights: Nightly runs, which must be sorted from oldest to newest.
        heading: Heading of the page.
    """
    names = sorted({name for night in nights for name in night.metrics})
    metrics = {name: [_json_number(night.metrics.get(name)) for night in nights] for name in names}
    rows: list[dict[str, Any]] = [
        {
            "at": f"{night.at:%Y-%m-%d %H:%M}",
            "name": night.name,
            "run": night.run,
            "version": night.version,
            "promoted": is_promoted,
            "reason": night.reason,
        }
        for night, is_promoted in zip(nights, promotion_flags(nights), strict=True)
    ]
    charts = [[name, label, direction] for name, (label, direction) in CHARTS.items() if name in metrics]
    data = encode_data({"nights": rows, "metrics": metrics, "shown": charts})
    return render_page(FOLDER / "nights.html", heading, FOLDER / "nights.css", data, [FOLDER / "nights.js"])


def _json_number(value: float | None) -> float | None:
    """Rounds a metric to six significant digits; returns None for a missing, infinite or NaN value."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")
