"""Writes the nearest titles of each title, the artifact NearestTitles.

neighbours.npy      int32 (titles, k), nearest titles by similarity, best first; -1: none
similarities.npy    float32 (titles, k), cosines of these neighbours
graph.npy, graph_cosines.npy    nearest titles and cosines by the vectors used for clustering
neighbours.parquet, vectors.parquet    neighbours, cosines and similarity vectors for SQL
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
    """Writes the nearest titles by similarity, and the similarity vectors except for zero vectors.

    Args:
        folder: Folder of the files.
        ids: Nearest titles of each title, best first; -1: none.
        cosines: Cosine similarities of these titles.
        vectors: Similarity vectors of all titles.
    """
    np.save(folder / "neighbours.npy", ids.astype(np.int32))
    np.save(folder / "similarities.npy", cosines)
    with ExitStack() as stack:
        writers: dict[str, pq.ParquetWriter] = {}
        for block in row_blocks(len(ids)):
            for name, table in _to_tables(block.start, ids[block], cosines[block], vectors[block]).items():
                if name not in writers:
                    writer = pq.ParquetWriter(folder / f"{name}.parquet", table.schema, compression="zstd")
                    writers[name] = stack.enter_context(writer)
                writers[name].write_table(table)


def _to_tables(first: int, ids: np.ndarray, cosines: np.ndarray, vectors: np.ndarray) -> dict[str, pa.Table]:
    """Returns the rows of neighbours.parquet and vectors.parquet for a block of titles from ``first`` on."""
    rows, ranks = np.nonzero(ids >= 0)
    nonzero_rows = np.flatnonzero(vectors.any(axis=1))
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors[nonzero_rows].reshape(-1)), vectors.shape[1])
    neighbours = {
        "title_id": (rows + first).astype(np.int32),
        "neighbour_id": ids[rows, ranks].astype(np.int32),
        "rank": (ranks + 1).astype(np.int16),
        "cosine": cosines[rows, ranks],
    }
    vector_columns = {"title_id": (nonzero_rows + first).astype(np.int32), "vector": lists}
    return {"neighbours": pa.table(neighbours), "vectors": pa.table(vector_columns)}


def write_graph(
    folder: Path, ids: Int[np.ndarray, "titles k"], cosines: Float[np.ndarray, "titles k"]
) -> None:
    """Writes graph.npy and graph_cosines.npy: nearest titles by the vectors that are used for clustering."""
    np.save(folder / "graph.npy", ids.astype(np.int32))
    np.save(folder / "graph_cosines.npy", cosines)
