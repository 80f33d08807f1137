"""Files of a Corpus and of a Model for the kinds of programmes (tasks/kinds).

``kinds.safetensors`` has the arrays of a classifier, and in its metadata the JSON text "settings". Arrays
whose name begins with "title." have a row per title. ``programme_kinds.parquet`` has the kinds of each title
at the default precision; in a Model, titles.parquet has its columns instead.
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
OF_TITLES = "title."
COLUMNS = pa.schema(
    [
        ("programme_kinds", pa.list_(pa.string())),
        ("kind_probabilities", pa.list_(pa.float32())),
        ("kind_sources", pa.list_(pa.string())),
    ]
)


def write_kind_arrays(folder: Path, arrays: Mapping[str, np.ndarray], settings: Mapping[str, Any]) -> None:
    """Writes kinds.safetensors."""
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    save_file(contiguous, folder / ARRAYS, {"settings": json.dumps(settings)})


def read_kind_arrays(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
    """Reads kinds.safetensors; None if the folder was written by an older version."""
    if not (folder / ARRAYS).exists():
        return None
    with safe_open(folder / ARRAYS, framework="numpy") as opened:
        arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118  (no dict)
        return arrays, json.loads(opened.metadata()["settings"])


def read_title_kinds(folder: Path) -> pa.Table:
    """Reads the columns of programme_kinds.parquet."""
    return pq.read_table(folder / TITLES, schema=COLUMNS)


def copy_kinds(corpus: Path, model: Path, rows: np.ndarray) -> None:
    """Copies kinds.safetensors to a Model, with the rows of some titles."""
    arrays, settings = read_kind_arrays(corpus) or ({}, {})
    if arrays:
        selected = {
            name: array[rows] if name.startswith(OF_TITLES) else array for name, array in arrays.items()
        }
        write_kind_arrays(model, selected, settings)
