"""The NearestTitles on disk.

neighbours.npy      int32 (titles, k), nearest by similarity first, -1 where there is none
similarities.npy    float32 (titles, k), their cosines
graph.npy, graph_cosines.npy    the same of the vectors that clusters are made of
neighbours.parquet, vectors.parquet    the first two and the vectors of similarity, for SQL
"""

from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.arrays import row_blocks
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
    with ExitStack() as files:
        writers: dict[str, pq.ParquetWriter] = {}
        for own in row_blocks(len(ids)):
            for name, table in _tables(own.start, ids[own], cosines[own], vectors[own]).items():
                if name not in writers:
                    writer = pq.ParquetWriter(folder / f"{name}.parquet", table.schema, compression="zstd")
                    writers[name] = files.enter_context(writer)
                writers[name].write_table(table)


def _tables(first: int, ids: np.ndarray, cosines: np.ndarray, vectors: np.ndarray) -> dict[str, pa.Table]:
    """Rows of the tables for SQL, of titles from ``first`` on."""
    rows, ranks = np.nonzero(ids >= 0)
    known = np.flatnonzero(vectors.any(axis=1))
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors[known].reshape(-1)), vectors.shape[1])
    neighbours = {
        "title_id": (rows + first).astype(np.int32),
        "neighbour_id": ids[rows, ranks].astype(np.int32),
        "rank": (ranks + 1).astype(np.int16),
        "cosine": cosines[rows, ranks],
    }
    vectors_of = {"title_id": (known + first).astype(np.int32), "vector": lists}
    return {"neighbours": pa.table(neighbours), "vectors": pa.table(vectors_of)}


def write_graph(
    folder: Path, ids: Int[np.ndarray, "titles k"], cosines: Float[np.ndarray, "titles k"]
) -> None:
    """Writes the nearest of the vectors that clusters are made of."""
    np.save(folder / "graph.npy", ids.astype(np.int32))
    np.save(folder / "graph_cosines.npy", cosines)
