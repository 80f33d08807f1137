"""Reads and writes the files of the artifact Clustering: the clusters of titles.

    clusters.npy        int32 (titles,), cluster id of each title; -1: in no cluster
    clusters.json       list with the fields of ClusterName and Identity (tasks/cluster) of each cluster
    subclusters.npy     int32 (titles,), subcluster id of each title; -1: in no subcluster
    subclusters.json    list with the fields of ClusterName, and the id of the cluster, of each subcluster
    clusters.parquet    each title with its cluster and subcluster and their names, for SQL

``name`` is the displayed name (of a subcluster: "" if there is none), ``label`` is the category of at least
half of the titles, and ``identity`` is a number that a cluster keeps from run to run.

Only large clusters have subclusters. Density-based algorithms such as DBSCAN also store their ``Density`` in
artifact.json.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.arrays import open_array


@dataclass(frozen=True, kw_only=True)
class Density:
    """Parameters of a density-based clustering algorithm such as DBSCAN."""

    eps: float  # maximum cosine distance of neighbours
    min_samples: int  # minimum number of neighbours of a core point, including itself


def read_clusters(folder: Path) -> list[dict[str, Any]]:
    """Returns the content of clusters.json: one dictionary per cluster, in the order of cluster ids."""
    return json.loads((folder / "clusters.json").read_text(encoding="utf-8"))


def read_subclusters(folder: Path) -> tuple[np.ndarray, list[dict[str, Any]]]:
    """Returns the subcluster id of each title, int32 (titles,), and one dictionary per subcluster."""
    subclusters = json.loads((folder / "subclusters.json").read_text(encoding="utf-8"))
    return open_array(folder, "subclusters"), subclusters


def write_clustering(
    folder: Path,
    titles: pa.Table,
    cluster_ids: np.ndarray,
    clusters: Sequence[dict[str, Any]],
    subcluster_ids: np.ndarray,
    subclusters: Sequence[dict[str, Any]],
) -> None:
    """Writes all files of the artifact Clustering.

    Args:
        folder: Folder of the files.
        titles: Table with the columns "title" and "show_key", one row per title.
        cluster_ids: Cluster id of each title, or -1: int32 (titles,).
        clusters: Entries of clusters.json, in the order of cluster ids.
        subcluster_ids: Subcluster id of each title, or -1: int32 (titles,).
        subclusters: Entries of subclusters.json, in the order of subcluster ids.
    """
    np.save(folder / "clusters.npy", cluster_ids)
    np.save(folder / "subclusters.npy", subcluster_ids)
    cluster_columns: dict[str, Any] = {}
    for name, ids, entries in (
        ("cluster", cluster_ids, clusters),
        ("subcluster", subcluster_ids, subclusters),
    ):
        json_text = json.dumps(entries, ensure_ascii=False, indent=1)
        (folder / f"{name}s.json").write_text(json_text, encoding="utf-8")
        cluster_columns[name] = pa.array(ids, mask=ids < 0)
        names = pa.array([entry["name"] or None for entry in entries], pa.string())
        cluster_columns[f"{name}_name"] = names.take(cluster_columns[name])
    title_ids = {"title_id": np.arange(len(titles), dtype=np.int32)}
    title_columns = {name: titles[name] for name in ("title", "show_key")}
    table = pa.table({**title_ids, **title_columns, **cluster_columns})
    pq.write_table(table, folder / "clusters.parquet", compression="zstd")
