"""The Clustering on disk.

    clusters.npy        int32 (titles,), -1 is noise
    clusters.json       a list: name, size, label, identity, colour … of each cluster
    subclusters.npy     int32 (titles,): parts of the large clusters, -1 where a title is in none
    subclusters.json    a list: name ("" if nothing tells), size, label, parent (its cluster) … of each part
    clusters.parquet    the same, for SQL

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
) -> None:
    """Writes all files; ``titles`` has "title" and "show_key"."""
    np.save(folder / "clusters.npy", labels)
    np.save(folder / "subclusters.npy", parts)
    belongs: dict[str, Any] = {}
    for name, numbers, entries in (("cluster", labels, clusters), ("subcluster", parts, subclusters)):
        text = json.dumps(entries, ensure_ascii=False, indent=1)
        (folder / f"{name}s.json").write_text(text, encoding="utf-8")
        belongs[name] = pa.array(numbers, mask=numbers < 0)
        names = pa.array([one["name"] or None for one in entries], pa.string())
        belongs[f"{name}_name"] = names.take(belongs[name])
    numbered = {"title_id": np.arange(len(titles), dtype=np.int32)}
    shown = {name: titles[name] for name in ("title", "show_key")}
    table = pa.table({**numbered, **shown, **belongs})
    pq.write_table(table, folder / "clusters.parquet", compression="zstd")
