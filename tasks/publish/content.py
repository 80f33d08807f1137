"""What the map shows, put together from the artifacts of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from storage.arrays import open_array
from tasks.augment.lexicon import Lexicon
from tasks.publish.layout import lay_out
from tasks.publish.map import MapContent
from tasks.publish.reasons import find_reasons
from tasks.publish.settings import PublishSettings


def map_content(
    titles: pa.Table,
    vectors: np.ndarray,
    lexicon: Lexicon,
    clustering: Path,
    facts: Mapping[str, str],
    settings: PublishSettings,
    times: pa.Table,
    before: pa.Table | None = None,
) -> tuple[MapContent, pa.Table, np.ndarray]:
    """The map's content; placeholders and titles of which nothing is known are not on it.

    Args:
        titles: titles.parquet of the corpus.
        vectors: float32 (titles, dim).
        lexicon: That made them: it explains them.
        clustering: Folder of the Clustering.
        facts: Label to text for the header.
        settings: Heading, neighbours, seed.
        times: When and where titles air: minutes and names, a row a title.
        before: Places of the map before: show_key, x, y.

    Returns:
        The content, the places of its titles in the same form, and which rows of the corpus they are.
    """
    split = np.array(titles["split"].to_pylist())
    shown = np.flatnonzero((split != "placeholder") & vectors.any(axis=1))
    place = np.full(len(split), -1, dtype=np.int64)
    place[shown] = np.arange(len(shown))
    neighbours = np.asarray(open_array(clustering, "neighbours"))[shown]
    cosines = np.asarray(open_array(clustering, "similarities"))[shown]
    neighbours = np.where(neighbours >= 0, place[neighbours.clip(min=0)], -1)
    columns: dict[str, list[Any]] = titles.select(["title", "show_key", "labels", "channels", "airings", "language", "days", "raw_title"]).take(pa.array(shown)).to_pydict()
    aired = times.select(["minutes", "names"]).take(pa.array(shown)).to_pydict()
    clusters = json.loads((clustering / "clusters.json").read_text(encoding="utf-8"))
    stood = None if before is None else {show: (x, y) for show, x, y in zip(*before.select(["show_key", "x", "y"]).to_pydict().values(), strict=True)}
    absent = (np.nan, np.nan)
    old_places = None if stood is None else np.array([stood.get(show, absent) for show in columns["show_key"]]).reshape(-1, 2)
    xy = lay_out(vectors[shown], neighbours, cosines, seed=settings.seed, before=old_places)
    content = MapContent(
        heading=settings.heading,
        facts=facts,
        titles=columns["title"],
        xy=xy,
        categories=columns["labels"],
        channels=columns["channels"],
        airings=columns["airings"],
        clusters=np.asarray(open_array(clustering, "clusters"))[shown],
        cluster_names=[cluster["name"] for cluster in clusters],
        cluster_categories=[cluster["label"] for cluster in clusters],
        neighbours=neighbours[:, : settings.neighbours],
        cosines=cosines[:, : settings.neighbours].clip(-1, 1),
        held_out=split[shown] != "train",
        languages=columns["language"],
        days=columns["days"],
        times=[list(zip(*row, strict=True)) for row in zip(aired["minutes"], aired["names"], strict=True)],
        reasons=find_reasons(lexicon, columns["raw_title"], neighbours[:, : settings.neighbours]),
        fresh=None if old_places is None else np.isnan(old_places[:, 0]),
        cluster_colours=[cluster["colour"] for cluster in clusters] if all("colour" in cluster for cluster in clusters) else None,
    )
    return content, pa.table({"show_key": pa.array(columns["show_key"], pa.string()), "x": xy[:, 0], "y": xy[:, 1]}), shown
