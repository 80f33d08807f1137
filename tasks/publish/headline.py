"""The dozen figures of a night that come first: ``at_a_glance/NAME`` in MLflow, beside the last night's in the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasks.publish.verdict import Verdict

LABELS = {
    "quality": "quality, by which the gate decides",
    "quality_difference": "quality less the champion's",
    "accuracy": "accuracy, titles never seen",
    "precision_at_10": "precision@10, titles never seen",
    "mrr": "MRR, titles never seen",
    "accuracy_unseen_show": "accuracy, franchises never seen",
    "accuracy_next_period": "accuracy, what comes next in time",
    "clusters": "clusters",
    "noise_share": "share of titles in no cluster",
    "ami": "AMI of clusters and categories",
    "run_to_run_ari": "run-to-run ARI of clusters",
    "titles": "titles on the map",
    "programmes": "programmes in the guide",
}
WHOLE = {"clusters", "titles", "programmes"}


def headline(scores: Mapping[str, Any], verdict: Verdict, titles: int, programmes: int) -> dict[str, float]:
    """Name to value, in the order of LABELS; what nothing supports is left out.

    Args:
        scores: scores.json; of the protocols, the k-NN on the title alone.
        verdict: The gate's.
        titles: On the map.
        programmes: In the guide.
    """
    knn = {protocol: forms["title_only"].get("knn", {}) for protocol, forms in scores["protocols"].items()}
    clusters = scores["clusters"]
    found = {
        "quality": verdict.quality,
        "quality_difference": verdict.difference,
        **{name: knn["unseen_title"].get(name) for name in ("accuracy", "precision_at_10", "mrr")},
        **{
            f"accuracy_{protocol}": knn[protocol].get("accuracy")
            for protocol in ("unseen_show", "next_period")
        },
        "clusters": clusters["count"],
        **{name: clusters[name] for name in ("noise_share", "ami", "run_to_run_ari")},
        "titles": titles,
        "programmes": programmes,
    }
    return {name: float(value) for name, value in found.items() if value is not None}


def headline_table(tonight: Mapping[str, float], before: Mapping[str, float]) -> list[str]:
    """Lines of a Markdown table: tonight, the run before, and the change; without a run before, tonight alone."""
    rows = [name for name in LABELS if name in tonight or name in before]
    if not before:
        return [
            "| | tonight |",
            "| --- | ---: |",
            *(f"| {LABELS[name]} | {_number(name, tonight.get(name))} |" for name in rows),
        ]
    lines = ["| | tonight | last night | change |", "| --- | ---: | ---: | ---: |"]
    for name in rows:
        now, then = tonight.get(name), before.get(name)
        change = (
            "–"
            if now is None or then is None
            else f"{now - then:+,.0f}"
            if name in WHOLE
            else f"{now - then:+.3f}"
        )
        lines.append(f"| {LABELS[name]} | {_number(name, now)} | {_number(name, then)} | {change} |")
    return lines


def _number(name: str, value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}" if name in WHOLE else f"{value:.3f}"
