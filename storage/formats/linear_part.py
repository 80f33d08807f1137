"""Reads and writes linear.safetensors: the linear models that predict categories.

The name of an array begins with the form of its input: title_only or title_context (with airing context). The
metadata "labels" is a JSON list of the names of the labels. Models of older versions do not have this file.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from storage.formats.named_arrays import read_arrays, write_arrays

FILE = "linear.safetensors"


def write_linear_part(folder: Path, labels: Sequence[str], arrays: Mapping[str, np.ndarray]) -> None:
    """Writes linear.safetensors: the arrays by name, and the names of the labels."""
    write_arrays(folder / FILE, arrays, {"labels": json.dumps([*labels], ensure_ascii=False)})


def read_linear_part(folder: Path) -> tuple[list[str], dict[str, np.ndarray]] | None:
    """Returns the names of the labels, and the arrays by name; None if linear.safetensors is missing."""
    if not (folder / FILE).exists():
        return None
    arrays, metadata = read_arrays(folder / FILE)
    return json.loads(metadata["labels"]), arrays
