"""The page nights.html: any metric over the last nights, promotions marked, and what the gate said."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from storage.tracking.nights import SECONDS, Night
from tasks.pages import encode_data, render_page

HERE = Path(__file__).parent
SHOWN = {  # the small charts, in this order: metric, name, whether more is better (None: neither)
    "at_a_glance/quality": ("Quality, by which the gate decides", True),
    "at_a_glance/precision_at_k": ("Precision at k, titles never seen", True),
    "at_a_glance/accuracy_unseen_show": ("Accuracy, franchises never seen", True),
    "drift/neighbours_stayed": ("Share of the ten nearest that stayed since the night before", None),
    "drift/vocabulary_distance": ("Change of the vocabulary since the night before, bits", None),
    "drift/oov_share": ("Held-out titles with unseen words", None),
    "drift/category_distance": ("Change of the categories since the night before, bits", None),
    "drift/new_titles": ("Titles that the night before lacked", None),
    "counts/corpus/labels": ("Categories", None),
    "at_a_glance/clusters": ("Clusters", None),
    "at_a_glance/titles": ("Titles", None),
    "guide/programmes": ("Programmes", None),
    SECONDS: ("Duration, seconds", None),
}


def promoted(nights: Sequence[Night]) -> list[bool]:
    """Which nights moved the alias: their version serves and that of the champion before was another one."""
    moved, serving = [], ""
    for night in nights:
        moved.append(night.champion and night.version != serving)
        serving = night.version if night.champion else serving
    return moved


def render_nights(nights: Sequence[Night], heading: str) -> str:
    """Renders the page, to be written as UTF-8; nights are oldest first."""
    names = sorted({name for night in nights for name in night.metrics})
    metrics = {name: [_number(night.metrics.get(name)) for night in nights] for name in names}
    told: list[dict[str, Any]] = [
        {
            "at": f"{night.at:%Y-%m-%d %H:%M}",
            "name": night.name,
            "run": night.run,
            "version": night.version,
            "promoted": moved,
            "reason": night.reason,
        }
        for night, moved in zip(nights, promoted(nights), strict=True)
    ]
    shown = [[name, about, better] for name, (about, better) in SHOWN.items() if name in metrics]
    data = encode_data({"nights": told, "metrics": metrics, "shown": shown})
    return render_page(HERE / "nights.html", heading, HERE / "nights.css", data, [HERE / "nights.js"])


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")
