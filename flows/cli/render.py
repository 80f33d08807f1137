"""Formats scores, the status of the catalogue, categories and rows of a query as text for terminals."""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

MEASURES = ("accuracy", "precision_at_k", "mrr", "micro_f1", "macro_f1")
PREDICTORS = {
    "knn": "GuideSpace k-NN",
    "knn_oov": "  with unseen words",
    "tfidf_knn": "TF-IDF k-NN",
    "l1_logistic": "TF-IDF logistic L1",
    "tfidf_svm": "TF-IDF linear SVM",
    "tfidf_svm_sentence": "TF-IDF SVM + sentence",
    "sentence_knn": "sentence k-NN",
    "majority": "majority class",
}
AGREEMENT_MEASURES = ("ari", "ami", "v_measure", "b_cubed", "run_to_run_ari")
KIND_SETS, KIND_MEASURES = ("all",), ("precision", "recall", "average_precision")
FEED_COUNTS = ("seen", "stored", "duplicates", "rejected")
CATALOGUE_COUNTS = ("channels", "programmes", "titles", "categories")
MAX_DROPPED_CATEGORIES = 15  # maximum number of printed categories for each reason


def show(document: Any, as_json: bool, lines: Iterable[str]) -> None:
    """Prints the result of a command: ``document`` as JSON if ``as_json`` is set, else ``lines``."""
    for line in [json.dumps(document, ensure_ascii=False, indent=1)] if as_json else lines:
        print(line)


def scores_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Formats scores.json, the scores of a run, as lines of tables."""
    for protocol, forms in document["protocols"].items():
        for form, score in forms.items():
            heading = f"{protocol}, {form.replace('_', ' ')}"
            if score["n"]:
                rows = [
                    [name, *(_format_number(score[key].get(measure)) for measure in MEASURES)]
                    for key, name in PREDICTORS.items()
                    if key in score
                ]
                yield from _column_lines([[f"{heading} ({score['n']} titles)", *MEASURES], *rows])
            else:
                yield f"{heading}: not scored ({score['reason']})"
            yield ""
    if kinds := document.get("kinds"):
        rows = [
            [kind, *(f"{_format_number(sets[name][key])}" for name in KIND_SETS for key in KIND_MEASURES)]
            for kind, sets in kinds.items()
        ]
        pairs = itertools.product(KIND_SETS, KIND_MEASURES)
        headings = [f"{measure}, {name}".replace("_", " ") for name, measure in pairs]
        yield from _column_lines([["kinds of programmes", *headings], *rows])
        yield ""
    clusters = document["clusters"]
    agreement = ", ".join(f"{name} {_format_number(clusters[name])}" for name in AGREEMENT_MEASURES)
    yield f"clusters: {clusters['count']}, noise {_format_number(clusters['noise_share'])}, {agreement}"
    state = "is the champion" if document["champion"] else "is not the champion, which is unchanged"
    yield f"this model {state}"


def status_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Formats the status of a home as lines: a table of feeds with rejects by reason, failures and totals."""
    rows = [["feed", *FEED_COUNTS, "why"]]
    for feed in document["feeds"]:
        reasons = [f"{reason} {count}" for reason, count in feed["rejects"].items()]
        if invalid_bytes := feed.get("invalid_bytes"):
            reasons.append(f"{invalid_bytes:,} invalid bytes")
        rows.append([feed["source"], *(f"{feed[name]:,}" for name in FEED_COUNTS), ", ".join(reasons)])
    yield from _column_lines(rows)
    for failure in document["failures"]:
        yield f"feed FAILED: {failure['reason']}"
    yield "\n" + ", ".join(f"{document[name]:,} {name}" for name in CATALOGUE_COUNTS)
    yield f"{document['home']}: {document['home_bytes'] / 1e6:,.1f} MB"


def table_lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Formats rows of a query as lines of a table. No cell is truncated."""
    cells = [["–" if value is None else str(value) for value in row.values()] for row in rows]
    return _column_lines([list(rows[0]), *cells]) if rows else iter(["no rows"])


def category_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Formats the category report as lines: all labels, and the largest dropped categories by reason."""
    yield f"{len(document['labels'])} labels (category, titles):"
    yield from map(_category_line, document["labels"])
    for reason in dict.fromkeys(row["reason"] for row in document["dropped"]):
        rows = [row for row in document["dropped"] if row["reason"] == reason]
        yield f"\ndropped, {reason}: {len(rows):,}"
        yield from map(_category_line, rows[:MAX_DROPPED_CATEGORIES])


def _category_line(row: Mapping[str, Any]) -> str:
    return f"  {row['titles']:>7,}  {row['category']}"


def _column_lines(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Formats rows as lines with aligned columns: the first to the left, the other columns to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *other_cells in rows:
        right_cells = (cell.rjust(width) for cell, width in zip(other_cells, widths[1:], strict=True))
        yield "  ".join([first.ljust(widths[0]), *right_cells]).rstrip()


def _format_number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
