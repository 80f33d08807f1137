"""A pool finds the same nearest titles as one process, byte for byte."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage.artifacts import Corpus, NearestTitles, Vectors
from storage.home.workspace import Workspace
from tasks.neighbours import index, pieces, task
from tasks.neighbours.index import SearchSettings
from tests.workers import POOLS, kill_a_worker, skip_without

pytest.importorskip("faiss", reason="faiss-cpu is not installed")
TITLES, PIECE = 6_000, 400


def publish(home: Path) -> tuple[Corpus, Vectors]:
    """Publishes titles around 40 centres, of which one is a placeholder and some have no vector."""
    rng = np.random.default_rng(0)
    workspace = Workspace(home, create=True)
    with workspace.publishing(Corpus, "corpus") as corpus:
        split = ["train"] * (TITLES - 1) + ["placeholder"]
        pq.write_table(pa.table({"split": split}), corpus.folder / "titles.parquet")
    with workspace.publishing(Vectors, "vectors") as vectors:
        for name, dim in (("full", 16), ("similarity", 24)):
            rows = rng.normal(size=(40, dim))[rng.integers(40, size=TITLES)]
            rows += 0.6 * rng.normal(size=(TITLES, dim))
            rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
            rows[[5, 777]] = 0
            np.save(vectors.folder / f"{name}.npy", rows)
    return corpus.artifact, vectors.artifact


def run(home: Path, settings: SearchSettings, without_run) -> tuple[NearestTitles, dict[str, bytes]]:
    nearest = without_run(task.find_nearest, str(home), *publish(home), 10, settings)
    files = (home / nearest.path).iterdir()
    return nearest, {file.name: file.read_bytes() for file in files if file.name != "artifact.json"}


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (index, pieces):
        monkeypatch.setattr(module, "QUERIES_PER_BATCH", PIECE)


@pytest.mark.slow
@pytest.mark.parametrize("pool", POOLS)
def test_two_workers_publish_the_same_bytes_even_if_one_is_killed(
    tmp_path: Path, without_run, pool, monkeypatch: pytest.MonkeyPatch
):
    skip_without(pool)
    notes, search = [], pieces.search_pieces

    def search_and_kill(*arguments):
        for event in search(*arguments):
            if not notes:
                kill_a_worker()
            notes.append(event.note)
            yield event

    monkeypatch.setattr(task, "search_pieces", search_and_kill)
    options = {"method": "approximate", "probes": 8}
    here = run(tmp_path / "here", SearchSettings(**options), without_run)
    assert not notes
    apart = run(tmp_path / "apart", SearchSettings(workers=2, pool=pool, **options), without_run)
    assert apart == here and len(here[1]) == 6
    assert notes == 2 * [f"{step} of 15 pieces searched" for step in range(1, 16)]
