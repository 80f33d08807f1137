"""The reliability plot: are predictions of which .8 is said right in .8 of the cases?"""

import numpy as np
import plotly.graph_objects as go

from storage.shapes import Bool, Float
from tasks.plotting import ABOVE, BLUE, MUTED, ORANGE, make_figure, say
from tasks.scoring.confidence import choose_by_group, reliability

ASKED = np.arange(0.5, 0.99, 0.05)


def plot_reliability(
    confidence: Float[np.ndarray, " titles"],
    scores: Float[np.ndarray, " titles"],
    correct: Bool[np.ndarray, " titles"],
    languages: np.ndarray,
) -> go.Figure:
    """Confidence against the share that is right, in bins of equally many held-out titles; and, of the
    predictions that are kept where a precision is asked for, the precision reached and the coverage.

    Confidences are cross-fitted (tasks/scoring/confidence.py).
    """
    along = {"title": "confidence; precision asked for", "range": [0, 1.02]}
    up = {"title": "share of held-out titles", "range": [0, 1.02]}
    figure = make_figure("Confidence in predicted categories", 440, along, up, ABOVE)
    if not len(correct):
        return say(figure, "Too few held-out titles have a category to calibrate on.")
    figure.add_scatter(x=[0, 1], y=[0, 1], mode="lines", line={"color": MUTED, "dash": "dot"}, name="ideal")
    sure, right, count = zip(*reliability(confidence, correct), strict=True)
    about = [f"{share:.2f} of {number:,} titles" for share, number in zip(right, count, strict=True)]
    shown = {"text": about, "hovertemplate": "confidence %{x:.2f}: right %{text}<extra></extra>"}
    figure.add_scatter(x=sure, y=right, mode="lines+markers", name="right", marker={"color": BLUE}, **shown)
    chosen = [choose_by_group(confidence, scores, languages, asked) for asked in ASKED]
    asked = [float(value) for value, own in zip(ASKED, chosen, strict=True) if own.any()]
    reached = [float(correct[own].mean()) for own in chosen if own.any()]
    covered = [float(own.mean()) for own in chosen if own.any()]
    for values, name, dash, symbol in (
        (reached, "precision reached where x is asked for", "solid", "diamond"),
        (covered, "coverage where x is asked for", "dash", "square"),
    ):
        look = {"line": {"color": ORANGE, "dash": dash}, "marker": {"symbol": symbol}}
        hover = f"{name}: %{{y:.2f}}<extra></extra>"
        figure.add_scatter(x=asked, y=values, mode="lines+markers", name=name, hovertemplate=hover, **look)
    return figure
