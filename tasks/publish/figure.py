"""An empty figure in the look that all plots share."""

from __future__ import annotations

import plotly.graph_objects as go

INK, MUTED, GRID = "#14181f", "#5b6472", "#e2e5ea"
FONT = 'Inter, system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", Arial, sans-serif'


def make_figure(title: str, height: int) -> go.Figure:
    """A figure with a title, in the plots' font and colours."""
    figure = go.Figure()
    figure.update_layout(
        title={"text": title, "x": 0, "xref": "paper", "font": {"size": 18}}, font={"family": FONT, "color": INK, "size": 13}, height=height,
        paper_bgcolor="#ffffff", plot_bgcolor="#ffffff", margin={"l": 64, "r": 24, "t": 64, "b": 56}, showlegend=False,
    )  # fmt: skip
    figure.update_xaxes(gridcolor=GRID, zeroline=False)
    figure.update_yaxes(gridcolor=GRID, zeroline=False)
    return figure


def say(figure: go.Figure, text: str) -> go.Figure:
    """Puts a sentence where there is nothing to draw."""
    figure.add_annotation(text=text, showarrow=False, xref="paper", yref="paper", x=0.5, y=0.5, font={"size": 15, "color": MUTED})
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    return figure
