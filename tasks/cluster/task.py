"""Stage cluster: Corpus, Vectors to Clustering."""

from __future__ import annotations

import dataclasses
import json
import logging
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from prefect import get_run_logger, task

from storage.arrays import open_array
from storage.artifacts import Clustering, Corpus, Vectors
from storage.stages import Stage
from storage.workspace import Workspace
from storage.yesterday import newest_other
from tasks.cluster.graph import Neighbours
from tasks.cluster.names import name_clusters
from tasks.cluster.nights import Identity, keep_identities
from tasks.cluster.settings import ClusterSettings
from tasks.cluster.stability import several_seeds
from tasks.neighbours.index import Exact, sampled_recall

STAGE = Stage(Clustering, __file__)


@task(**STAGE.options)
def cluster(home: str, corpus: Corpus, vectors: Vectors, settings: ClusterSettings) -> Clustering:
    """Groups of titles, their names, and the nearest neighbours they were found from; placeholders stay out.

    Raises:
        ValueError: The vectors are not those of this corpus.
    """
    workspace = Workspace(home)
    table = pq.read_table(workspace.folder(corpus) / "titles.parquet", columns=["title", "show_key", "split", "labels"])
    titles = table["title"].to_pylist()
    points = np.array(open_array(workspace.folder(vectors), "vectors"), dtype=np.float32)
    if len(points) != len(titles):
        raise ValueError(f"{len(points)} vectors for {len(titles)} titles: embed this corpus again.")
    points[np.array(table["split"].to_pylist()) == "placeholder"] = 0

    index = settings.search.open(points)
    neighbours = Neighbours(*index.among_themselves(settings.strategy.neighbours))
    recall = 1.0 if isinstance(index, Exact) else sampled_recall(points, neighbours.ids)
    get_run_logger().info("nearest titles: %s search, recall %.4f", type(index).__name__.lower(), recall)
    stability = several_seeds(settings.strategy, points, neighbours, range(settings.seed, settings.seed + settings.seeds))
    partition = stability.typical
    names = name_clusters(titles, table["labels"].to_pylist(), points, partition.labels)
    if partition.note:
        get_run_logger().log(logging.WARNING if partition.collapsed else logging.INFO, partition.note)

    shows = table["show_key"].to_pylist()
    yesterday, known_before, next_identity = _yesterday(workspace, STAGE.key(corpus, vectors, settings))
    identities, next_identity, stayed = keep_identities(shows, partition.labels, yesterday, known_before, next_identity)
    with STAGE.publish(home, corpus, vectors, settings) as draft:
        np.save(draft.folder / "clusters.npy", partition.labels)
        np.save(draft.folder / "neighbours.npy", neighbours.ids.astype(np.int32))
        np.save(draft.folder / "similarities.npy", neighbours.cosines)
        (draft.folder / "clusters.json").write_text(
            json.dumps(
                [{**dataclasses.asdict(name), **dataclasses.asdict(identity)} for name, identity in zip(names, identities, strict=True)], ensure_ascii=False, indent=1
            ),
            encoding="utf-8",
        )
        _write_tables(draft.folder, shows, titles, partition.labels, [name.name for name in names], neighbours, points)
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
            "stayed_share": stayed,
            "next_identity": next_identity,
            "corpus": corpus.digest,
            "neighbour_recall": recall,
            "note": partition.note,
            "density": dataclasses.asdict(partition.density) if partition.density else None,
        }
    return draft.artifact


def _yesterday(workspace: Workspace, key: str) -> tuple[dict[str, int] | None, list[Identity], int]:
    """Show key to cluster, identities and the least number never given, of the clustering before tonight's."""
    before = newest_other(workspace, Clustering, key)
    if before is None or not (file := workspace.folder(before) / "clusters.parquet").exists():
        return None, [], 0
    table = pq.read_table(file, columns=["show_key", "cluster"]).to_pydict()
    known = [Identity(identity=one["identity"], colour=one["colour"]) for one in json.loads((workspace.folder(before) / "clusters.json").read_text(encoding="utf-8"))]
    members = {show: number for show, number in zip(table["show_key"], table["cluster"], strict=True) if number is not None}
    return members, known, int(workspace.details(before)["next_identity"])


def _write_tables(folder: Path, shows: list[str], titles: list[str], clusters: np.ndarray, names: list[str], neighbours: Neighbours, points: np.ndarray) -> None:
    """For SQL: clusters.parquet, a row a title (cluster null: noise), neighbours.parquet, a row a pair, vectors.parquet, a row a title with a vector."""
    numbers = clusters.tolist()
    columns = {
        "title_id": pa.array(range(len(titles)), pa.int32()),
        "title": pa.array(titles, pa.string()),
        "show_key": pa.array(shows, pa.string()),
        "cluster": pa.array([number if number >= 0 else None for number in numbers], pa.int32()),
        "cluster_name": pa.array([names[number] if number >= 0 else None for number in numbers], pa.string()),
    }
    pq.write_table(pa.table(columns), folder / "clusters.parquet", compression="zstd")
    rows, ranks = np.nonzero(neighbours.ids >= 0)
    pairs = {
        "title_id": rows.astype(np.int32),
        "neighbour_id": neighbours.ids[rows, ranks].astype(np.int32),
        "rank": (ranks + 1).astype(np.int16),
        "cosine": neighbours.cosines[rows, ranks],
    }
    pq.write_table(pa.table(pairs), folder / "neighbours.parquet", compression="zstd")
    known = np.flatnonzero(points.any(axis=1))
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(points[known].reshape(-1)), points.shape[1])
    pq.write_table(pa.table({"title_id": known.astype(np.int32), "vector": vectors}), folder / "vectors.parquet", compression="zstd")
