"""The benchmark of tables of other libraries."""

import importlib.util
from pathlib import Path

import pytest

from benchmarks.offload import libraries, rivals
from benchmarks.offload.libraries import LIBRARIES, RULES, Result, measure_library


@pytest.fixture(autouse=True)
def few_steps(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(libraries, "EXACT", (48, 12))


@pytest.mark.parametrize("optimizer", ["adagrad", "adam"])
@pytest.mark.parametrize("name", ["ours, 5 % cached", "ours, all cached"])
def test_our_rows_are_those_of_torch_optim_to_the_bit(name: str, optimizer: str):
    result = measure_library(name, RULES[optimizer], rows=300, tokens=120, steps=3)
    assert (result.differing, result.difference) == (0, 0)
    assert result.seconds > 0 and result.memory >= 0


def test_differences_are_found():
    """SparseAdam adds epsilon to a root without bias correction."""
    result = measure_library("nn.EmbeddingBag(sparse=True)", RULES["adam"], rows=300, tokens=120, steps=3)
    assert result.differing > 50 and result.difference > 0


@pytest.mark.parametrize("name", ["FBGEMM", "TorchRec", "PyTorch-BigGraph"])
@pytest.mark.parametrize("optimizer", ["adagrad", "rowwise_adagrad"])
def test_installed_libraries_learn_the_same_rows(name: str, optimizer: str):
    if optimizer not in LIBRARIES[name].optimizers:
        return
    module = {"FBGEMM": "fbgemm_gpu", "TorchRec": "torchrec", "PyTorch-BigGraph": "torchbiggraph"}[name]
    pytest.importorskip(module, reason=f"needs {name}")
    result = measure_library(name, RULES[optimizer], rows=300, tokens=120, steps=3)
    assert result.difference < 1e-4


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("torchrec") is not None, reason="TorchRec is installed")
def test_a_library_that_is_not_installed_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    assert rivals.run_library("TorchRec", "adagrad", (100, 24, 1)) is None
    assert "TorchRec is not installed" in capfd.readouterr().err


def test_claims_compare_medians_and_name_what_is_missing():
    def result(seconds: float) -> Result:
        return Result("1.8", seconds, seconds, 10, 0, 0)

    results = {rivals.OURS: [result(0.1), result(0.2), result(9)], "FBGEMM": [result(0.1)]}
    claims = rivals.compare("adagrad", (10, 5, 1), [rivals.OURS, "FBGEMM", "TorchRec"], results)
    speed = next(claim for claim in claims if claim.rival == "FBGEMM 1.8")
    assert "10 × 128, 5 ids, steps/s" in speed.name and speed.ratio == pytest.approx(0.5)
    assert claims[-1].rival == "TorchRec: not installed" and claims[-1].rival_value is None
