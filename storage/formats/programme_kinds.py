"""Reads and writes the classifier of kinds of programmes (film, series, news …) and the kinds of each title.

``kinds.safetensors`` has the arrays of the classifier, and the JSON text "settings" in its metadata. Arrays
whose name begins with "title." have a row per title. ``programme_kinds.parquet`` in a Corpus has the kinds of
each title at the default minimum precision; in a Model, titles.parquet contains these columns.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors import safe_open
from safetensors.numpy import save_file

ARRAYS, TITLES = "kinds.safetensors", "programme_kinds.parquet"
TITLE_PREFIX = "title."  # of names of arrays with a row per title
COLUMNS = pa.schema(
    [
        ("programme_kinds", pa.list_(pa.string())),
        ("kind_probabilities", pa.list_(pa.float32())),
        ("kind_sources", pa.list_(pa.string())),
    ]
)


def write_kind_arrays(folder: Path, arrays: Mapping[str, np.ndarray], settings: Mapping[str, Any]) -> None:
    """Writes kinds.safetensors: the arrays of the classifier of kinds by name, and its settings as JSON."""
    contiguous_arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    save_file(contiguous_arrays, folder / ARRAYS, {"settings": json.dumps(settings)})


def read_kind_arrays(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
    """Reads arrays and settings from kinds.safetensors; returns None if an older version wrote the folder."""
    if not (folder / ARRAYS).exists():
        return None
    with safe_open(folder / ARRAYS, framework="numpy") as tensors:
        arrays = {name: tensors.get_tensor(name) for name in tensors.keys()}  # noqa: SIM118  (no dict)
        return arrays, json.loads(tensors.metadata()["settings"])


def read_title_kinds(folder: Path) -> pa.Table:
    """Reads kinds, probabilities and sources of each title (COLUMNS) from programme_kinds.parquet."""
    return pq.read_table(folder / TITLES, schema=COLUMNS)


def copy_kinds(corpus: Path, model: Path, rows: np.ndarray) -> None:
    """Copies kinds.safetensors from a Corpus folder to a Model folder, with only the titles ``rows``."""
    arrays, settings = read_kind_arrays(corpus) or ({}, {})
    if arrays:
        selected_arrays = {
            name: array[rows] if name.startswith(TITLE_PREFIX) else array for name, array in arrays.items()
        }
        write_kind_arrays(model, selected_arrays, settings)
