"""Plots of held-out titles: how much a rare word costs, and where k-NN and hyperplanes draw different borders."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from tasks.publish.figure import MUTED, make_figure, say
from tasks.publish.held_out import Verdicts

BINS = ((0, "unseen"), (1, "1"), (2, "2"), (3, "3–4"), (5, "5–9"), (10, "10–19"), (20, "20–49"), (50, "50–99"), (100, "100 or more"))  # first of each bin
BLUE = "#476fdb"
OUTCOMES = (  # k-NN right, hyperplane right, name, colour, symbol: shapes differ too, so that no colour is needed
    (True, True, "both right", "#b9c0ca", "circle"),
    (False, False, "both wrong", "#5b6472", "x"),
    (True, False, "only k-NN right", "#476fdb", "diamond"),
    (False, True, "only the hyperplane right", "#f88e03", "triangle-up"),
)


def plot_precision_by_rarest_word(rarest: np.ndarray, precision: np.ndarray) -> go.Figure:
    """Mean precision@10 of held-out titles by how many training titles hold their rarest word.

    Args:
        rarest: Integers, shape (queries,); 0: a word that no training title holds; -1 (no word) is left out.
        precision: Floats, shape (queries,).
    """
    figure = make_figure("Precision@10 by a title's rarest word", height=380)
    known = (rarest >= 0) & ~np.isnan(precision)
    bins = np.searchsorted([first for first, _ in BINS], rarest[known], side="right") - 1
    shown = [number for number in range(len(BINS)) if (bins == number).any()]
    means = [float(precision[known][bins == number].mean()) for number in shown]
    sizes = [int((bins == number).sum()) for number in shown]
    figure.add_bar(
        x=[BINS[number][1] for number in shown], y=means, marker={"color": BLUE}, text=[f"{mean:.2f}<br>of {size:,}" for mean, size in zip(means, sizes, strict=True)],
        textposition="outside", cliponaxis=False, hovertemplate="%{x}: %{text}<extra></extra>",
    )  # fmt: skip
    figure.update_xaxes(title="training titles that hold the rarest word", type="category")
    figure.update_yaxes(title="mean precision@10", range=[0, 1])
    return figure if shown else say(figure, "No held-out title has a word and a category.")


def plot_borders(titles: Sequence[str], xy: np.ndarray, labels: Sequence[Sequence[str]], label_names: Sequence[str], verdicts: Verdicts) -> go.Figure:
    """Held-out titles at their places on the map, by who named a right category: k-NN, hyperplanes, both or neither.

    Args:
        titles: Text of each.
        xy: Floats, shape (queries, 2).
        labels: Categories of each.
        label_names: One a label.
        verdicts: The two answers, a row a title.
    """
    figure = make_figure("Where k-NN and hyperplanes disagree on held-out titles", height=720)
    for knn_right, plane_right, name, colour, symbol in OUTCOMES:
        rows = np.flatnonzero((verdicts.knn_right == knn_right) & (verdicts.plane_right == plane_right)).tolist()
        if not rows:
            continue
        about = [
            f"<b>{html.escape(titles[row])}</b><br>{html.escape(', '.join(labels[row]))}<br>k-NN: {html.escape(label_names[int(verdicts.knn[row])])}"
            f"<br>hyperplane: {html.escape(label_names[int(verdicts.plane[row])])}"
            for row in rows
        ]
        figure.add_scattergl(
            x=xy[rows, 0].round(4).tolist(), y=xy[rows, 1].round(4).tolist(), mode="markers", name=f"{name} ({len(rows):,})", text=about, hovertemplate="%{text}<extra></extra>",
            marker={"color": colour, "symbol": symbol, "size": 5 if knn_right == plane_right else 8},
        )  # fmt: skip
    figure.update_layout(showlegend=True, legend={"orientation": "h", "y": 1, "yanchor": "bottom", "x": 1, "xanchor": "right"})
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False, scaleanchor="x")
    if not len(titles):
        return say(figure, "No held-out title on the map has a category.")
    differ = int((verdicts.knn_right != verdicts.plane_right).sum())
    figure.add_annotation(
        text=f"exactly one is right for {differ:,} of {len(titles):,} titles", showarrow=False, xref="paper", yref="paper", x=0, y=0, yanchor="top", font={"color": MUTED}
    )
    return figure
