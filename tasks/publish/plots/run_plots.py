"""Draws and writes the plots of a nightly run, including the training loss and the history of runs.

plots.html contains all figures and plotly.js (4.5 MB), so it works offline. plots/NAME.json contains one
figure, which ``plotly.io.read_json`` can read. Equal figures give equal bytes.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa
from plotly.subplots import make_subplots

from storage.formats.clustering import Density
from storage.formats.corpus import OpenCorpus
from tasks.plotting import BLUE, FONT, GREY, GRID, make_figure, show_message
from tasks.publish.map.page import MapContent
from tasks.publish.plots import held_out_plots as held_out
from tasks.publish.plots import map_plots
from tasks.scoring.protocols import PROTOCOLS

HISTORY_FILE = "nights.json"  # file of a Page artifact with the history of runs, which the next run extends
MAX_RUNS = 60  # maximum number of runs in the history
DASHES = ("solid", "dash", "dot")  # line style of each protocol
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">
<title>Plots · GuideSpace</title>
<style>
body {{ margin: 24px auto; max-width: 1100px; padding: 0 16px; font-family: {font}; background: #fff; }}
section {{ margin-bottom: 32px; }}
</style>
</head><body>
{figures}
</body></html>
"""


@dataclass(frozen=True)
class HistoryPoint:
    """Training loss and precision of one run in the history of runs."""

    at: datetime  # time of the run
    losses: Sequence[float]  # mean training loss of each epoch
    precision: Mapping[str, float]  # precision at k of titles without airing context, by held-out set


def draw_figures(
    corpus: OpenCorpus,
    labels: pa.ChunkedArray,
    queries: pa.Table,
    content: MapContent,
    history: Sequence[HistoryPoint],
    density: Density | None = None,
) -> dict[str, go.Figure]:
    """Draws the figures of a run and returns them by name.

    Args:
        corpus: Corpus of the run.
        labels: Categories of each title of the corpus.
        queries: Content of queries.parquet. Only predictions without airing context are used.
        content: Content of the map.
        history: Loss and precision of runs, oldest first; this run is the last.
        density: Parameters of DBSCAN; None if the clusters were not made by DBSCAN.
    """
    queries = queries.filter(pa.array(np.asarray(queries["form"]) == "title_only"))
    rows = np.asarray(queries["title_id"])
    query_labels = labels.take(pa.array(rows, pa.int64())).to_pylist()
    correct, protocols = np.asarray(queries["correct"]).tolist(), queries["protocol"].to_pylist()
    rarest, precision = held_out.rarest_word_counts(corpus, rows), np.asarray(queries["precision_at_k"])
    return {
        "nights": plot_history(history),
        "loss": plot_loss(history[-1].losses),
        "category_accuracy": held_out.plot_category_accuracy(query_labels, correct, protocols),
        "precision_by_rarest_word": held_out.plot_precision_by_rarest_word(rarest, precision),
        "neighbours": map_plots.plot_neighbours(content),
        "cluster_sizes": map_plots.plot_cluster_sizes(content),
        "clusters_by_category": map_plots.plot_clusters_by_category(content),
        "k_distances": map_plots.plot_k_distances(content, density),
    }


def extend_history(
    previous: Path | None,
    now: datetime,
    epochs: Sequence[Mapping[str, float]],
    scores: Mapping[str, Any],
) -> list[HistoryPoint]:
    """Reads the history of runs, adds this run and returns the last MAX_RUNS runs, oldest first.

    Args:
        previous: Folder of the previous Page artifact, which contains the history; None if there is none.
        now: Time of this run.
        epochs: Metrics of each training epoch, among them "loss".
        scores: Content of scores.json.
    """
    points = []
    if previous and (previous / HISTORY_FILE).exists():
        past_points = json.loads((previous / HISTORY_FILE).read_text(encoding="utf-8"))
        points = [HistoryPoint(datetime.fromisoformat(point.pop("at")), **point) for point in past_points]
    forms = {protocol: score["title_only"] for protocol, score in scores["protocols"].items()}
    precision = {protocol: form["knn"]["precision_at_k"] for protocol, form in forms.items() if form["n"]}
    precision = {protocol: value for protocol, value in precision.items() if value is not None}
    points.append(HistoryPoint(now, [epoch["loss"] for epoch in epochs], precision))
    return sorted(points, key=lambda point: point.at)[-MAX_RUNS:]


def write_history(folder: Path, history: Sequence[HistoryPoint]) -> None:
    """Writes the history of runs to nights.json in a folder."""
    points = [{**vars(point), "at": point.at.isoformat()} for point in history]
    (folder / HISTORY_FILE).write_text(json.dumps(points), encoding="utf-8")


def plot_loss(losses: Sequence[float]) -> go.Figure:
    """Draws the training loss by epoch; ``losses`` has the mean loss of each epoch."""
    xaxis = {"title": "epoch", "dtick": max(1, len(losses) // 12)}
    figure = make_figure("Loss over epochs", 380, xaxis, {"title": "mean loss", "rangemode": "tozero"})
    figure.add_scatter(
        x=list(range(1, len(losses) + 1)),
        y=list(losses),
        mode="lines+markers",
        hovertemplate="epoch %{x}: %{y:.4f}<extra></extra>",
        line={"color": BLUE, "width": 2.5},
        marker={"size": 7},
    )
    return figure if losses else show_message(figure, "No epoch was trained.")


def plot_history(history: Sequence[HistoryPoint]) -> go.Figure:
    """Draws the loss over epochs with a line per run (left), and the precision at k of each run (right)."""
    figure = make_subplots(rows=1, cols=2, subplot_titles=("Loss over epochs", "Precision at k, title only"))
    legend_below = {"orientation": "h", "y": -0.28, "x": 1, "xanchor": "right"}
    figure.update_layout(make_figure("Learning curves across runs", 440, legend=legend_below).layout)
    for point in history:
        is_last = point is history[-1]
        figure.add_scatter(
            x=list(range(1, len(point.losses) + 1)),
            y=list(point.losses),
            line={"color": BLUE if is_last else GREY, "width": 3 if is_last else 1.5},
            name=f"{point.at:%Y-%m-%d %H:%M}",
            mode="lines",
            showlegend=False,
            hovertemplate="%{fullData.name}, epoch %{x}: %{y:.4f}<extra></extra>",
            row=1,
            col=1,
        )
    for (protocol, name), dash in zip(PROTOCOLS.items(), DASHES, strict=True):
        scored_points = [point for point in history if protocol in point.precision]
        if scored_points:
            figure.add_scatter(
                x=[f"{point.at:%Y-%m-%d %H:%M}" for point in scored_points],
                y=[point.precision[protocol] for point in scored_points],
                hovertemplate=f"{name}: %{{y:.3f}}, %{{x}}<extra></extra>",
                mode="lines+markers",
                name=name,
                line={"color": held_out.PROTOCOL_COLOURS[protocol], "dash": dash},
                row=1,
                col=2,
            )
    figure.update_xaxes(gridcolor=GRID, zeroline=False)
    figure.update_yaxes(gridcolor=GRID, zeroline=False)
    figure.update_xaxes(title="epoch", row=1, col=1)
    figure.update_xaxes(title="run (UTC)", type="category", row=1, col=2)
    return figure if history else show_message(figure, "There is no run.")


def write_plots(folder: Path, figures: Mapping[str, go.Figure]) -> None:
    """Writes all figures to plots.html and each figure to plots/NAME.json in a folder."""
    (folder / "plots").mkdir(exist_ok=True)
    (folder / "plots.html").write_text(render_plots(figures), encoding="utf-8")
    for name, figure in figures.items():
        (folder / "plots" / f"{name}.json").write_text(str(figure.to_json()), encoding="utf-8")


def render_plots(figures: Mapping[str, go.Figure]) -> str:
    """Returns an HTML page with all figures; the first figure contains plotly.js."""
    config = {"displaylogo": False, "responsive": True}
    divisions = [
        figure.to_html(config, full_html=False, include_plotlyjs=position == 0, div_id=name)
        for position, (name, figure) in enumerate(figures.items())
    ]
    sections = "\n".join(f"<section>{division}</section>" for division in divisions)
    return PAGE.format(font=FONT.replace('"', "'"), figures=sections)
