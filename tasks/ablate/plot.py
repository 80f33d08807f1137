"""Draws a forest plot: the effect of each block with its 95 % interval."""

from collections.abc import Sequence

import plotly.graph_objects as go

from tasks.ablate.effects import AGREEMENT, CELLS, OVERALL, Effect
from tasks.ablate.report import FORM_NAMES
from tasks.plotting import BLUE, GREY, INK, RED, make_figure
from tasks.scoring.protocols import PROTOCOLS

COLOURS = {True: BLUE, False: RED, None: GREY}
ROW_PIXELS = 26  # height of a row


def plot_effects(effects: Sequence[Effect]) -> go.Figure:
    """Draws the effects in the given order, one row per block, with a menu to select the held-out set."""
    title = "Effect of each block: quality with the block minus quality without it"
    figure = make_figure(title, height=160 + ROW_PIXELS * len(effects), yaxis={"automargin": True})
    keys = [OVERALL, *(key for key in CELLS if any(key in effect.figures for effect in effects))]
    for key in keys:
        shown_effects = [effect for effect in effects if key in effect.figures or AGREEMENT in effect.figures]
        figures = [effect.figures[key if key in effect.figures else AGREEMENT] for effect in shown_effects]
        intervals = [estimate.interval for estimate in figures]
        margins = [estimate.margin for estimate in figures]
        signs = [True if low > 0 else False if high < 0 else None for low, high in intervals]
        figure.add_scatter(
            x=[estimate.value for estimate in figures],
            y=[effect.block.name for effect in shown_effects],
            error_x={"type": "data", "array": margins, "color": GREY, "thickness": 2},
            mode="markers",
            marker={"size": 9, "color": [COLOURS[sign] for sign in signs]},
            hovertemplate="%{y}: %{x:.4f} ± %{error_x.array:.4f}<extra></extra>",
            visible=key == OVERALL,
        )
    names = [
        "All held-out titles",
        *(f"{PROTOCOLS[protocol]}, {FORM_NAMES[form]}" for form, protocol in keys[1:]),
    ]
    buttons = [
        {"label": name, "method": "restyle", "args": [{"visible": [key == other_key for other_key in keys]}]}
        for name, key in zip(names, keys, strict=True)
    ]
    corner = {"x": 1, "xanchor": "right", "y": 1.02, "yanchor": "bottom"}
    figure.add_vline(x=0, line={"color": INK, "width": 1})
    figure.update_yaxes(autorange="reversed")
    return figure.update_layout(updatemenus=[{"buttons": buttons, **corner}])
