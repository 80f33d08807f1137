"""Plots of what the map shows: clusters, their categories, neighbours and how far they are (for eps)."""

import html

import numpy as np
import plotly.graph_objects as go

from storage.formats.clustering import Density
from tasks.plotting import BLUE, GRID, INK, MUTED, RED, make_figure, say
from tasks.publish.map.page import MapContent

MOST = 25  # clusters and categories of the heat map
SAMPLES = 5  # DBSCAN's default min_samples: where another strategy made the clusters
POINTS = 500  # of a curve
ROW_PIXELS = 26


def plot_cluster_sizes(content: MapContent) -> go.Figure:
    """Titles of each cluster, largest first, both axes logarithmic; the axis gives the share in none."""
    sizes = np.sort(np.bincount(content.clusters[content.clusters >= 0]))[::-1]
    sizes = sizes[sizes > 0]
    noise = float((content.clusters < 0).mean()) if len(content.clusters) else 0.0
    along = f"cluster by size ({len(sizes)} clusters; {noise:.1%} of the titles in none)"
    axes = {"title": along, "type": "log"}, {"title": "titles", "type": "log"}
    figure = make_figure("Sizes of the clusters", 380, *axes)
    ranks, about = list(range(1, len(sizes) + 1)), "number %{x}: %{y} titles<extra></extra>"
    look = {"mode": "lines+markers", "line": {"color": BLUE}, "hovertemplate": about}
    figure.add_scatter(x=ranks, y=sizes.tolist(), **look)
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
    below, aside = {"tickangle": -45, "automargin": True}, {"autorange": "reversed", "automargin": True}
    figure = make_figure("Categories of the largest clusters", 200 + 22 * len(largest), below, aside)
    if not shown or not largest:
        return say(figure, "There is no cluster with a category.")
    of_category = [content.clusters[held[name]] for name in shown]
    counts = [np.bincount(own[own >= 0], minlength=len(sizes)) for own in of_category]
    scale, bar = [[0, "#f7f8fa"], [1, BLUE]], {"tickformat": ".0%"}
    look = {"zmin": 0, "zmax": 1, "colorscale": scale, "colorbar": bar}
    figure.add_heatmap(
        x=[html.escape(name) for name in shown],
        y=[html.escape(content.cluster_names[number]) for number in largest],
        z=(np.array(counts).T[largest] / sizes[largest, None]).tolist(),
        hovertemplate="%{y}: %{z:.0%} are %{x}<extra></extra>",
        **look,
    )
    return figure


def plot_k_distances(content: MapContent, density: Density | None = None) -> go.Figure:
    """Cosine distance of each title to its k-th nearest, ascending: flat inside clusters, then steep.

    k is DBSCAN's min_samples less the title itself, and its eps is drawn; without ``density`` the curve is
    that of its default.
    """
    samples = density.min_samples if density else SAMPLES
    k = max(samples - 1, 1)
    number = ("first", "second", "third")[k - 1] if k <= 3 else f"{k}th"
    along = f"share of the titles (DBSCAN with min_samples {samples} takes its eps from this curve)"
    axes = {"title": along, "tickformat": ".0%"}, {"title": "cosine distance", "rangemode": "tozero"}
    figure = make_figure(f"Distance to the {number} nearest title", 380, *axes)
    found = content.neighbours[:, k - 1 : k] >= 0
    if not found.any():
        return say(figure, f"No title has {k} neighbours.")
    curve = np.sort(1 - content.cosines[:, k - 1 : k][found].astype(np.float64))
    places = np.unique(np.linspace(0, len(curve) - 1, POINTS).astype(int))
    along, heights = (places / max(len(curve) - 1, 1)).tolist(), np.round(curve[places], 4).tolist()
    line, about = {"color": BLUE, "width": 2.5}, "%{x:.0%} of the titles: %{y:.3f}<extra></extra>"
    figure.add_scatter(x=along, y=heights, mode="lines", line=line, hovertemplate=about)
    if density:
        line, label = {"color": RED, "width": 1.5, "dash": "dash"}, f"eps {density.eps:.4g}"
        figure.add_hline(y=density.eps, line=line, annotation_text=label, annotation_position="top left")
    return figure


def plot_neighbours(content: MapContent, sample: int = 15, nearest: int = 5) -> go.Figure:
    """A table of titles and what is nearest to them, with cosines.

    The sample is the most aired title of each of the largest clusters, so that it shows the breadth of the
    guide, then the most aired ones of the rest.
    """
    order: list[int] = np.argsort(-np.asarray(content.airings, dtype=np.int64), kind="stable").tolist()
    sizes = np.bincount(content.clusters[content.clusters >= 0], minlength=len(content.cluster_names))
    firsts = {int(content.clusters[i]): i for i in reversed(order)}
    chosen = [firsts[cluster] for cluster in np.argsort(-sizes, kind="stable").tolist() if cluster in firsts]
    rows = list(dict.fromkeys([*chosen, *order]))[:sample]
    nearest = min(nearest, content.neighbours.shape[1])
    columns = [[f"<b>{html.escape(content.titles[i])}</b>" for i in rows]]
    for rank in range(nearest):
        near = [(int(content.neighbours[i, rank]), content.cosines[i, rank]) for i in rows]
        columns.append(
            [f"{html.escape(content.titles[j])} <i>{cosine:.2f}</i>" if j >= 0 else "–" for j, cosine in near]
        )
    figure = make_figure("Nearest titles, a sample", 140 + 2 * ROW_PIXELS * len(rows))
    header = ["title", *(f"nearest {rank + 1}" for rank in range(nearest))]
    look = {"align": "left", "line": {"color": GRID}}
    head = {"values": header, "fill": {"color": "#f0f2f6"}, "font": {"color": MUTED, "size": 12}}
    rest = {"values": columns, "fill": {"color": "#ffffff"}, "font": {"color": INK, "size": 12}}
    figure.add_table(header=look | head, cells=look | rest | {"height": ROW_PIXELS})
    figure.update_layout(margin={"l": 8, "r": 8, "t": 56, "b": 8})
    return figure if rows else say(figure, "There is no title.")
