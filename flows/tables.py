"""Scores, status and rows of a query as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MEASURES = ("accuracy", "precision_at_10", "mrr", "micro_f1", "macro_f1")
ROWS = {"knn": "GuideSpace k-NN", "knn_oov": "  with unseen words", "tfidf_knn": "TF-IDF k-NN", "tfidf_svm": "TF-IDF linear SVM", "majority": "majority class"}


def scores_table(document: Mapping[str, Any]) -> str:
    """The scores document in columns."""
    lines = []
    for protocol, forms in document["protocols"].items():
        for form, score in forms.items():
            heading = f"{protocol}, {form.replace('_', ' ')}"
            if not score["n"]:
                lines += [f"{heading}: not scored ({score['reason']})", ""]
                continue
            rows = [[name, *(_number(score[key].get(measure)) for measure in MEASURES)] for key, name in ROWS.items() if key in score]
            lines += [_columns([[f"{heading} ({score['n']} titles)", *MEASURES], *rows]), ""]
    clusters = document["clusters"]
    agreement = ", ".join(f"{name} {_number(clusters[name])}" for name in ("ari", "ami", "v_measure", "b_cubed", "run_to_run_ari"))
    lines.append(f"clusters: {clusters['count']}, noise {_number(clusters['noise_share'])}, {agreement}")
    lines.append("this model serves (champion)" if document["champion"] else "this model does not serve: the champion stays")
    return "\n".join(lines)


def status_table(document: Mapping[str, Any]) -> str:
    """The status document in columns."""
    rows = [["feed", "seen", "stored", "duplicates", "rejected", "why"]]
    for feed in document["feeds"]:
        reasons = [f"{reason} {count}" for reason, count in feed["rejects"].items()]
        why = ", ".join(reasons + ["lost by DuckDB 2.0.0: read it again"] * feed.get("lost", False))
        rows.append([feed["source"], *(f"{feed[name]:,}" for name in ("seen", "stored", "duplicates", "rejected")), why])
    counts = ", ".join(f"{document[name]:,} {name}" for name in ("channels", "programmes", "titles", "categories"))
    return f"{_columns(rows)}\n\n{counts}\n{document['home']}: {document['home_bytes'] / 1e6:,.1f} MB"


def rows_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows of a query in columns, under their names."""
    if not rows:
        return "no rows"
    return _columns([list(rows[0]), *(["–" if value is None else str(value) for value in row.values()] for row in rows)])


def _columns(rows: Sequence[Sequence[str]]) -> str:
    """First column to the left, the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    padded = ([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))] for row in rows)
    return "\n".join("  ".join(cells).rstrip() for cells in padded)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
