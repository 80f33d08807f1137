"""Draws a forest plot of an ablation: the effect of each block with its 95 % interval."""

from collections.abc import Sequence

import plotly.graph_objects as go

from tasks.ablate.effects import AGREEMENT, CELLS, OVERALL, Effect
from tasks.ablate.report import FORM_NAMES
from tasks.plotting import BLUE, GREY, INK, RED, make_figure
from tasks.scoring.protocols import PROTOCOLS

COLOUR_OF_SIGN = {True: BLUE, False: RED, None: GREY}
ROW_PIXELS = 26  # height of a row


def plot_effects(effects: Sequence[Effect]) -> go.Figure:
    """Draws effects in the given order, one row per block, with a menu to select a held-out set."""
    title = "Effect of each block: quality with the block minus quality without the block"
    figure = make_figure(title, height=160 + ROW_PIXELS * len(effects), yaxis={"automargin": True})
    cells = [OVERALL, *(cell for cell in CELLS if any(cell in effect.figures for effect in effects))]
    for cell in cells:
        estimates = {  # by name of the block
            effect.block.name: effect.figures[cell if cell in effect.figures else AGREEMENT]
            for effect in effects
            if cell in effect.figures or AGREEMENT in effect.figures
        }
        margins = [estimate.margin for estimate in estimates.values()]
        colours = [COLOUR_OF_SIGN[estimate.sign] for estimate in estimates.values()]
        figure.add_scatter(
            x=[estimate.value for estimate in estimates.values()],
            y=list(estimates),
            error_x={"type": "data", "array": margins, "color": GREY, "thickness": 2},
            mode="markers",
            marker={"size": 9, "color": colours},
            hovertemplate="%{y}: %{x:.4f} ± %{error_x.array:.4f}<extra></extra>",
            visible=cell == OVERALL,
        )
    labels = [
        "All held-out titles",
        *(f"{PROTOCOLS[protocol]}, {FORM_NAMES[form]}" for form, protocol in cells[1:]),
    ]
    buttons = [
        {"label": label, "method": "restyle", "args": [{"visible": [cell == shown for cell in cells]}]}
        for label, shown in zip(labels, cells, strict=True)
    ]
    corner = {"x": 1, "xanchor": "right", "y": 1.02, "yanchor": "bottom"}
    figure.add_vline(x=0, line={"color": INK, "width": 1})
    figure.update_yaxes(autorange="reversed")
    return figure.update_layout(updatemenus=[{"buttons": buttons, **corner}])
