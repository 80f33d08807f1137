"""Reads and writes linear.safetensors: the linear models of the predictor of categories.

The names of arrays begin with the form of the input, title_only or title_context. The metadata has the JSON
list "labels", the names of the labels. Models of older versions lack the file.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

FILE = "linear.safetensors"


def write_linear_part(folder: Path, labels: Sequence[str], arrays: Mapping[str, np.ndarray]) -> None:
    """Writes linear.safetensors; ``labels`` are the names of the labels."""
    contiguous_arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    save_file(contiguous_arrays, folder / FILE, {"labels": json.dumps([*labels], ensure_ascii=False)})


def read_linear_part(folder: Path) -> tuple[list[str], dict[str, np.ndarray]] | None:
    """Returns the names of labels and the arrays by name; None if an older version wrote the folder."""
    if not (folder / FILE).exists():
        return None
    with safe_open(folder / FILE, framework="numpy") as tensors:
        arrays = {name: tensors.get_tensor(name) for name in tensors.keys()}  # noqa: SIM118  (no dict)
        return json.loads(tensors.metadata()["labels"]), arrays
