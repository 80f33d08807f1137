"""Reads and writes safetensors files of NumPy arrays with texts as metadata."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file


def write_arrays(file: Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> None:
    """Writes arrays by name, and metadata by name."""
    contiguous_arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    save_file(contiguous_arrays, file, dict(metadata))


def read_arrays(file: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Returns the arrays of a safetensors file by name, and its metadata by name."""
    with safe_open(file, framework="numpy") as tensors:
        arrays = {name: tensors.get_tensor(name) for name in tensors.keys()}  # noqa: SIM118  (no dict)
        return arrays, tensors.metadata() or {}
