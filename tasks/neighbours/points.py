"""Reads title vectors for the neighbour search."""

from pathlib import Path

import numpy as np

from storage.arrays import open_array
from storage.shapes import Bool, Float32


def read_points(
    folder: Path, name: str, placeholder: Bool[np.ndarray, " titles"]
) -> Float32[np.ndarray, "titles dim"]:
    """Reads an array of a Vectors folder. Rows of placeholders are zeroed, so they have no neighbours.

    Raises:
        ValueError: The vectors belong to another corpus.
    """
    points = np.array(open_array(folder, name), dtype=np.float32)
    if len(points) != len(placeholder):
        raise ValueError(f"{len(points)} vectors for {len(placeholder)} titles: embed this corpus again.")
    points[placeholder] = 0
    return points
