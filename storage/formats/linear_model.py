"""Reads and writes linear models and matrix factorisations.

    model.safetensors    arrays; the metadata has "model" (the kind of model), "settings" and "names" (JSON)
    NAME.parquet         names of features, labels, users or items, in the column "name"

No file contains pickled objects. The folder is replaced atomically.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.atomic import replaced_folder
from storage.formats.named_arrays import read_arrays, write_arrays

ARRAYS_FILE = "model.safetensors"


@dataclass(frozen=True)
class LinearModelFiles:
    """Content of the files of a saved linear model or matrix factorisation.

    Attributes:
        arrays: Arrays by name.
        names: Names of features, labels, users or items, by file name without suffix.
        settings: Settings of the model, as JSON values.
    """

    arrays: dict[str, np.ndarray]
    names: dict[str, list[str]]
    settings: dict[str, Any]


def write_linear_model(
    folder: Path,
    model: str,
    arrays: Mapping[str, np.ndarray],
    names: Mapping[str, Sequence[str]],
    settings: Mapping[str, Any],
) -> None:
    """Writes a model to a folder. An existing folder is replaced atomically.

    Args:
        folder: Folder of the files; it may be missing.
        model: Kind of model, such as "OnlineSvm". ``read_linear_model`` verifies it.
        arrays: Arrays by name.
        names: Names of features, labels, users or items, by file name without suffix.
        settings: JSON-serializable settings.
    """
    with replaced_folder(folder) as new_folder:
        for file_name, values in names.items():
            table = pa.table({"name": pa.array(values, pa.string())})
            pq.write_table(table, new_folder / f"{file_name}.parquet", compression="zstd")
        metadata = {"model": model, "settings": json.dumps(settings), "names": json.dumps(list(names))}
        write_arrays(new_folder / ARRAYS_FILE, arrays, metadata)


def read_linear_model(folder: Path, model: str) -> LinearModelFiles:
    """Reads the files of a model that ``write_linear_model`` has written.

    Raises:
        ValueError: The folder contains no model, or another kind of model than ``model``.
    """
    file = folder / ARRAYS_FILE
    if not file.exists():
        remedy = "pass the folder in which the model was saved"
        raise ValueError(f"{folder} contains no {model}, because {ARRAYS_FILE} is missing; {remedy}")
    arrays, metadata = read_arrays(file)
    if (saved_model := metadata.get("model")) != model:
        raise ValueError(f"{file} contains {saved_model or 'no linear model'}, expected {model}")
    names = {
        name: pq.read_table(folder / f"{name}.parquet")["name"].to_pylist()
        for name in json.loads(metadata["names"])
    }
    return LinearModelFiles(arrays, names, json.loads(metadata["settings"]))
