"""Plots the slots of the memory of rare events (tasks/train/objectives/rare_memory.py)."""

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from tasks.plotting import BLUE, make_figure, show_message

MAX_LABELS = 40  # maximum number of plotted labels


def plot_memory(labels: Sequence[Mapping[str, Any]]) -> go.Figure:
    """Draws a box plot of the ages of the memory slots of each label (category of titles).

    The entries of ``labels`` have the keys label, slots (number of slots), never_hit (number of slots that no
    query retrieved) and ages (minimum, quartiles and maximum).
    """
    plotted = labels[:MAX_LABELS]
    names = [f"{label['label']} · {label['slots']} ({label['never_hit']} never hit)" for label in plotted]
    title = "Memory slots by age and label"
    if len(labels) > MAX_LABELS:
        title += f", {MAX_LABELS} labels of {len(labels)}"
    xaxis = {"title": "age: titles written after the slot"}
    yaxis = {"autorange": "reversed", "automargin": True}
    figure = make_figure(title, 160 + 22 * max(len(plotted), 4), xaxis, yaxis)
    if not plotted:
        return show_message(figure, "The memory has no used slot.")
    ages = zip(*(label["ages"] for label in plotted), strict=True)
    quartiles = dict(zip(("lowerfence", "q1", "median", "q3", "upperfence"), map(list, ages), strict=True))
    figure.add_box(y=names, orientation="h", marker={"color": BLUE}, **quartiles)
    return figure
