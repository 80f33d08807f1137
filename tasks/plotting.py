"""Makes Plotly figures in the common style of all plots."""

from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go

INK, MUTED, GRID = "#14181f", "#5b6472", "#e2e5ea"  # colours of text, secondary text and grid lines
BLUE, ORANGE, GREEN, RED, GREY = "#476fdb", "#f88e03", "#3dbaa9", "#c8443c", "#b9c0ca"
FONT = 'Inter, system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", Arial, sans-serif'
# Position of a legend above the figure, as an argument of ``make_figure``.
LEGEND_ABOVE = {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 1, "xanchor": "right"}
Layout = Mapping[str, Any] | None


def make_figure(
    title: str, height: int, xaxis: Layout = None, yaxis: Layout = None, legend: Layout = None
) -> go.Figure:
    """Makes an empty figure with the common font and colours.

    Args:
        title: Heading of the figure.
        height: Height in pixels.
        xaxis, yaxis, legend: Options of Plotly's layout. If ``legend`` is None, no legend is shown.
    """
    grid, white = {"gridcolor": GRID, "zeroline": False}, "#ffffff"
    heading = {"text": title, "x": 0, "xref": "paper", "font": {"size": 18}}
    figure = go.Figure(layout={"title": heading, "height": height, "showlegend": legend is not None})
    figure.update_layout(font={"family": FONT, "color": INK, "size": 13}, legend=legend)
    figure.update_layout(paper_bgcolor=white, plot_bgcolor=white, margin={"l": 64, "r": 24, "t": 64, "b": 56})
    return figure.update_layout(xaxis={**grid, **(xaxis or {})}, yaxis={**grid, **(yaxis or {})})


def show_message(figure: go.Figure, text: str) -> go.Figure:
    """Shows ``text`` instead of the axes in a figure that has no data. Returns the figure."""
    font, centre = {"size": 15, "color": MUTED}, {"xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5}
    figure.add_annotation(text=text, showarrow=False, font=font, **centre)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    return figure
