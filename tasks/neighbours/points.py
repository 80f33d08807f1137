"""Reads the vectors of titles for neighbour search and clustering."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from storage.arrays import open_array
from storage.shapes import Bool, Float32


def find_placeholders(splits: pa.ChunkedArray) -> Bool[np.ndarray, " titles"]:
    """Returns whether each title is a placeholder, such as "To be announced", by the splits of titles."""
    return np.array(splits.to_pylist()) == "placeholder"


def read_points(
    folder: Path, name: str, is_placeholder: Bool[np.ndarray, " titles"]
) -> Float32[np.ndarray, "titles dim"]:
    """Reads the vectors of titles, and sets those of placeholder titles, such as "To be announced", to zero.

    Titles with a zero vector have no neighbours and are in no cluster.

    Args:
        folder: Folder of a Vectors artifact.
        name: Name of the array, for example "full" (vectors with airing context).
        is_placeholder: Whether each title is a placeholder, which names no programme.

    Raises:
        ValueError: The vectors belong to another corpus.
    """
    points = np.array(open_array(folder, name), dtype=np.float32)
    if len(points) != len(is_placeholder):
        raise ValueError(f"{len(points)} vectors for {len(is_placeholder)} titles: embed this corpus again.")
    points[is_placeholder] = 0
    return points
