"""Draws plots of the titles on the map: cluster sizes, categories of clusters, neighbours and k-distances."""

import html

import numpy as np
import plotly.graph_objects as go

from storage.formats.clustering import Density
from tasks.plotting import BLUE, GRID, INK, MUTED, RED, make_figure, show_message
from tasks.publish.map.page import MapContent

MAX_CELLS = 25  # maximum number of clusters, and of categories, in the heat map
DEFAULT_MIN_SAMPLES = 5  # min_samples of the k-distance curve if the clusters were not made by DBSCAN
CURVE_POINTS = 500  # maximum number of points of the k-distance curve
SAMPLED_TITLES, NEAREST = 15, 5  # number of titles, and of neighbours per title, in the table of neighbours
ROW_PIXELS = 26  # height of a table row


def plot_cluster_sizes(content: MapContent) -> go.Figure:
    """Draws cluster sizes by rank on logarithmic axes, with the share of titles in no cluster as text."""
    sizes = np.sort(np.bincount(content.clusters[content.clusters >= 0]))[::-1]
    sizes = sizes[sizes > 0]
    noise = float((content.clusters < 0).mean()) if len(content.clusters) else 0.0
    label = f"cluster by size ({len(sizes)} clusters; {noise:.1%} of the titles in no cluster)"
    xaxis, yaxis = {"title": label, "type": "log"}, {"title": "titles", "type": "log"}
    figure = make_figure("Cluster sizes", 380, xaxis, yaxis)
    figure.add_scatter(
        x=list(range(1, len(sizes) + 1)),
        y=sizes.tolist(),
        mode="lines+markers",
        line={"color": BLUE},
        hovertemplate="number %{x}: %{y} titles<extra></extra>",
    )
    return figure if len(sizes) else show_message(figure, "There is no cluster.")


def plot_clusters_by_category(content: MapContent) -> go.Figure:
    """Draws a heat map of the share of each frequent category among the titles of each large cluster."""
    rows_by_category: dict[str, list[int]] = {}
    for row, names in enumerate(content.categories):
        for name in names:
            rows_by_category.setdefault(name, []).append(row)
    labels = sorted(rows_by_category, key=lambda name: (-len(rows_by_category[name]), name))[:MAX_CELLS]
    sizes = np.bincount(content.clusters[content.clusters >= 0], minlength=len(content.cluster_names))
    order = np.argsort(-sizes, kind="stable")[:MAX_CELLS]
    top_clusters = [int(cluster) for cluster in order if sizes[cluster]]
    xaxis, yaxis = {"tickangle": -45, "automargin": True}, {"autorange": "reversed", "automargin": True}
    height = 200 + 22 * len(top_clusters)
    figure = make_figure("Categories of the largest clusters", height, xaxis, yaxis)
    if not labels or not top_clusters:
        return show_message(figure, "There is no cluster with a category.")
    clusters = [content.clusters[rows_by_category[name]] for name in labels]
    counts = [
        np.bincount(category_clusters[category_clusters >= 0], minlength=len(sizes))
        for category_clusters in clusters
    ]
    figure.add_heatmap(
        x=[html.escape(name) for name in labels],
        y=[html.escape(content.cluster_names[cluster]) for cluster in top_clusters],
        z=(np.array(counts).T[top_clusters] / sizes[top_clusters, None]).tolist(),
        hovertemplate="%{y}: %{z:.0%} are %{x}<extra></extra>",
        zmin=0,
        zmax=1,
        colorscale=[[0, "#f7f8fa"], [1, BLUE]],
        colorbar={"tickformat": ".0%"},
    )
    return figure


def plot_k_distances(content: MapContent, density: Density | None = None) -> go.Figure:
    """Draws the sorted cosine distances of titles to their k-th nearest title, and eps of DBSCAN as a line.

    k is min_samples − 1, because min_samples includes the title itself. If the clusters were not made by
    DBSCAN (``density`` is None), k is DEFAULT_MIN_SAMPLES − 1, and eps is not drawn.
    """
    min_samples = density.min_samples if density else DEFAULT_MIN_SAMPLES
    k = max(min_samples - 1, 1)
    ordinal = ("first", "second", "third")[k - 1] if k <= 3 else f"{k}th"
    label = f"share of the titles (DBSCAN with min_samples {min_samples} takes its eps from this curve)"
    xaxis = {"title": label, "tickformat": ".0%"}
    yaxis = {"title": "cosine distance", "rangemode": "tozero"}
    figure = make_figure(f"Distance to the {ordinal} nearest title", 380, xaxis, yaxis)
    has_neighbour = content.neighbours[:, k - 1 : k] >= 0
    if not has_neighbour.any():
        return show_message(figure, f"No title has {k} neighbours.")
    curve = np.sort(1 - content.cosines[:, k - 1 : k][has_neighbour].astype(np.float64))
    points = np.unique(np.linspace(0, len(curve) - 1, CURVE_POINTS).astype(int))
    figure.add_scatter(
        x=(points / max(len(curve) - 1, 1)).tolist(),
        y=np.round(curve[points], 4).tolist(),
        mode="lines",
        line={"color": BLUE, "width": 2.5},
        hovertemplate="%{x:.0%} of the titles: %{y:.3f}<extra></extra>",
    )
    if density:
        figure.add_hline(
            y=density.eps,
            line={"color": RED, "width": 1.5, "dash": "dash"},
            annotation_text=f"eps {density.eps:.4g}",
            annotation_position="top left",
        )
    return figure


def plot_neighbours(content: MapContent) -> go.Figure:
    """Draws a table of SAMPLED_TITLES titles with their nearest titles and cosines.

    The first titles are the most frequently aired titles of the largest clusters. If there are fewer
    clusters, other frequently aired titles follow.
    """
    order: list[int] = np.argsort(-np.asarray(content.airings, dtype=np.int64), kind="stable").tolist()
    sizes = np.bincount(content.clusters[content.clusters >= 0], minlength=len(content.cluster_names))
    most_aired = {int(content.clusters[row]): row for row in reversed(order)}
    by_size = np.argsort(-sizes, kind="stable").tolist()
    rows = list(
        dict.fromkeys([*(most_aired[cluster] for cluster in by_size if cluster in most_aired), *order])
    )[:SAMPLED_TITLES]
    neighbour_count = min(NEAREST, content.neighbours.shape[1])
    columns = [[f"<b>{html.escape(content.titles[row])}</b>" for row in rows]]
    for rank in range(neighbour_count):
        row_neighbours = [(int(content.neighbours[row, rank]), content.cosines[row, rank]) for row in rows]
        columns.append(
            [
                f"{html.escape(content.titles[neighbour])} <i>{cosine:.2f}</i>" if neighbour >= 0 else "–"
                for neighbour, cosine in row_neighbours
            ]
        )
    figure = make_figure("Nearest titles of a sample of titles", 140 + 2 * ROW_PIXELS * len(rows))
    header = ["title", *(f"nearest {rank + 1}" for rank in range(neighbour_count))]
    style = {"align": "left", "line": {"color": GRID}}
    head = {"values": header, "fill": {"color": "#f0f2f6"}, "font": {"color": MUTED, "size": 12}}
    body = {"values": columns, "fill": {"color": "#ffffff"}, "font": {"color": INK, "size": 12}}
    figure.add_table(header=style | head, cells=style | body | {"height": ROW_PIXELS})
    figure.update_layout(margin={"l": 8, "r": 8, "t": 56, "b": 8})
    return figure if rows else show_message(figure, "There is no title.")
