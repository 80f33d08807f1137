"""The plot of a contest: loss and score of each rule's best course, against steps and against seconds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from tasks.contest.standing import Standing
from tasks.publish.figure import GRID, make_figure

PALETTE = (
    "#476fdb", "#f88e03", "#3dbaa9", "#d6453d", "#8e5bd0", "#7a5c3e", "#e377a8", "#5b6472",
    "#a3b300", "#00a6d6", "#1f3d7a", "#b35c00", "#1d7a6c", "#8a1f1a", "#b79be6", "#14181f",
)  # fmt: skip
PANELS = (("loss", "step"), ("loss", "seconds"), ("score", "step"), ("score", "seconds"))


def plot_contest(table: Sequence[Standing]) -> go.Figure:
    """Four panels; a menu chooses the size, the legend who is shown.

    Args:
        table: Standings of all sizes.
    """
    sizes, names = sorted({standing.course.size for standing in table}), sorted({standing.course.name for standing in table})
    figure = make_subplots(rows=2, cols=2, shared_yaxes=True, horizontal_spacing=0.04, vertical_spacing=0.1)
    look = make_figure("Rules side by side", height=820).layout.to_plotly_json()
    figure.update_layout({name: value for name, value in look.items() if name not in ("xaxis", "yaxis")})  # the panels' places stay
    figure.update_xaxes(gridcolor=GRID, zeroline=False)
    figure.update_yaxes(gridcolor=GRID, zeroline=False)
    size_of = []
    for standing in table:
        course = standing.course
        for number, (measure, along) in enumerate(PANELS):
            figure.add_scatter(
                x=[getattr(mark, along) for mark in course.marks], y=[getattr(mark, measure) for mark in course.marks], mode="lines+markers",
                name=f"{course.name} ({course.rate:.3g})", legendgroup=course.name, showlegend=number == 0, visible=course.size == sizes[-1],
                line={"color": PALETTE[names.index(course.name) % len(PALETTE)], "width": 2}, marker={"size": 5},
                hovertemplate=f"{course.name}: %{{y:.4f}} at {along} %{{x:.4g}}<extra></extra>",
                row=number // 2 + 1, col=number % 2 + 1,
            )  # fmt: skip
            size_of.append(course.size)
    buttons = [{"label": f"{size} dimensions", "method": "restyle", "args": [{"visible": [own == size for own in size_of]}]} for size in sizes]
    figure.update_layout(showlegend=True, updatemenus=[{"buttons": buttons, "active": len(sizes) - 1, "x": 1, "xanchor": "right", "y": 1.08, "yanchor": "bottom"}])
    for number, (measure, along) in enumerate(PANELS):
        figure.update_xaxes(title_text="steps" if along == "step" else "seconds of training", row=number // 2 + 1, col=number % 2 + 1)
        if number % 2 == 0:
            figure.update_yaxes(title_text="mean loss" if measure == "loss" else "score on titles set aside", row=number // 2 + 1, col=1)
    return figure


def write_plot(table: Sequence[Standing], file: Path) -> None:
    """Writes the plot as one page that opens offline."""
    plot_contest(table).write_html(file, include_plotlyjs=True, div_id="contest")
