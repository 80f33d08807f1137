"""Computes the confusion matrix of a classifier of sub-titles, and formats it as a plot and as a table."""

import numpy as np
import plotly.graph_objects as go

from storage.shapes import Int64
from tasks.plotting import make_figure
from tasks.subtitles.classifier import Examples, PatternClassifier


def count_confusion(model: PatternClassifier, examples: Examples) -> Int64[np.ndarray, "labels labels"]:
    """Counts examples by label (row of the result) and predicted class (column)."""
    predictions = model.probabilities(examples.texts).argmax(axis=1)
    counts = np.zeros((len(model.classes), len(model.classes)), dtype=np.int64)
    np.add.at(counts, (examples.labels, predictions), 1)
    return counts


def precisions(counts: Int64[np.ndarray, "labels labels"]) -> np.ndarray:
    """Returns the precision of each class (float64) from a confusion matrix; nan if it is never predicted."""
    with np.errstate(invalid="ignore"):
        return counts.diagonal() / counts.sum(axis=0)


def plot_confusion(classes: tuple[str, ...], counts: Int64[np.ndarray, "labels labels"]) -> go.Figure:
    """Draws the confusion matrix as a heat map. Rows are labels by rules, columns are predictions."""
    shares = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    xaxis = {"title": "predicted by the network"}
    yaxis = {"title": "label of the rule", "autorange": "reversed"}
    figure = make_figure("Patterns of held-out sub-titles, cues hidden", 640, xaxis, yaxis)
    names = list(classes)
    figure.add_heatmap(
        x=names, y=names, z=shares, text=counts, texttemplate="%{text}", colorscale="Blues", showscale=False,
        hovertemplate="%{y} taken for %{x}: %{text} (%{z:.0%} of the row)<extra></extra>",
    )  # fmt: skip
    return figure


def confusion_table(classes: tuple[str, ...], counts: Int64[np.ndarray, "labels labels"]) -> str:
    """Formats the confusion matrix as CSV, which MLflow displays as a table."""
    rows = [",".join(("rule", *classes))]
    rows += [",".join((name, *map(str, row))) for name, row in zip(classes, counts.tolist(), strict=True)]
    return "\n".join(rows) + "\n"
