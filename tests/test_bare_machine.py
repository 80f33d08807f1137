"""Design rule 2: training, search and clustering run where torch, NumPy, pyarrow and safetensors are the
only packages.

A new process refuses every other import, then trains a model on a small corpus, embeds the titles, searches
and clusters them.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

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
OURS = ("storage", "tasks", "benchmarks")

PRELUDE = """
import importlib.abc
import sys

class Bare(importlib.abc.MetaPathFinder):
    def find_distributions(self, context):
        return ()

    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        # _sysconfigdata_… contains the platform's name and is in no list
        in_standard_library = top in sys.stdlib_module_names or top.startswith("_sysconfigdata_")
        if not in_standard_library and top not in {allowed!r}:
            raise ModuleNotFoundError(f"{{name}} is not on a bare machine", name=name)
        return None

for name in list(sys.modules):  # what a .pth file of this environment has imported already
    top = name.partition(".")[0]
    if top not in sys.stdlib_module_names and top not in {allowed!r} and not name.startswith("__"):
        del sys.modules[name]
for finder in sys.meta_path:
    if hasattr(finder, "find_distributions"):  # hides the metadata of packages that cannot be imported
        finder.find_distributions = Bare().find_distributions
sys.meta_path.insert(0, Bare())
"""

IMPORTS = """
import importlib, json, pathlib
names = []
packages = "train recurrent search encoder neighbours cluster".split()
for folder in [f"tasks/{package}" for package in packages] + ["storage/tables"]:
    for file in sorted(pathlib.Path(folder).rglob("*.py")):
        if file.name != "task.py" and not file.name.endswith("plot.py"):
            names.append(str(file.with_suffix("")).replace("/", ".").removesuffix(".__init__"))
names += ["storage.artifacts", "storage.home.workspace", "storage.arrays"]
names += ["benchmarks.on_gpu", "benchmarks.offload.measurements"]
names += ["benchmarks.profile_on_gpu", "benchmarks.offload.profiles"]
for name in names:
    importlib.import_module(name)
print(json.dumps(names))
"""

WORK = """
import json, sys
from pathlib import Path
import numpy as np
import pyarrow.parquet as pq

corpus, encoder, out = map(Path, sys.argv[1:])

from tasks.train.__main__ import main
settings = out / "settings.json"
objective = {"name": "label", "batch_size": 96}
settings.write_text(json.dumps({"dim": 16, "epochs": 3, "threads": 1, "objective": objective}))
assert main([str(corpus), str(out / "checkpoint"), str(settings)]) == 0

from tasks.search.search import TitleSearch
from tasks.encoder.title_encoder import TitleEncoder
vectors = TitleEncoder.open(encoder).embed(pq.read_table(corpus / "titles.parquet")["raw_title"].to_pylist())
from storage.formats.corpus import open_corpus
opened, content = TitleEncoder.open(encoder), open_corpus(corpus)
dense = opened.bag.sentence_features(content.sentences, content.descriptions)
for name in ("similarity", "similarity_alone"):
    np.save(encoder / f"{name}.npy", opened.similarity(dense, vectors))
np.save(encoder / "dense.npy", dense)
found = TitleSearch.open(encoder).similar("Mercury kitchenette bakers", 5)

from tasks.cluster import Clusterer
from tasks.cluster.graph import Neighbours
from tasks.cluster.settings import ClusterSettings
from tasks.cluster.stability import cluster_with_seeds
from tasks.neighbours.similarity import top_neighbours
strategy = ClusterSettings().strategy
neighbours = Neighbours(*top_neighbours(vectors, vectors, strategy.neighbours, exclude_self=True))
partition = cluster_with_seeds(strategy, vectors, neighbours, range(2)).typical

from storage.artifacts import Clustering
from storage.home.workspace import Workspace
with Workspace(out / "home").publishing(Clustering, "toy") as draft:
    np.save(draft.folder / "clusters.npy", partition.clusters)
assert Workspace(out / "home").read(Clustering, "toy") == draft.artifact
modules = sorted({name.partition(".")[0] for name in sys.modules})
categories = [neighbour.categories for neighbour in found]
print(json.dumps({"neighbours": categories, "clusters": partition.clusters.tolist(), "modules": modules}))
"""


def bare(code: str, *arguments: Path) -> str:
    """Runs code in which only the allowed packages can be imported; returns its output."""
    prelude = PRELUDE.format(allowed=(*ALLOWED, *THEIRS, *OURS))
    done = subprocess.run(
        [sys.executable, "-c", prelude + code, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


def test_the_import_hook_refuses_other_packages():
    code = (
        "try:\n    import scipy\nexcept ImportError as error:\n    print(error)\nelse:\n    print('imported')"
    )
    assert bare(code) == "scipy is not on a bare machine"


@pytest.mark.slow
def test_training_search_and_clustering_run_with_torch_numpy_and_pyarrow_only(learnt, tmp_path: Path):
    home, _, _, corpus, _, encoder = learnt
    model = tmp_path / "model"
    shutil.copytree(home / encoder.path, model)
    shutil.copyfile(home / corpus.path / "titles.parquet", model / "titles.parquet")
    printed = bare(IMPORTS + WORK, home / corpus.path, model, tmp_path).splitlines()
    names, found = json.loads(printed[0]), json.loads(printed[-1])
    assert {
        "tasks.train.loop",
        "tasks.train.__main__",
        "tasks.cluster.chinese_whispers",
        "tasks.search.search",
        "storage.tables.resident",
        "storage.home.workspace",
    } <= set(names)
    assert found["neighbours"] == [["cookery"]] * 5
    assert (tmp_path / "checkpoint" / "checkpoint.safetensors").exists()
    assert not {"prefect", "pydantic", "duckdb", "mlflow", "scipy", "sklearn", "lxml"} & set(found["modules"])
    labels = [names[0] for names in pq.read_table(model / "titles.parquet")["labels"].to_pylist()]
    assigned = found["clusters"]
    categories = {cluster: set() for cluster in assigned if cluster != -1}
    for label, cluster in zip(labels, assigned, strict=True):
        if cluster != -1:
            categories[cluster].add(label)
    assert categories and all(len(names) == 1 for names in categories.values())
