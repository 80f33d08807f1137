"""The slots of the rare-event memory (tasks/train/objectives/rare_memory.py)."""

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from tasks.plotting import BLUE, make_figure, say

MOST = 40  # labels


def plot_memory(labels: Sequence[Mapping[str, Any]]) -> go.Figure:
    """Ages of the slots of each label, as boxes, in the order given; beside each name its slots, and how many
    of them no title has hit.
    """
    shown = labels[:MOST]
    names = [f"{one['label']} · {one['slots']} ({one['never_hit']} never hit)" for one in shown]
    title = (
        f"Slots of the memory by age and label{f', {MOST} labels of {len(labels)}' * (len(labels) > MOST)}"
    )
    along = {"title": "age: titles written since the slot was"}
    down = {"autorange": "reversed", "automargin": True}
    figure = make_figure(title, 160 + 22 * max(len(shown), 4), along, down)
    if not shown:
        return say(figure, "No slot is taken.")
    ages = zip(*(one["ages"] for one in shown), strict=True)
    quartiles = dict(zip(("lowerfence", "q1", "median", "q3", "upperfence"), map(list, ages), strict=True))
    figure.add_box(y=names, orientation="h", marker={"color": BLUE}, **quartiles)
    return figure
