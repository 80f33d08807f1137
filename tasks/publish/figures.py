"""The pictures of a run, put together from its artifacts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa

from tasks.cluster.partition import Density
from tasks.preprocess.corpus import OpenCorpus
from tasks.publish.cluster_plots import plot_cluster_sizes, plot_clusters_by_category, plot_k_distances
from tasks.publish.held_out import judge_borders, rarest_words
from tasks.publish.held_out_plots import plot_borders, plot_precision_by_rarest_word
from tasks.publish.map import MapContent
from tasks.publish.night_plots import Night, plot_nights
from tasks.publish.plots import plot_category_accuracy, plot_loss, plot_neighbours

NIGHTS = "nights.json"  # beside the page: what the next night's picture of all nights starts from
MOST_NIGHTS = 60


def draw_figures(
    corpus: OpenCorpus, titles: pa.Table, vectors: np.ndarray, queries: pa.Table, content: MapContent, shown: np.ndarray, nights: Sequence[Night],
    density: Density | None = None,
) -> dict[str, go.Figure]:
    """Name to figure.

    Args:
        corpus: Opened.
        titles: titles.parquet of the corpus; "title" and "labels" are read, row i being title i.
        vectors: float32, shape (titles, dim).
        queries: queries.parquet of the scores: those of the title alone are drawn.
        content: What the map shows.
        shown: Row of the corpus of each title on the map.
        nights: Oldest first, tonight's last.
        density: What the clusters' strategy took for near, where it knows by distance.
    """
    asked = queries.filter(pa.array(np.asarray(queries["form"]) == "title_only"))
    rows = np.asarray(asked["title_id"])
    labels = titles["labels"].take(pa.array(rows, pa.int64())).to_pylist()
    place = np.full(len(corpus), -1)
    place[shown] = np.arange(len(shown))
    on_map = place[rows] >= 0  # a title of which nothing is known has no place
    names = titles["title"].take(pa.array(rows[on_map], pa.int64())).to_pylist()
    labels_on_map = [own for own, there in zip(labels, on_map, strict=True) if there]
    return {
        "nights": plot_nights(nights),
        "loss": plot_loss([{"loss": loss} for loss in nights[-1].losses]),
        "category_accuracy": plot_category_accuracy(labels, np.asarray(asked["correct"]).tolist(), asked["protocol"].to_pylist()),
        "precision_by_rarest_word": plot_precision_by_rarest_word(rarest_words(corpus, rows), np.asarray(asked["precision_at_10"])),
        "borders": plot_borders(names, content.xy[place[rows[on_map]]], labels_on_map, corpus.label_names, judge_borders(corpus, vectors, rows[on_map])),
        "neighbours": plot_neighbours(content),
        "cluster_sizes": plot_cluster_sizes(content),
        "clusters_by_category": plot_clusters_by_category(content),
        "k_distances": plot_k_distances(content, density),
    }


def all_nights(before: Path | None, at: datetime, history: Sequence[Mapping[str, float]], scores: Mapping[str, Any]) -> list[Night]:
    """The nights that the page before told of, and tonight; the newest sixty.

    Args:
        before: Folder of that page, or None.
        at: Now.
        history: Metrics of each epoch; "loss" is read.
        scores: scores.json.
    """
    precision = {name: forms["title_only"]["knn"]["precision_at_10"] for name, forms in scores["protocols"].items() if forms["title_only"]["n"]}
    tonight = Night(at, [epoch["loss"] for epoch in history], {name: value for name, value in precision.items() if value is not None})
    told = json.loads((before / NIGHTS).read_text()) if before and (before / NIGHTS).exists() else []
    return [*(Night(datetime.fromisoformat(one["at"]), one["losses"], one["precision"]) for one in told), tonight][-MOST_NIGHTS:]


def write_nights(folder: Path, nights: Sequence[Night]) -> None:
    """Writes nights.json."""
    content = [{"at": night.at.isoformat(), "losses": list(night.losses), "precision": dict(night.precision)} for night in nights]
    (folder / NIGHTS).write_text(json.dumps(content), encoding="utf-8")
