"""An MLflow model that works away from the checkout: model files, the code that reads them, signature and requirements.

The code carried along is the import closure of deployments/title_model.py (read from the syntax tree, as stages.py does for
caching), so a model holds what it needs and nothing else. Requirements are the packages which that closure imports, at the
versions installed here: inferring them, MLflow's habit, would load the model in a second process and take half a minute.
"""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storage.stages import DISTRIBUTIONS, ROOT, import_closure

if TYPE_CHECKING:
    from mlflow.models import ModelSignature

CODE = ROOT / "deployments" / "title_model.py"
DEFAULT_K = 10
OPTIONAL = {"cupy", "faiss-cpu"}  # imported inside functions that a served model never calls, or does without


def write_model(folder: Path, code: Path, model_folder: Path, *, example_title: str, metadata: Mapping[str, Any], model_id: str, run_id: str) -> None:
    """Writes the MLflow model.

    Args:
        folder: Where it is written; must not exist.
        code: The file that MLflow runs to serve it; what it imports of ours is carried along.
        model_folder: What TitleSearch opens.
        example_title: The title of the input example.
        metadata: Kept in the file MLmodel.
        model_id: MLflow's logged model that it becomes.
        run_id: The run that made it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLflow warns of its own type hints while it is imported
        import mlflow.pyfunc
    import pandas
    from mlflow.models.model import Model

    staged = folder.with_name(folder.name + ".staged")
    try:
        model = Model(model_uuid=model_id, model_id=model_id, run_id=run_id)
        mlflow.pyfunc.save_model(
            path=str(folder),
            mlflow_model=model,
            python_model=str(code),
            code_paths=[str(package) for package in carry_code(code, staged)] or None,
            artifacts={"model": str(model_folder)},
            signature=signature(),
            input_example=(pandas.DataFrame({"title": [example_title]}), {"k": DEFAULT_K}),
            pip_requirements=requirements(code),
            metadata=json.loads(json.dumps(metadata)),
        )
        for cache in list(folder.rglob("__pycache__")):
            shutil.rmtree(cache, ignore_errors=True)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def carry_code(file: Path, target: Path) -> list[Path]:
    """Copies our files that ``file`` imports, and the lists beside them, keeping the packages' shape.

    Returns:
        The top-level packages in ``target``, such as target/tasks.
    """
    files, _ = import_closure(file)
    target.mkdir(parents=True, exist_ok=True)
    for source in sorted(files - {file}):
        for path in [source, *(lists for pattern in ("*.txt", "*.csv") for lists in source.parent.glob(pattern))]:
            copy = target / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    return sorted(path for path in target.iterdir() if path.is_dir())


def requirements(file: Path) -> list[str]:
    """``name==version`` of MLflow and of each package that the closure of ``file`` imports, without build labels such as +cpu."""
    _, packages = import_closure(file)
    names = sorted(({DISTRIBUTIONS.get(package, package) for package in packages} | {"mlflow"}) - OPTIONAL)
    return [f"{name}=={importlib.metadata.version(name).split('+')[0]}" for name in names]


def signature() -> ModelSignature:
    """Input: a column ``title``. Parameter: ``k``. Output: the title, its neighbours, nearest first, or why there are none, one row a title."""
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema
    from mlflow.types.schema import Array, Object, Property

    neighbour = Object(
        [
            Property("title", DataType.string),
            Property("cosine", DataType.double),
            Property("categories", Array(DataType.string)),
            Property("channels", Array(DataType.string)),
        ]
    )
    return ModelSignature(
        inputs=Schema([ColSpec(DataType.string, "title")]),
        outputs=Schema(
            [
                ColSpec(DataType.string, "title"),
                ColSpec(Array(neighbour), "neighbours", required=False),
                ColSpec(DataType.string, "reason", required=False),
            ]
        ),
        params=ParamSchema([ParamSpec("k", DataType.long, DEFAULT_K)]),
    )
