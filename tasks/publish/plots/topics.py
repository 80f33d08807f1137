"""Draws a table of the topics that training used (tasks/train/objectives/positives.py)."""

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from tasks.plotting import make_figure


def plot_topics(topics: Sequence[Mapping[str, Any]]) -> go.Figure:
    """Draws a table with the number of training titles, the words and example titles of each topic."""
    columns = {
        "topic": [topic["topic"] for topic in topics],
        "training titles": [topic["titles"] for topic in topics],
        "words": [", ".join(topic["words"]) for topic in topics],
        "examples": ["; ".join(topic["examples"]) for topic in topics],
    }
    figure = make_figure("Topics used in training", 480)
    cells = {"values": list(columns.values()), "align": "left"}
    figure.add_table(header={"values": list(columns), "align": "left"}, cells=cells, columnwidth=[1, 1, 5, 8])
    return figure
