"""Stage cluster: Corpus, Vectors to Clustering."""

from __future__ import annotations

import dataclasses
import json
import logging
import re

import numpy as np
import pyarrow.parquet as pq
from prefect import get_run_logger, task

from storage.arrays import open_array
from storage.artifacts import Clustering, Corpus, Vectors
from storage.stages import Stage
from storage.workspace import Workspace
from tasks.cluster.graph import Neighbours
from tasks.cluster.names import name_clusters
from tasks.cluster.settings import ClusterSettings
from tasks.cluster.stability import several_seeds
from tasks.neighbours.similarity import top_neighbours

STAGE = Stage(Clustering, __file__)
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")  # letters and digits, joined by apostrophe or hyphen


@task(**STAGE.options)
def cluster(home: str, corpus: Corpus, vectors: Vectors, settings: ClusterSettings) -> Clustering:
    """Groups of titles, their names, and the nearest neighbours they were found from; placeholders stay out.

    Raises:
        ValueError: The vectors are not those of this corpus.
    """
    workspace = Workspace(home)
    table = pq.read_table(workspace.folder(corpus) / "titles.parquet", columns=["title", "split", "labels"])
    titles = table["title"].to_pylist()
    points = np.array(open_array(workspace.folder(vectors), "vectors"), dtype=np.float32)
    if len(points) != len(titles):
        raise ValueError(f"{len(points)} vectors for {len(titles)} titles: embed this corpus again.")
    points[np.array(table["split"].to_pylist()) == "placeholder"] = 0

    neighbours = Neighbours(*top_neighbours(points, points, settings.strategy.neighbours, exclude_self=True))
    stability = several_seeds(settings.strategy, points, neighbours, range(settings.seed, settings.seed + settings.seeds))
    partition = stability.typical
    names = name_clusters(titles, [_WORD.findall(title) for title in titles], table["labels"].to_pylist(), points, partition.labels)
    if partition.note:
        get_run_logger().log(logging.WARNING if partition.collapsed else logging.INFO, partition.note)

    with STAGE.publish(home, corpus, vectors, settings) as draft:
        np.save(draft.folder / "clusters.npy", partition.labels)
        np.save(draft.folder / "neighbours.npy", neighbours.ids.astype(np.int32))
        np.save(draft.folder / "similarities.npy", neighbours.cosines)
        (draft.folder / "clusters.json").write_text(json.dumps([dataclasses.asdict(name) for name in names], ensure_ascii=False, indent=1), encoding="utf-8")
        known = int(points.any(axis=1).sum())
        noise = int((partition.labels < 0).sum()) - (len(points) - known)
        draft.counts |= {"titles": len(titles), "clusters": partition.count, "noise": noise}
        draft.details |= {
            "strategy": settings.strategy.name,
            "seeds": settings.seeds,
            "run_to_run_ari": stability.run_to_run_ari if settings.seeds > 1 else None,
            "noise_share": noise / known if known else 0.0,
            "largest_share": int((partition.labels == 0).sum()) / known if known else 0.0,
            "iterations": partition.iterations,
            "collapsed": partition.collapsed,
            "note": partition.note,
        }
    return draft.artifact
