"""The folder is a library: a copy of it, under another name and without the project, trains."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from storage.tables.segment_sums import stable_order

FOLDER = Path(__file__).parents[3] / "storage" / "tables"
REQUIRED = {"torch", "numpy", "safetensors", "cupy"}

TRAINING = """
import torch
from rows import OffloadedEmbedding

class SGD:
    learning_rate = 4.0

    def initial_state(self, rows):
        return {}

    def update_(self, rows, grad, state, rate, step):
        rows.sub_(grad * rate)

torch.manual_seed(1)
embedding = OffloadedEmbedding(100, 4, optimizer=SGD(), cache_rows=10, device="cpu")
target, losses = torch.randn(100, 4), []
for ids in embedding.prefetch((torch.randint(100, (32,)) for _ in range(200)), ids=lambda ids: ids):
    loss = (embedding(ids) - target[ids]).square().sum(1).mean()
    loss.backward()
    embedding.step()
    losses.append(loss.item())
assert losses[-1] < losses[0] / 100, losses
"""


def test_a_copy_of_the_folder_trains(tmp_path: Path):
    shutil.copytree(FOLDER, copy := tmp_path / "rows")
    imported = set()
    for file in copy.glob("*.py"):
        text = file.read_text(encoding="utf-8").replace("storage.tables", "rows")
        file.write_text(text, encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom):
                imported.add(node.module or "")
            elif isinstance(node, ast.Import):
                imported |= {name.name for name in node.names}
    assert {name.partition(".")[0] for name in imported} - sys.stdlib_module_names == REQUIRED | {"rows"}
    command = [sys.executable, "-c", TRAINING]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=120, encoding="utf-8")


@pytest.mark.parametrize("below", [1, 7, 1 << 16, (1 << 16) + 1, 1 << 33])
def test_order_is_a_stable_sorts(below: int):
    values = np.random.default_rng(0).integers(0, below, 5000)
    values[:100] = values[100:200]
    assert np.array_equal(stable_order(values, below), np.argsort(values, kind="stable"))
    assert len(stable_order(values[:0], below)) == 0
