"""Plots of the clusters: their sizes, what categories they hold, and how far neighbours are (where eps comes from)."""

from __future__ import annotations

import html

import numpy as np
import plotly.graph_objects as go

from tasks.cluster.partition import Density
from tasks.publish.figure import make_figure, say
from tasks.publish.map import MapContent

MOST = 25  # clusters and categories of the heat map
SAMPLES = 5  # DBSCAN's min_samples as it comes: where another strategy made the clusters
POINTS = 500  # of a curve
BLUE, RED = "#476fdb", "#c8443c"


def plot_cluster_sizes(content: MapContent) -> go.Figure:
    """Titles of each cluster, largest first, both axes by powers of ten; the share in none is said."""
    sizes = np.sort(np.bincount(content.clusters[content.clusters >= 0]))[::-1]
    sizes = sizes[sizes > 0]
    figure = make_figure("Sizes of the clusters", height=380)
    noise = float((content.clusters < 0).mean()) if len(content.clusters) else 0.0
    about = "number %{x}: %{y} titles<extra></extra>"
    figure.add_scatter(x=np.arange(1, len(sizes) + 1).tolist(), y=sizes.tolist(), mode="lines+markers", line={"color": BLUE}, hovertemplate=about)
    figure.update_xaxes(title=f"cluster by size ({len(sizes)} clusters; {noise:.1%} of the titles in none)", type="log")
    figure.update_yaxes(title="titles", type="log")
    return figure if len(sizes) else say(figure, "There is no cluster.")


def plot_clusters_by_category(content: MapContent) -> go.Figure:
    """Share of the largest clusters' titles that hold each of the commonest categories."""
    held: dict[str, list[int]] = {}
    for row, names in enumerate(content.categories):
        for name in names:
            held.setdefault(name, []).append(row)
    shown = sorted(held, key=lambda name: (-len(held[name]), name))[:MOST]
    sizes = np.bincount(content.clusters[content.clusters >= 0], minlength=len(content.cluster_names))
    largest = [int(number) for number in np.argsort(-sizes, kind="stable")[:MOST] if sizes[number]]
    shares = [[float((content.clusters[held[name]] == number).sum() / sizes[number]) for name in shown] for number in largest]
    figure = make_figure("Categories of the largest clusters", height=200 + 22 * len(largest))
    if not shown or not largest:
        return say(figure, "There is no cluster with a category.")
    figure.add_heatmap(
        x=[html.escape(name) for name in shown], y=[html.escape(content.cluster_names[number]) for number in largest], z=shares, zmin=0, zmax=1,
        colorscale=[[0, "#f7f8fa"], [1, BLUE]], colorbar={"tickformat": ".0%"}, hovertemplate="%{y}: %{z:.0%} are %{x}<extra></extra>",
    )  # fmt: skip
    figure.update_yaxes(autorange="reversed", automargin=True)
    figure.update_xaxes(tickangle=-45, automargin=True)
    return figure


def plot_k_distances(content: MapContent, density: Density | None = None) -> go.Figure:
    """Cosine distance of each title to its k-th nearest, ascending: flat inside groups, steep for titles on their own.

    Args:
        content: Its titles' neighbours are read.
        density: What DBSCAN took for near: k is its min_samples less the title itself, and eps is drawn. None draws the curve
            from which DBSCAN would take eps as it comes.
    """
    samples = density.min_samples if density else SAMPLES
    k = max(samples - 1, 1)
    figure = make_figure(f"Distance to the {k}th nearest title" if k > 3 else f"Distance to the {('first', 'second', 'third')[k - 1]} nearest title", height=380)
    found = content.neighbours[:, k - 1] >= 0 if content.neighbours.shape[1] >= k else np.zeros(len(content.titles), dtype=bool)
    if not found.any():
        return say(figure, f"No title has {k} neighbours.")
    curve = np.sort(1 - content.cosines[found, k - 1].astype(np.float64))
    places = np.unique(np.linspace(0, len(curve) - 1, POINTS).astype(int))
    figure.add_scatter(
        x=(places / max(len(curve) - 1, 1)).tolist(), y=np.round(curve[places], 4).tolist(), mode="lines", line={"color": BLUE, "width": 2.5},
        hovertemplate="%{x:.0%} of the titles: %{y:.3f}<extra></extra>",
    )  # fmt: skip
    if density:
        figure.add_hline(y=density.eps, line={"color": RED, "width": 1.5, "dash": "dash"}, annotation_text=f"eps {density.eps:.4g}", annotation_position="top left")
    figure.update_xaxes(title=f"share of the titles (DBSCAN with min_samples {samples} takes its eps from this curve)", tickformat=".0%")
    figure.update_yaxes(title="cosine distance", rangemode="tozero")
    return figure
