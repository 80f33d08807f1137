"""Plots of a run with plotly: the loss over epochs, the accuracy of each category, what a sample of titles is near to.

Written as plots.html, one page in which all figures share one embedded plotly.js (4.5 MB: a page each would be three
times that), so that it opens offline and in MLflow's artifact view; and as plots/NAME.json, the figures alone, a few
kilobytes each, for whoever wants to draw them again (``plotly.io.read_json``). The same figures give the same bytes:
plotly's random element ids are replaced by the names.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import plotly.graph_objects as go

from tasks.publish.figure import FONT, GRID, INK, MUTED, make_figure, say
from tasks.publish.map import MapContent

COLOURS = ("#476fdb", "#f88e03", "#3dbaa9")
PROTOCOLS = {"unseen_title": "titles never seen", "unseen_show": "franchises never seen", "next_period": "what comes next in time"}
MOST_CATEGORIES = 25
ROW_PIXELS = 26
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">
<title>Plots · GuideSpace</title>
<style>body {{ margin: 24px auto; max-width: 1100px; padding: 0 16px; font-family: {font}; background: #fff; }} section {{ margin-bottom: 32px; }}</style>
</head><body>
{figures}
</body></html>
"""


def plot_loss(history: Sequence[Mapping[str, float]]) -> go.Figure:
    """The mean loss of each epoch.

    Args:
        history: Metrics of each epoch, the first being epoch 1; "loss" among them.
    """
    losses = [epoch["loss"] for epoch in history]
    figure = make_figure("Loss over epochs", height=380)
    figure.add_scatter(
        x=list(range(1, len(losses) + 1)), y=losses, mode="lines+markers", line={"color": COLOURS[0], "width": 2.5}, marker={"size": 7},
        hovertemplate="epoch %{x}: %{y:.4f}<extra></extra>",
    )  # fmt: skip
    figure.update_xaxes(title="epoch", dtick=max(1, len(losses) // 12))
    figure.update_yaxes(title="mean loss", rangemode="tozero")
    return figure if losses else say(figure, "No epoch was trained.")


def plot_category_accuracy(labels: Sequence[Sequence[str]], correct: Sequence[bool], protocols: Sequence[str]) -> go.Figure:
    """For each category, the share of its held-out titles whose predicted category is one of theirs.

    A prediction is right if it names any of the title's categories, and then counts as right for each of them. Categories
    with the most titles come first, at most 25; each bar says of how many titles.

    Args:
        labels: Categories of each held-out title.
        correct: Whether the predicted one is among them.
        protocols: Held-out set of each title: a bar each; all but the first one present start hidden.
    """
    found: dict[tuple[str, str], list[bool]] = {}
    sizes: dict[str, int] = {}
    for names, right, protocol in zip(labels, correct, protocols, strict=True):
        for name in names:
            found.setdefault((protocol, name), []).append(bool(right))
            sizes[name] = sizes.get(name, 0) + 1
    shown = sorted(sizes, key=lambda name: (-sizes[name], name))[:MOST_CATEGORIES]
    figure = make_figure("Right category, by category", height=130 + ROW_PIXELS * len(shown))
    present = [protocol for protocol in PROTOCOLS if any((protocol, name) in found for name in shown)]
    for order, protocol in enumerate(present):
        answers = {name: found.get((protocol, name), []) for name in shown}
        named = [name for name in shown if answers[name]]
        shares = [float(np.mean(answers[name])) for name in named]
        figure.add_bar(
            x=shares, y=[html.escape(name) for name in named], orientation="h", name=PROTOCOLS[protocol], marker={"color": COLOURS[order]},
            text=[f"{share:.0%} of {len(answers[name]):,}" for share, name in zip(shares, named, strict=True)], textposition="outside", cliponaxis=False,
            visible=True if order == 0 else "legendonly", hovertemplate="%{y}: %{text}<extra></extra>",
        )  # fmt: skip
    figure.update_layout(showlegend=True, legend={"orientation": "h", "y": 1, "yanchor": "bottom", "x": 1, "xanchor": "right"}, bargap=0.3)
    figure.update_xaxes(range=[0, 1.12], tickformat=".0%", tickvals=[0, 0.25, 0.5, 0.75, 1])
    figure.update_yaxes(categoryorder="array", categoryarray=[html.escape(name) for name in reversed(shown)], automargin=True, showgrid=False)
    return figure if shown else say(figure, "No held-out title has a category.")


def plot_neighbours(content: MapContent, sample: int = 15, nearest: int = 5) -> go.Figure:
    """A table of titles and what is nearest to them, with cosines.

    The sample is the most aired title of each of the largest clusters, so that it shows the breadth of the guide, then
    the most aired ones of the rest.

    Args:
        content: What the map shows.
        sample: Rows.
        nearest: Neighbours a row.
    """
    rows = _sample(content, sample)
    nearest = min(nearest, content.neighbours.shape[1])
    columns = [[f"<b>{html.escape(content.titles[i])}</b>" for i in rows]]
    for rank in range(nearest):
        near = [(int(content.neighbours[i, rank]), float(content.cosines[i, rank])) for i in rows]
        columns.append([f"{html.escape(content.titles[j])} <i>{cosine:.2f}</i>" if j >= 0 else "–" for j, cosine in near])
    figure = make_figure("Nearest titles, a sample", height=140 + 2 * ROW_PIXELS * len(rows))
    look = {"align": "left", "line": {"color": GRID}}
    figure.add_table(
        header={**look, "values": ["title", *(f"nearest {rank + 1}" for rank in range(nearest))], "fill": {"color": "#f0f2f6"}, "font": {"color": MUTED, "size": 12}},
        cells={**look, "values": columns, "fill": {"color": "#ffffff"}, "font": {"color": INK, "size": 12}, "height": ROW_PIXELS},
    )
    figure.update_layout(margin={"l": 8, "r": 8, "t": 56, "b": 8})
    return figure if rows else say(figure, "There is no title.")


def write_plots(folder: Path, figures: Mapping[str, go.Figure]) -> list[Path]:
    """Writes plots.html and plots/NAME.json; returns the files written."""
    (folder / "plots").mkdir(exist_ok=True)
    written = [folder / "plots.html"]
    written[0].write_text(render_plots(figures), encoding="utf-8")
    for name, figure in figures.items():
        written.append(folder / "plots" / f"{name}.json")
        written[-1].write_text(str(figure.to_json()), encoding="utf-8")
    return written


def render_plots(figures: Mapping[str, go.Figure]) -> str:
    """One HTML page of several figures; only the first carries plotly.js."""
    parts = [
        f"<section>{figure.to_html(full_html=False, include_plotlyjs=position == 0, div_id=name, config={'displaylogo': False, 'responsive': True})}</section>"
        for position, (name, figure) in enumerate(figures.items())
    ]
    return PAGE.format(font=FONT.replace('"', "'"), figures="\n".join(parts))


def _sample(content: MapContent, sample: int) -> list[int]:
    """Titles to show: the most aired of each cluster, largest clusters first, then the most aired of the rest."""
    order = np.argsort(-np.asarray(content.airings), kind="stable") if len(content.titles) else np.zeros(0, dtype=int)
    sizes = np.bincount(content.clusters[content.clusters >= 0], minlength=len(content.cluster_names))
    firsts: dict[int, int] = {}
    for i in order:
        firsts.setdefault(int(content.clusters[i]), int(i))
    chosen = [firsts[cluster] for cluster in np.argsort(-sizes, kind="stable") if int(cluster) in firsts]
    taken = set(chosen)
    return [*chosen, *(int(i) for i in order if int(i) not in taken)][:sample]
