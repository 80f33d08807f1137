"""What the map shows, put together from the artifacts of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from storage.arrays import open_array
from tasks.publish.layout import lay_out
from tasks.publish.map import MapContent
from tasks.publish.settings import PublishSettings


def map_content(titles: pa.Table, vectors: np.ndarray, clustering: Path, facts: Mapping[str, str], settings: PublishSettings) -> MapContent:
    """The map's content; placeholders and titles of which nothing is known are not on it.

    Args:
        titles: titles.parquet of the corpus.
        vectors: float32 (titles, dim).
        clustering: Folder of the Clustering.
        facts: Label to text for the header.
        settings: Heading, neighbours, seed.
    """
    split = np.array(titles["split"].to_pylist())
    shown = np.flatnonzero((split != "placeholder") & vectors.any(axis=1))
    place = np.full(len(split), -1, dtype=np.int64)
    place[shown] = np.arange(len(shown))
    neighbours = np.asarray(open_array(clustering, "neighbours"))[shown]
    cosines = np.asarray(open_array(clustering, "similarities"))[shown]
    neighbours = np.where(neighbours >= 0, place[neighbours.clip(min=0)], -1)
    columns: dict[str, list[Any]] = titles.select(["title", "labels", "channels", "airings"]).take(pa.array(shown)).to_pydict()
    clusters = json.loads((clustering / "clusters.json").read_text(encoding="utf-8"))
    return MapContent(
        heading=settings.heading,
        facts=facts,
        titles=columns["title"],
        xy=lay_out(vectors[shown], neighbours, cosines, seed=settings.seed),
        categories=columns["labels"],
        channels=columns["channels"],
        airings=columns["airings"],
        clusters=np.asarray(open_array(clustering, "clusters"))[shown],
        cluster_names=[cluster["name"] for cluster in clusters],
        neighbours=neighbours[:, : settings.neighbours],
        cosines=cosines[:, : settings.neighbours].clip(-1, 1),
        held_out=split[shown] != "train",
    )
