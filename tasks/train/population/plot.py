"""The plot of a search: which rule won when, below the best and the mean score of each round."""

from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from tasks.plotting import BLUE, GREY, GRID, make_figure
from tasks.train.tuning.plot import PALETTE
from tasks.train.tuning.space import Round


def plot_rounds(rounds: Sequence[Round], title: str) -> go.Figure:
    """Lines of the scores over bars of the winners by rule; one bar a round."""
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.06, row_heights=[0.5, 0.5])
    look = make_figure(title, height=640).layout.to_plotly_json()
    figure.update_layout({name: value for name, value in look.items() if name not in ("xaxis", "yaxis")})
    figure.update_xaxes(gridcolor=GRID, zeroline=False)
    figure.update_yaxes(gridcolor=GRID, zeroline=False)
    numbers = list(range(1, len(rounds) + 1))
    best = [found.winners[0][1] for found in rounds]
    means = [sum(trial.score for trial in found.trials) / len(found.trials) for found in rounds]
    for name, values, colour in (("best", best, BLUE), ("mean of those trained", means, GREY)):
        line = {"color": colour, "width": 2}
        figure.add_scatter(x=numbers, y=values, name=name, mode="lines+markers", line=line, row=1, col=1)
    rules = sorted({rule for found in rounds for rule, _ in found.winners})
    for place, rule in enumerate(rules):
        counts = [sum(name == rule for name, _ in found.winners) for found in rounds]
        colour = PALETTE[place % len(PALETTE)]
        figure.add_bar(x=numbers, y=counts, name=rule, marker={"color": colour}, row=2, col=1)
    figure.update_yaxes(title_text="tuning score", row=1, col=1)
    figure.update_yaxes(title_text="winners by rule", row=2, col=1)
    figure.update_xaxes(title_text="generation", row=2, col=1)
    return figure.update_layout(barmode="stack", showlegend=True)
