"""Plots comparisons of optimizers, and the rounds of a search over optimizers."""

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from tasks.plotting import BLUE, GREY, GRID, make_figure
from tasks.train.tuning.ranking import Ranking
from tasks.train.tuning.space import Round

_COLOURS = "476fdb f88e03 3dbaa9 d6453d 8e5bd0 7a5c3e e377a8 5b6472 a3b300 00a6d6 1f3d7a b35c00 1d7a6c 8a1f1a"
PALETTE = [f"#{colour}" for colour in f"{_COLOURS} b79be6 14181f".split()]
PANELS = (("loss", "step"), ("loss", "seconds"), ("score", "step"), ("score", "seconds"))
AXIS_TITLES = {"step": "steps", "seconds": "training seconds", "loss": "mean loss", "score": "tuning score"}


def make_subplot_figure(title: str, height: int, **subplots: Any) -> go.Figure:
    """Returns a figure in the style of our plots, with subplots according to arguments of make_subplots."""
    figure, layout = make_subplots(**subplots), make_figure(title, height=height).layout.to_plotly_json()
    figure.update_layout({name: value for name, value in layout.items() if name not in ("xaxis", "yaxis")})
    figure.update_xaxes(gridcolor=GRID, zeroline=False)
    return figure.update_yaxes(gridcolor=GRID, zeroline=False)


def plot_ranking(rankings: Sequence[Ranking]) -> go.Figure:
    """Draws loss and tuning score of each run over steps and over seconds. A menu selects the vector size."""
    runs = [ranking.run for ranking in rankings]
    sizes, names = sorted({run.size for run in runs}), sorted({run.name for run in runs})
    spacing = {"horizontal_spacing": 0.04, "vertical_spacing": 0.1}
    figure = make_subplot_figure(
        "Comparison of optimizers", 820, rows=2, cols=2, shared_yaxes=True, **spacing
    )
    for panel_number, (measure, axis) in enumerate(PANELS):
        panel: dict[str, Any] = {"row": panel_number // 2 + 1, "col": panel_number % 2 + 1}
        figure.update_xaxes(title_text=AXIS_TITLES[axis], **panel)
        figure.update_yaxes(title_text=None if panel_number % 2 else AXIS_TITLES[measure], **panel)
        for run in runs:
            x, y = ([getattr(epoch, key) for epoch in run.marks] for key in (axis, measure))
            line = {"color": PALETTE[names.index(run.name) % len(PALETTE)], "width": 2}
            style = {"mode": "lines+markers", "marker": {"size": 5}, "line": line}
            legend: dict[str, Any] = {"name": f"{run.name} ({run.rate:.3g})", "legendgroup": run.name}
            legend["showlegend"] = panel_number == 0
            style["hovertemplate"] = f"{run.name}: %{{y:.4f}} at {axis} %{{x:.4g}}<extra></extra>"
            figure.add_scatter(x=x, y=y, visible=run.size == sizes[-1], **style, **legend, **panel)
    visibility = {size: [{"visible": [run.size == size for run in runs] * len(PANELS)}] for size in sizes}
    buttons = [
        {"label": f"{size} dimensions", "method": "restyle", "args": visibility[size]} for size in sizes
    ]
    menu_position = {"x": 1, "xanchor": "right", "y": 1.08, "yanchor": "bottom"}
    menu = {"buttons": buttons, "active": len(sizes) - 1, **menu_position}
    return figure.update_layout(showlegend=True, updatemenus=[menu])


def plot_rounds(rounds: Sequence[Round], title: str) -> go.Figure:
    """Draws the best and mean score of each round as lines; below, the optimizers of its winners as bars."""
    figure = make_subplot_figure(title, 640, rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.06)
    round_numbers = list(range(1, len(rounds) + 1))
    best_scores = [search_round.winners[0][1] for search_round in rounds]
    mean_scores = [search_round.mean_score for search_round in rounds]
    for name, values, colour in (("best", best_scores, BLUE), ("mean of trained members", mean_scores, GREY)):
        style = {"mode": "lines+markers", "line": {"color": colour, "width": 2}}
        figure.add_scatter(x=round_numbers, y=values, name=name, **style, row=1, col=1)
    optimizers = sorted({optimizer for search_round in rounds for optimizer, _ in search_round.winners})
    for index, optimizer in enumerate(optimizers):
        win_counts = [sum(name == optimizer for name, _ in search_round.winners) for search_round in rounds]
        colour = PALETTE[index % len(PALETTE)]
        figure.add_bar(x=round_numbers, y=win_counts, name=optimizer, marker={"color": colour}, row=2, col=1)
    figure.update_yaxes(title_text="tuning score", row=1, col=1)
    figure.update_yaxes(title_text="winners by optimizer", row=2, col=1)
    figure.update_xaxes(title_text="generation", row=2, col=1)
    return figure.update_layout(barmode="stack", showlegend=True)
