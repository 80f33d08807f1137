"""Reads and writes safetensors files that contain NumPy arrays, and texts as metadata."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file


def write_arrays(file: Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> None:
    """Writes arrays and metadata, both by name, to a safetensors file."""
    contiguous_arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    save_file(contiguous_arrays, file, dict(metadata))


def read_arrays(file: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Returns the arrays and the metadata of a safetensors file, both by name."""
    with safe_open(file, framework="numpy") as tensors:
        arrays = {name: tensors.get_tensor(name) for name in tensors.keys()}  # noqa: SIM118  (no dict)
        return arrays, tensors.metadata() or {}
