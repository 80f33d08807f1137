"""Reads the vectors of titles for neighbour search and clustering."""

from pathlib import Path

import numpy as np

from storage.arrays import open_array
from storage.shapes import Bool, Float32


def read_points(
    folder: Path, name: str, is_placeholder: Bool[np.ndarray, " titles"]
) -> Float32[np.ndarray, "titles dim"]:
    """Reads title vectors from a Vectors folder. Titles that name no programme get zero vectors.

    A title with a zero vector, such as "To be announced", has no neighbours.

    Args:
        folder: Folder of the Vectors.
        name: Name of the array, for example "full" (vectors with airing context).
        is_placeholder: Whether the title names no programme.

    Raises:
        ValueError: The vectors belong to another corpus.
    """
    points = np.array(open_array(folder, name), dtype=np.float32)
    if len(points) != len(is_placeholder):
        raise ValueError(f"{len(points)} vectors for {len(is_placeholder)} titles: embed this corpus again.")
    points[is_placeholder] = 0
    return points
