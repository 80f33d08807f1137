"""Design rule 2: training, search and clustering run where torch, NumPy, pyarrow and safetensors are all there is.

A process of its own raises on every other import, and then does the work: trains a small corpus, embeds it, searches
it and clusters it.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq

from storage.stages import ROOT

ALLOWED = ("torch", "numpy", "pyarrow", "safetensors")
# What those need themselves (torch: its own dependencies; all of it comes with `pip install torch`).
THEIRS = (
    "torchgen",
    "functorch",
    "sympy",
    "mpmath",
    "networkx",
    "jinja2",
    "markupsafe",
    "filelock",
    "fsspec",
    "typing_extensions",
    "setuptools",
    "_distutils_hack",
    "pkg_resources",
    "nvidia",
    "triton",
)
OURS = ("storage", "tasks")

PRELUDE = """
import importlib.abc
import sys

class Bare(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        of_python = top in sys.stdlib_module_names or top.startswith("_sysconfigdata_")  # the latter bears the platform's name, and is in no list
        if not of_python and top not in {allowed!r}:
            raise ModuleNotFoundError(f"{{name}} is not on a bare machine", name=name)
        return None

for name in [name for name in sys.modules if name.partition(".")[0] not in sys.stdlib_module_names and name.partition(".")[0] not in {allowed!r} and not name.startswith("__")]:
    del sys.modules[name]  # what a .pth file of this environment has imported already
sys.meta_path.insert(0, Bare())
"""

IMPORTS = """
import importlib, json, pathlib
names = []
for room in ("tasks/train", "tasks/neighbours", "tasks/cluster", "storage/tables"):
    names += [str(file.with_suffix("")).replace("/", ".").removesuffix(".__init__") for file in sorted(pathlib.Path(room).rglob("*.py")) if file.name != "task.py"]
names += ["storage.artifacts", "storage.workspace", "storage.arrays"]
for name in names:
    importlib.import_module(name)
print(json.dumps(names))
"""

WORK = """
import json, sys
from pathlib import Path
import numpy as np
import pyarrow.parquet as pq

corpus, lexicon, out = map(Path, sys.argv[1:])

from tasks.train.__main__ import main
settings = out / "settings.json"
settings.write_text(json.dumps({"dim": 16, "epochs": 3, "threads": 1, "objective": {"name": "label", "batch": 96}}))
assert main([str(corpus), str(out / "checkpoint"), str(settings)]) == 0

from tasks.neighbours.search import TitleSearch
from tasks.augment.lexicon import Lexicon
vectors = Lexicon.open(lexicon).embed(pq.read_table(corpus / "titles.parquet")["raw_title"].to_pylist())
np.save(lexicon / "vectors.npy", vectors)
found = TitleSearch.open(lexicon).similar("Mercury kitchenette bakers", 5)

from tasks.cluster import Clusterer
from tasks.cluster.graph import Neighbours
from tasks.cluster.settings import ClusterSettings
from tasks.cluster.stability import several_seeds
from tasks.neighbours.similarity import top_neighbours
strategy = ClusterSettings().strategy
neighbours = Neighbours(*top_neighbours(vectors, vectors, strategy.neighbours, exclude_self=True))
partition = several_seeds(strategy, vectors, neighbours, range(2)).typical

from storage.artifacts import Clustering
from storage.workspace import Workspace
with Workspace(out / "home").publishing(Clustering, "toy") as draft:
    np.save(draft.folder / "clusters.npy", partition.labels)
assert Workspace(out / "home").read(Clustering, "toy") == draft.artifact
modules = sorted({name.partition(".")[0] for name in sys.modules})
print(json.dumps({"neighbours": [neighbour.categories for neighbour in found], "clusters": partition.labels.tolist(), "modules": modules}))
"""


def bare(code: str, *arguments: Path) -> str:
    """Runs code where only the allowed packages can be imported; what it printed last."""
    prelude = PRELUDE.format(allowed=(*ALLOWED, *THEIRS, *OURS))
    done = subprocess.run([sys.executable, "-c", prelude + code, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip().splitlines()[-1]


def test_the_hook_does_refuse():
    code = "try:\n    import scipy\nexcept ImportError as error:\n    print(error)\nelse:\n    print('imported')"
    assert bare(code) == "scipy is not on a bare machine"
    assert bare("import torch, numpy, pyarrow.parquet, safetensors.torch; print('all there')") == "all there"


def test_every_file_of_these_rooms_imports():
    names = json.loads(bare(IMPORTS))
    assert {"tasks.train.loop", "tasks.train.__main__", "tasks.cluster.chinese_whispers", "tasks.neighbours.search", "storage.tables.resident", "storage.workspace"} <= set(names)


def test_they_do_their_work(learnt, tmp_path: Path):
    home, _, _, corpus, _, lexicon = learnt
    model = tmp_path / "model"
    shutil.copytree(home / lexicon.path, model)
    shutil.copyfile(home / corpus.path / "titles.parquet", model / "titles.parquet")
    found = json.loads(bare(WORK, home / corpus.path, model, tmp_path))
    assert found["neighbours"] == [["cookery"]] * 5
    assert (tmp_path / "checkpoint" / "checkpoint.safetensors").exists()
    assert not {"prefect", "pydantic", "duckdb", "mlflow", "scipy", "sklearn", "lxml"} & set(found["modules"])
    labels = [names[0] for names in pq.read_table(model / "titles.parquet")["labels"].to_pylist()]
    groups = {cluster: {label for label, own in zip(labels, found["clusters"], strict=True) if own == cluster} for cluster in set(found["clusters"]) - {-1}}
    assert groups and all(len(own) == 1 for own in groups.values())  # no cluster mixes categories
