"""Writes the files of the artifact NearestTitles: the nearest titles of each title.

neighbours.npy        int32 (titles, k), nearest titles by similarity vectors, best first; -1: none
similarities.npy      float32 (titles, k), cosines of the neighbours in neighbours.npy
graph.npy             int32 (titles, k), nearest titles by the vectors for clustering
graph_cosines.npy     float32 (titles, k), cosines of the neighbours in graph.npy
neighbours.parquet    neighbours.npy and similarities.npy, for SQL
vectors.parquet       similarity vectors, for SQL
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
    """Writes the nearest titles by similarity vectors, and the similarity vectors that are not zero.

    Args:
        folder: Folder of the files.
        ids: Ids of the nearest titles of each title, best first; -1: none.
        cosines: Cosine similarity of each title and its nearest titles.
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


def _to_tables(
    first_id: int, ids: np.ndarray, cosines: np.ndarray, vectors: np.ndarray
) -> dict[str, pa.Table]:
    """Returns the rows of neighbours.parquet and vectors.parquet for a block of titles.

    The first title of the block has the id ``first_id``.
    """
    rows, ranks = np.nonzero(ids >= 0)
    nonzero_rows = np.flatnonzero(vectors.any(axis=1))
    flat_vectors = pa.array(vectors[nonzero_rows].reshape(-1))
    neighbour_columns = {
        "title_id": (rows + first_id).astype(np.int32),
        "neighbour_id": ids[rows, ranks].astype(np.int32),
        "rank": (ranks + 1).astype(np.int16),
        "cosine": cosines[rows, ranks],
    }
    vector_columns = {
        "title_id": (nonzero_rows + first_id).astype(np.int32),
        "vector": pa.FixedSizeListArray.from_arrays(flat_vectors, vectors.shape[1]),
    }
    return {"neighbours": pa.table(neighbour_columns), "vectors": pa.table(vector_columns)}


def write_graph(
    folder: Path, ids: Int[np.ndarray, "titles k"], cosines: Float[np.ndarray, "titles k"]
) -> None:
    """Writes graph.npy and graph_cosines.npy: the nearest titles by the vectors that are clustered."""
    np.save(folder / "graph.npy", ids.astype(np.int32))
    np.save(folder / "graph_cosines.npy", cosines)
