"""Reads and writes linear models and matrix factorisations.

    model.safetensors    arrays; the metadata has "model" (the kind of model) and "settings" (JSON)
    NAME.parquet         names of features, labels, users or items, in the column "name"

Nothing is pickled. The folder is replaced atomically.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors import safe_open
from safetensors.numpy import save_file

from storage.atomic import replaced_folder

ARRAYS = "model.safetensors"


@dataclass(frozen=True)
class LinearModelFiles:
    """Content of the files of a saved linear model or matrix factorisation."""

    arrays: dict[str, np.ndarray]
    names: dict[str, list[str]]  # names of features, labels, users or items, by file name without suffix
    settings: dict[str, Any]


def write_linear_model(
    folder: Path,
    model: str,
    arrays: Mapping[str, np.ndarray],
    names: Mapping[str, Sequence[str]],
    settings: Mapping[str, Any],
) -> None:
    """Writes a model to a folder, which is replaced atomically.

    Args:
        folder: The folder to replace; it may be missing.
        model: Kind of model, which ``read_linear_model`` verifies.
        arrays: Arrays by name.
        names: Names of features, labels, users or items, by file name without suffix.
        settings: JSON-serializable settings.
    """
    with replaced_folder(folder) as new_folder:
        for name, rows in names.items():
            table = pa.table({"name": pa.array(rows, pa.string())})
            pq.write_table(table, new_folder / f"{name}.parquet", compression="zstd")
        metadata = {"model": model, "settings": json.dumps(settings), "names": json.dumps(list(names))}
        contiguous_arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        save_file(contiguous_arrays, new_folder / ARRAYS, metadata)


def read_linear_model(folder: Path, model: str) -> LinearModelFiles:
    """Reads the files of a model that ``write_linear_model`` has written.

    Raises:
        ValueError: The folder contains no model, or a kind of model other than ``model``.
    """
    file = folder / ARRAYS
    if not file.exists():
        raise ValueError(f"{folder} holds no {model}: {ARRAYS} is missing. Name the folder it was saved to.")
    with safe_open(file, framework="numpy") as tensors:
        metadata = tensors.metadata()
        if (saved_model := metadata.get("model")) != model:
            raise ValueError(f"{file} is {saved_model or 'no linear model'}, expected {model}")
        arrays = {name: tensors.get_tensor(name) for name in tensors.keys()}  # noqa: SIM118  (no dict)
    names = {
        name: pq.read_table(folder / f"{name}.parquet")["name"].to_pylist()
        for name in json.loads(metadata["names"])
    }
    return LinearModelFiles(arrays, names, json.loads(metadata["settings"]))
