"""The command ``doctor`` checks whether CuPy works."""

import sys
from pathlib import Path

import pytest
import torch

from flows.cli.doctor import _check_devices

COMPILER = """
class CompileException(Exception): ...
class cuda:
    class nvrtc:
        def createProgram(source, name, headers, includes): return source
        def compileProgram(program, options):
            assert "gather" in program and options == ["-arch=compute_80"]
            {then}
"""


@pytest.mark.skipif(
    torch.cuda.is_available(), reason="this machine has a CUDA device, which runs the kernels"
)
@pytest.mark.parametrize(
    ("code", "state", "says"),
    [
        ("raise ImportError('built for another NumPy')", "bad", "built for another NumPy"),
        (COMPILER.format(then="raise CompileException('libnvrtc.so.12')"), "bad", "libnvrtc.so.12"),
        (COMPILER.format(then="pass"), "ok", "compiles the kernels"),
    ],
)
def test_the_doctor_compiles_the_kernels(code: str, state: str, says: str, monkeypatch, tmp_path: Path):
    (tmp_path / "cupy.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    (finding,) = (each for each in _check_devices() if each.about == "CuPy")
    assert finding.state == state and says in finding.text
    assert ("extra `gpu`" in finding.text) == (state == "bad")
