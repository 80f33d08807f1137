"""The Clustering on disk.

    clusters.npy        int32 (titles,), -1 is noise
    neighbours.npy      int32 (titles, k), nearest by similarity first, -1 where there is none
    similarities.npy    float32 (titles, k), their cosines
    graph.npy, graph_cosines.npy    the same of the vectors that clusters are made of
    clusters.json       a list: name, size, label, identity, colour … of each cluster
    subclusters.npy     int32 (titles,): parts of the large clusters, -1 where a title is in none
    subclusters.json    a list: name ("" if nothing tells), size, label, parent (its cluster) … of each part
    clusters.parquet, neighbours.parquet, vectors.parquet   the same and the vectors, for SQL

``density`` in its details is the Density of a strategy that works with distances.
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
    """What a strategy took for near."""

    eps: float  # greatest cosine distance of two near titles
    min_samples: int  # titles so near, itself included, that make a title core


def read_clusters(folder: Path) -> list[dict[str, Any]]:
    """clusters.json: one entry per cluster, in the order of their ids."""
    return json.loads((folder / "clusters.json").read_text(encoding="utf-8"))


def read_subclusters(folder: Path) -> tuple[np.ndarray, list[dict[str, Any]]]:
    """The part that each title is in, and subclusters.json: one entry per part, in the order of their ids."""
    entries = json.loads((folder / "subclusters.json").read_text(encoding="utf-8"))
    return open_array(folder, "subclusters"), entries


def write_clustering(
    folder: Path,
    titles: pa.Table,
    labels: np.ndarray,
    clusters: Sequence[dict[str, Any]],
    parts: np.ndarray,
    subclusters: Sequence[dict[str, Any]],
    ids: np.ndarray,
    cosines: np.ndarray,
    graph: tuple[np.ndarray, np.ndarray],
    vectors: np.ndarray,
) -> None:
    """Writes all files; ``titles`` has "title" and "show_key", zero rows of ``vectors`` are left out,
    ``graph`` are ids and cosines of the neighbours that clusters are made from.
    """
    np.save(folder / "clusters.npy", labels)
    np.save(folder / "subclusters.npy", parts)
    np.save(folder / "neighbours.npy", ids.astype(np.int32))
    np.save(folder / "similarities.npy", cosines)
    np.save(folder / "graph.npy", graph[0].astype(np.int32))
    np.save(folder / "graph_cosines.npy", graph[1])
    belongs: dict[str, Any] = {}
    for name, numbers, entries in (("cluster", labels, clusters), ("subcluster", parts, subclusters)):
        text = json.dumps(entries, ensure_ascii=False, indent=1)
        (folder / f"{name}s.json").write_text(text, encoding="utf-8")
        belongs[name] = pa.array(numbers, mask=numbers < 0)
        names = pa.array([one["name"] or None for one in entries], pa.string())
        belongs[f"{name}_name"] = names.take(belongs[name])
    rows, ranks = np.nonzero(ids >= 0)
    known = np.flatnonzero(vectors.any(axis=1))
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors[known].reshape(-1)), vectors.shape[1])
    numbered = {"title_id": np.arange(len(titles), dtype=np.int32)}
    shown = {name: titles[name] for name in ("title", "show_key")}
    tables = {
        "clusters": {**numbered, **shown, **belongs},
        "neighbours": {
            "title_id": rows.astype(np.int32),
            "neighbour_id": ids[rows, ranks].astype(np.int32),
            "rank": (ranks + 1).astype(np.int16),
            "cosine": cosines[rows, ranks],
        },
        "vectors": {"title_id": known.astype(np.int32), "vector": lists},
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet", compression="zstd")
