"""Plots a search over optimizers: scores of each round, and the optimizers of the best trainings so far.

These trainings are the winners of the round (``space.Round``).
"""

from collections.abc import Sequence

import plotly.graph_objects as go

from tasks.plotting import BLUE, GREY
from tasks.train.tuning.plot import PALETTE, make_subplot_figure
from tasks.train.tuning.space import Round


def plot_rounds(rounds: Sequence[Round], title: str) -> go.Figure:
    """Draws the best and mean score of each round as lines; below, the optimizers of its winners as bars."""
    figure = make_subplot_figure(title, 640, rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.06)
    round_numbers = list(range(1, len(rounds) + 1))
    best_scores = [search_round.winners[0][1] for search_round in rounds]
    scores = [[trial.score for trial in search_round.trials] for search_round in rounds]
    mean_scores = [sum(round_scores) / len(round_scores) for round_scores in scores]
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
