"""What a classifier of sub-titles confuses: counts, a plot and a table."""

import numpy as np
import plotly.graph_objects as go

from storage.shapes import Int64
from tasks.plotting import make_figure
from tasks.subtitles.classifier import Examples, PatternClassifier


def count_confusion(model: PatternClassifier, examples: Examples) -> Int64[np.ndarray, "labels labels"]:
    """Examples by their label (row) and what the network finds most probable (column)."""
    said = model.probabilities(examples.texts).argmax(axis=1)
    counts = np.zeros((len(model.classes), len(model.classes)), dtype=np.int64)
    np.add.at(counts, (examples.labels, said), 1)
    return counts


def precisions(counts: Int64[np.ndarray, "labels labels"]) -> np.ndarray:
    """The share of what is said of each class that is right, float64 (labels,); nan where nothing is said."""
    with np.errstate(invalid="ignore"):
        return counts.diagonal() / counts.sum(axis=0)


def plot_confusion(classes: tuple[str, ...], counts: Int64[np.ndarray, "labels labels"]) -> go.Figure:
    """A heat map: rows are the rules' labels, columns what the network says."""
    shares = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    along, up = {"title": "the network says"}, {"title": "the rule says", "autorange": "reversed"}
    figure = make_figure("Patterns of held-out sub-titles, cues hidden", 640, along, up)
    names = list(classes)
    figure.add_heatmap(
        x=names, y=names, z=shares, text=counts, texttemplate="%{text}", colorscale="Blues", showscale=False,
        hovertemplate="%{y} taken for %{x}: %{text} (%{z:.0%} of the row)<extra></extra>",
    )  # fmt: skip
    return figure


def confusion_table(classes: tuple[str, ...], counts: Int64[np.ndarray, "labels labels"]) -> str:
    """The counts as CSV, which MLflow's page shows as a table."""
    rows = [",".join(("rule", *classes))]
    rows += [",".join((name, *map(str, row))) for name, row in zip(classes, counts.tolist(), strict=True)]
    return "\n".join(rows) + "\n"
