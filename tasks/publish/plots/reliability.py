"""Draws the reliability plot: the share of correct predictions among predictions with similar confidence."""

import numpy as np
import plotly.graph_objects as go

from storage.shapes import Float
from tasks.plotting import BLUE, LEGEND_ABOVE, MUTED, ORANGE, make_figure, show_message
from tasks.scoring.confidence import HeldOutPredictions, reliability

TARGETS = np.arange(0.5, 0.99, 0.05)  # target precisions


def plot_reliability(confidence: Float[np.ndarray, " titles"], held_out: HeldOutPredictions) -> go.Figure:
    """Draws the accuracy by confidence, and the precision and coverage by target precision.

    Args:
        confidence: Cross-fitted confidence in the prediction for each held-out title, from 0 to 1
            (tasks/scoring/confidence.py).
        held_out: Predictions for the same titles.
    """
    correct = held_out.correct
    xaxis = {"title": "confidence or target precision", "range": [0, 1.02]}
    yaxis = {"title": "share of held-out titles", "range": [0, 1.02]}
    figure = make_figure("Confidence in predicted categories", 440, xaxis, yaxis, LEGEND_ABOVE)
    if not len(correct):
        return show_message(figure, "Too few held-out titles have a category for calibration.")
    figure.add_scatter(x=[0, 1], y=[0, 1], mode="lines", line={"color": MUTED, "dash": "dot"}, name="ideal")
    means, shares, counts = zip(*reliability(confidence, correct), strict=True)
    figure.add_scatter(
        x=means,
        y=shares,
        mode="lines+markers",
        name="correct",
        marker={"color": BLUE},
        text=[f"{share:.2f} of {count:,} titles" for share, count in zip(shares, counts, strict=True)],
        hovertemplate="confidence %{x:.2f}: %{text} are correct<extra></extra>",
    )
    selections = {float(target): held_out.cross_selected(float(target)) for target in TARGETS}
    selections = {target: mask for target, mask in selections.items() if mask.any()}
    for values, name, dash, symbol in (
        ([float(correct[mask].mean()) for mask in selections.values()], "precision", "solid", "diamond"),
        ([float(mask.mean()) for mask in selections.values()], "coverage", "dash", "square"),
    ):
        figure.add_scatter(
            x=list(selections),
            y=values,
            mode="lines+markers",
            name=f"{name} at target precision x",
            line={"color": ORANGE, "dash": dash},
            marker={"symbol": symbol},
            hovertemplate=f"{name}: %{{y:.2f}}<extra></extra>",
        )
    return figure
