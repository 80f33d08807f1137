"""Reads and writes the classifier of kinds of programmes (film, series, news …) and the kinds of each title.

The file ``kinds.safetensors`` contains the arrays of the classifier and, in its metadata, the JSON text
"settings". Arrays whose name begins with "title." have one row per title. The file
``programme_kinds.parquet`` of a Corpus contains the kinds of each title, predicted at the default minimum
precision. In a Model, titles.parquet contains these columns.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.formats.named_arrays import read_arrays, write_arrays

ARRAYS_FILE, TITLES_FILE = "kinds.safetensors", "programme_kinds.parquet"
TITLE_PREFIX = "title."  # prefix of the names of arrays with one row per title
KIND_COLUMNS = pa.schema(
    [
        ("programme_kinds", pa.list_(pa.string())),
        ("kind_probabilities", pa.list_(pa.float32())),
        ("kind_sources", pa.list_(pa.string())),
    ]
)


def write_kind_arrays(folder: Path, arrays: Mapping[str, np.ndarray], settings: Mapping[str, Any]) -> None:
    """Writes kinds.safetensors: the arrays of the classifier of kinds by name, and its settings as JSON."""
    write_arrays(folder / ARRAYS_FILE, arrays, {"settings": json.dumps(settings)})


def read_kind_arrays(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
    """Returns the arrays and the settings of kinds.safetensors; None if the folder lacks this file.

    Older versions did not write the file.
    """
    if not (folder / ARRAYS_FILE).exists():
        return None
    arrays, metadata = read_arrays(folder / ARRAYS_FILE)
    return arrays, json.loads(metadata["settings"])


def read_title_kinds(folder: Path) -> pa.Table:
    """Reads programme_kinds.parquet: kinds, probabilities and sources of each title (KIND_COLUMNS)."""
    return pq.read_table(folder / TITLES_FILE, schema=KIND_COLUMNS)


def copy_kinds(corpus: Path, model: Path, rows: np.ndarray) -> None:
    """Copies kinds.safetensors from a Corpus folder to a Model folder.

    Arrays with one row per title are copied for the row indices ``rows`` only.
    """
    arrays, settings = read_kind_arrays(corpus) or ({}, {})
    if arrays:
        selected_arrays = {
            name: array[rows] if name.startswith(TITLE_PREFIX) else array for name, array in arrays.items()
        }
        write_kind_arrays(model, selected_arrays, settings)
