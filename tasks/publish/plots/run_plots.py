"""The plots of a run with plotly: all of them from its artifacts, and those of the loss and of past runs.

plots.html is one page in which all figures share one embedded plotly.js (4.5 MB), so that it opens offline;
plots/NAME.json are the figures alone (``plotly.io.read_json``). The same figures give the same bytes.
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
from tasks.plotting import BLUE, FONT, GREEN, GREY, GRID, ORANGE, make_figure, say
from tasks.publish.map.page import MapContent
from tasks.publish.plots import held_out_plots as held_out
from tasks.publish.plots import map_plots

FILE = "nights.json"  # beside the page: the history that the next run continues
MOST = 60  # runs
LINES = (
    ("unseen_title", "titles never seen", BLUE, "solid"),
    ("unseen_show", "franchises never seen", ORANGE, "dash"),
    ("next_period", "what comes next", GREEN, "dot"),
)
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
    """One run."""

    at: datetime  # when it was scored
    losses: Sequence[float]  # mean of each epoch
    precision: Mapping[str, float]  # protocol to precision at k, title only; one without titles is left out


def draw_figures(
    corpus: OpenCorpus,
    titles: pa.Table,
    vectors: np.ndarray,
    queries: pa.Table,
    content: MapContent,
    shown: np.ndarray,
    history: Sequence[HistoryPoint],
    density: Density | None = None,
) -> dict[str, go.Figure]:
    """Name to figure.

    ``titles`` is titles.parquet, ``queries`` queries.parquet, of which those of the title alone are drawn;
    ``shown`` are the rows of the corpus on the map; ``history`` is oldest first, this run last.
    """
    asked = queries.filter(pa.array(np.asarray(queries["form"]) == "title_only"))
    rows = np.asarray(asked["title_id"])
    place = np.full(len(corpus), -1)
    place[shown] = np.arange(len(shown))
    on_map = rows[place[rows] >= 0]  # a title without a vector has no place

    def of(name: str, chosen: np.ndarray) -> list:
        return titles[name].take(pa.array(chosen, pa.int64())).to_pylist()

    right, protocols = np.asarray(asked["correct"]).tolist(), asked["protocol"].to_pylist()
    precision, predictions = (
        np.asarray(asked["precision_at_k"]),
        held_out.predict_both(corpus, vectors, on_map),
    )
    places, names = content.xy[place[on_map]], corpus.label_names
    return {
        "nights": plot_history(history),
        "loss": plot_loss(history[-1].losses),
        "category_accuracy": held_out.plot_category_accuracy(of("labels", rows), right, protocols),
        "precision_by_rarest_word": held_out.plot_precision_by_rarest_word(
            held_out.rarest_words(corpus, rows), precision
        ),
        "borders": held_out.plot_borders(
            of("title", on_map), places, of("labels", on_map), names, predictions
        ),
        "neighbours": map_plots.plot_neighbours(content),
        "cluster_sizes": map_plots.plot_cluster_sizes(content),
        "clusters_by_category": map_plots.plot_clusters_by_category(content),
        "k_distances": map_plots.plot_k_distances(content, density),
    }


def extend_history(
    before: Path | None, at: datetime, epochs: Sequence[Mapping[str, float]], scores: Mapping[str, Any]
) -> list[HistoryPoint]:
    """The runs that the previous page (its folder) remembers, and this one, by their instants; the newest
    sixty.
    """
    forms = {name: own["title_only"] for name, own in scores["protocols"].items()}
    precision = {name: own["knn"]["precision_at_k"] for name, own in forms.items() if own["n"]}
    known = {name: value for name, value in precision.items() if value is not None}
    past = (
        json.loads((before / FILE).read_text(encoding="utf-8")) if before and (before / FILE).exists() else []
    )
    points = [HistoryPoint(datetime.fromisoformat(one.pop("at")), **one) for one in past]
    points.append(HistoryPoint(at, [epoch["loss"] for epoch in epochs], known))
    return sorted(points, key=lambda point: point.at)[-MOST:]


def write_history(folder: Path, history: Sequence[HistoryPoint]) -> None:
    """Writes nights.json."""
    content = [{**vars(point), "at": point.at.isoformat()} for point in history]
    (folder / FILE).write_text(json.dumps(content), encoding="utf-8")


def plot_loss(losses: Sequence[float]) -> go.Figure:
    """The mean loss of each epoch."""
    along = {"title": "epoch", "dtick": max(1, len(losses) // 12)}
    figure = make_figure("Loss over epochs", 380, along, {"title": "mean loss", "rangemode": "tozero"})
    epochs, about = list(range(1, len(losses) + 1)), "epoch %{x}: %{y:.4f}<extra></extra>"
    look = {"line": {"color": BLUE, "width": 2.5}, "marker": {"size": 7}}
    figure.add_scatter(x=epochs, y=list(losses), mode="lines+markers", hovertemplate=about, **look)
    return figure if losses else say(figure, "No epoch was trained.")


def plot_history(history: Sequence[HistoryPoint]) -> go.Figure:
    """Left: the loss over epochs, a line a run, the last on top. Right: precision at k from run to run."""
    figure = make_subplots(rows=1, cols=2, subplot_titles=("Loss over epochs", "Precision@10, title only"))
    below = {"orientation": "h", "y": -0.28, "x": 1, "xanchor": "right"}
    look = make_figure("Learning curves across runs", 440, legend=below).layout
    figure.update_layout(look)
    about = "%{fullData.name}, epoch %{x}: %{y:.4f}<extra></extra>"
    left = {"mode": "lines", "showlegend": False, "hovertemplate": about, "row": 1, "col": 1}
    for point in history:
        last = point is history[-1]
        figure.add_scatter(
            x=list(range(1, len(point.losses) + 1)),
            y=list(point.losses),
            line={"color": BLUE if last else GREY, "width": 3 if last else 1.5},
            name=f"{point.at:%Y-%m-%d %H:%M}",
            **left,
        )
    for protocol, name, colour, dash in LINES:
        scored = [point for point in history if protocol in point.precision]
        if scored:
            look = {"mode": "lines+markers", "name": name, "line": {"color": colour, "dash": dash}}
            figure.add_scatter(
                x=[f"{point.at:%Y-%m-%d %H:%M}" for point in scored],
                y=[point.precision[protocol] for point in scored],
                hovertemplate=f"{name}: %{{y:.3f}}, %{{x}}<extra></extra>",
                **(look | {"row": 1, "col": 2}),
            )
    figure.update_xaxes(gridcolor=GRID, zeroline=False)
    figure.update_yaxes(gridcolor=GRID, zeroline=False)
    figure.update_xaxes(title="epoch", row=1, col=1)
    figure.update_xaxes(title="run (UTC)", type="category", row=1, col=2)
    return figure if history else say(figure, "No run is known.")


def write_plots(folder: Path, figures: Mapping[str, go.Figure]) -> list[Path]:
    """Writes plots.html and plots/NAME.json; returns the files written."""
    (folder / "plots").mkdir(exist_ok=True)
    texts = {folder / "plots.html": render_plots(figures)}
    texts |= {folder / "plots" / f"{name}.json": str(figure.to_json()) for name, figure in figures.items()}
    for file, text in texts.items():
        file.write_text(text, encoding="utf-8")
    return list(texts)


def render_plots(figures: Mapping[str, go.Figure]) -> str:
    """One HTML page of several figures; only the first carries plotly.js."""
    config = {"displaylogo": False, "responsive": True}
    parts = [
        figure.to_html(config, full_html=False, include_plotlyjs=position == 0, div_id=name)
        for position, (name, figure) in enumerate(figures.items())
    ]
    sections = "\n".join(f"<section>{part}</section>" for part in parts)
    return PAGE.format(font=FONT.replace('"', "'"), figures=sections)
