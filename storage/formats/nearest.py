"""The NearestTitles on disk.

neighbours.npy      int32 (titles, k), nearest by similarity first, -1 where there is none
similarities.npy    float32 (titles, k), their cosines
graph.npy, graph_cosines.npy    the same of the vectors that clusters are made of
neighbours.parquet, vectors.parquet    the first two and the vectors of similarity, for SQL
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.shapes import Float, Int


def write_nearest(
    folder: Path,
    ids: Int[np.ndarray, "titles k"],
    cosines: Float[np.ndarray, "titles k"],
    vectors: Float[np.ndarray, "titles dim"],
) -> None:
    """Writes the nearest by similarity, and their vectors; zero rows of ``vectors`` are left out for SQL."""
    np.save(folder / "neighbours.npy", ids.astype(np.int32))
    np.save(folder / "similarities.npy", cosines)
    rows, ranks = np.nonzero(ids >= 0)
    known = np.flatnonzero(vectors.any(axis=1))
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors[known].reshape(-1)), vectors.shape[1])
    tables = {
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


def write_graph(
    folder: Path, ids: Int[np.ndarray, "titles k"], cosines: Float[np.ndarray, "titles k"]
) -> None:
    """Writes the nearest of the vectors that clusters are made of."""
    np.save(folder / "graph.npy", ids.astype(np.int32))
    np.save(folder / "graph_cosines.npy", cosines)
