"""Plots over the nights: how each night's training went, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from tasks.publish.figure import GRID, make_figure, say

TONIGHT, BEFORE = "#476fdb", "#b9c0ca"
LINES = (
    ("unseen_title", "titles never seen", "#476fdb", "solid"),
    ("unseen_show", "franchises never seen", "#f88e03", "dash"),
    ("next_period", "what comes next", "#3dbaa9", "dot"),
)


@dataclass(frozen=True)
class Night:
    """What is drawn of one night.

    Attributes:
        at: When it was scored.
        losses: Mean loss of each epoch.
        precision: Protocol to precision@10, title only; a protocol without titles is left out.
    """

    at: datetime
    losses: Sequence[float]
    precision: Mapping[str, float]


def plot_nights(nights: Sequence[Night]) -> go.Figure:
    """Left: the loss over epochs, a line a night, tonight's on top. Right: precision@10 from night to night.

    Args:
        nights: Oldest first; tonight is the last.
    """
    figure = make_subplots(rows=1, cols=2, subplot_titles=("Loss over epochs", "Precision@10, title only"))
    figure.update_layout(make_figure("Learning curves across nights", height=440).layout)
    for number, night in enumerate(nights):
        last = number == len(nights) - 1
        figure.add_scatter(
            x=list(range(1, len(night.losses) + 1)), y=list(night.losses), mode="lines", name=f"{night.at:%Y-%m-%d %H:%M}", showlegend=False,
            line={"color": TONIGHT if last else BEFORE, "width": 3 if last else 1.5}, hovertemplate="%{fullData.name}, epoch %{x}: %{y:.4f}<extra></extra>", row=1, col=1,
        )  # fmt: skip
    for protocol, name, colour, dash in LINES:
        scored = [(night.at, night.precision[protocol]) for night in nights if protocol in night.precision]
        if scored:
            figure.add_scatter(
                x=[f"{at:%Y-%m-%d %H:%M}" for at, _ in scored], y=[value for _, value in scored], mode="lines+markers", name=name, line={"color": colour, "dash": dash},
                hovertemplate=f"{name}: %{{y:.3f}}, %{{x}}<extra></extra>", row=1, col=2,
            )  # fmt: skip
    figure.update_layout(showlegend=True, legend={"orientation": "h", "y": -0.28, "x": 1, "xanchor": "right"})
    figure.update_xaxes(gridcolor=GRID, zeroline=False)
    figure.update_yaxes(gridcolor=GRID, zeroline=False)
    figure.update_xaxes(title="epoch", row=1, col=1)
    figure.update_xaxes(title="night (UTC)", type="category", row=1, col=2)
    return figure if nights else say(figure, "No night is known.")
