"""Linear models round-trip, and are written completely or not at all."""

from pathlib import Path

import numpy as np
import pytest

from storage.formats.linear_model import read_linear_model, write_linear_model

WEIGHTS = np.arange(6, dtype=np.float32).reshape(3, 2)


def test_arrays_names_and_settings_come_back(tmp_path: Path) -> None:
    names = {"features": ["a", "ß", "\n"], "labels": ["news", "film"]}
    write_linear_model(tmp_path / "svm", "OnlineSvm", {"weights": WEIGHTS.T}, names, {"cost": 0.1})
    files = read_linear_model(tmp_path / "svm", "OnlineSvm")
    assert files.arrays["weights"].tolist() == WEIGHTS.T.tolist() and files.arrays.keys() == {"weights"}
    assert (files.names, files.settings) == (names, {"cost": 0.1})
    assert sorted(file.name for file in tmp_path.rglob("*") if file.is_file()) == [
        "features.parquet", "labels.parquet", "model.safetensors",
    ]  # fmt: skip


def test_a_failed_save_leaves_the_model_before(tmp_path: Path) -> None:
    folder = tmp_path / "svm"
    write_linear_model(folder, "OnlineSvm", {"weights": WEIGHTS}, {"features": ["a"]}, {})
    with pytest.raises(TypeError):
        write_linear_model(
            folder, "OnlineSvm", {"weights": WEIGHTS + 1}, {"features": ["b"]}, {"no JSON": {1}}
        )
    files = read_linear_model(folder, "OnlineSvm")
    assert (files.arrays["weights"] == WEIGHTS).all() and files.names == {"features": ["a"]}
    assert [file.name for file in tmp_path.iterdir()] == ["svm"]


def test_a_folder_of_another_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="contains no OnlineSvm"):
        read_linear_model(tmp_path, "OnlineSvm")
    write_linear_model(tmp_path / "other", "Factorisation", {"weights": WEIGHTS}, {}, {})
    with pytest.raises(ValueError, match="contains Factorisation, expected OnlineSvm"):
        read_linear_model(tmp_path / "other", "OnlineSvm")
