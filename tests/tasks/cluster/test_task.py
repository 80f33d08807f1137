"""The stage cluster: published files and repeated runs."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from prefect.logging import disable_run_logger

from storage.artifacts import Clustering, Corpus, Vectors
from storage.formats.clustering import read_clusters, read_subclusters
from storage.home.workspace import Workspace
from storage.stages import previous_artifact
from tasks.cluster import DBSCAN, ChineseWhispers, parts
from tasks.cluster.settings import ClusterSettings
from tasks.cluster.task import STAGE, ClusteringInputs, cluster
from tasks.neighbours import task as neighbours_task
from tasks.neighbours.index import SearchSettings
from tasks.neighbours.task import find_nearest

GROUPS = ["Kitchen", "Football", "Whales", "Murder"]


def publish(home: Path, vectors_kept: int = 82, name: str = "x", turn: int = 0) -> tuple[Corpus, Vectors]:
    """Four groups of twenty titles, a placeholder that looks like the first of them, and a title nobody
    knows."""
    rng = np.random.default_rng(0)
    rows = np.repeat(np.eye(4, 16), 20, axis=0) + 0.1 * rng.normal(size=(80, 16))
    vectors = np.zeros((82, 16), dtype=np.float32)
    vectors[:80] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    vectors[80] = vectors[0]
    titles = [f"The {GROUPS[row // 20]} {row}" for row in range(80)] + ["Paid Programming", "Zzz"]
    workspace = Workspace(home)
    if turn:  # another run: the last titles of the first group are gone, and everything has turned in space
        vectors[20 - turn : 20] = 0
        vectors = np.roll(vectors, turn, axis=1)
    with workspace.publishing(Corpus, name) as corpus:
        table = {
            "title": titles,
            "show_key": [title.casefold() for title in titles],
            "split": ["train"] * 80 + ["placeholder", "train"],
            "labels": [[GROUPS[row // 20].casefold()] for row in range(80)] + [[], []],
            "channels": pa.array([[]] * 82, pa.list_(pa.string())),
            "context": [["duration:30"]] * 82,
            "language": ["en"] * 82,
        }
        pq.write_table(pa.table(table), corpus.folder / "titles.parquet")
    with workspace.publishing(Vectors, name) as draft:
        np.save(draft.folder / "full.npy", vectors[:vectors_kept])
        np.save(draft.folder / "similarity.npy", np.roll(vectors, 1, axis=1)[:vectors_kept])
    return corpus.artifact, draft.artifact


def run(home: Path, corpus: Corpus, vectors: Vectors, settings: ClusterSettings):
    """Runs the stage with the previous artifact, as the flow does."""
    with disable_run_logger():
        nearest = find_nearest.fn(str(home), corpus, vectors, settings.strategy.neighbours, settings.search)
        inputs = ClusteringInputs(corpus=corpus, vectors=vectors, nearest=nearest, settings=settings)
        return cluster.fn(str(home), inputs, previous_artifact(str(home), STAGE, inputs))


def nearest_folder(home: Path, artifact: Clustering) -> Path:
    """Returns the folder of the nearest titles from which a clustering was made."""
    return home / str(Workspace(home).details(artifact)["nearest"])


@pytest.mark.parametrize(
    "strategy", [ChineseWhispers(neighbours=8), DBSCAN(neighbours=8)], ids=lambda strategy: strategy.name
)
def test_the_published_folder(tmp_path: Path, strategy):
    artifact = run(tmp_path, *publish(tmp_path), ClusterSettings(strategy=strategy))
    folder = Workspace(tmp_path).folder(artifact)
    clusters = np.load(folder / "clusters.npy")
    near = nearest_folder(tmp_path, artifact)
    neighbours, similarities = np.load(near / "neighbours.npy"), np.load(near / "similarities.npy")
    assert (clusters.dtype, neighbours.dtype, similarities.dtype) == (np.int32, np.int32, np.float32)
    assert neighbours.shape == similarities.shape == (82, 8)
    assert (clusters[80:] == -1).all() and (neighbours[80:] == -1).all() and not (neighbours == 80).any()
    assert artifact.counts["clusters"] == 4 and artifact.counts["titles"] == 82
    for number, group in enumerate(json.loads((folder / "clusters.json").read_text(encoding="utf-8"))):
        members = np.flatnonzero(clusters == number)
        kind = GROUPS[int(np.bincount(members // 20).argmax())]
        assert group["id"] == number and group["size"] == len(members) and len(group["titles"]) == 5
        assert group["name"].startswith(kind) and (group["label"], group["label_share"]) == (
            kind.casefold(),
            1.0,
        )
    details = Workspace(tmp_path).details(artifact)
    assert not details["collapsed"]
    assert details["noise_share"] == artifact.counts["noise"] / 80 and details["neighbour_recall"] == 1.0
    if isinstance(strategy, DBSCAN):
        assert details["run_to_run_ari"] is None and details["seeds"] == 1  # DBSCAN ignores the seed
        assert (
            details["density"]["min_samples"] == 5
            and f"eps {details['density']['eps']:.4g} was suggested" in details["note"]
        )
    else:
        assert details["run_to_run_ari"] > 0.9 and details["seeds"] == 3
        assert details["density"] is None


def test_an_approximate_search_reports_its_recall(tmp_path: Path):
    pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    corpus, vectors = publish(tmp_path)
    settings = ClusterSettings(search=SearchSettings(method="approximate", probes=1))
    artifact = run(tmp_path, corpus, vectors, settings)
    assert (
        artifact.counts["clusters"] == 4
        and 0 < Workspace(tmp_path).details(artifact)["neighbour_recall"] <= 1
    )


def test_the_recall_of_clusters_is_that_of_the_search_by_vectors_with_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    recalls = iter([0.75, 0.5])  # of the vectors with context, and of the similarity vectors
    monkeypatch.setattr(neighbours_task, "sampled_recall", lambda points, ids: next(recalls))
    corpus, vectors = publish(tmp_path)
    workspace = Workspace(tmp_path)
    similarity = np.hstack([np.load(workspace.folder(vectors) / "full.npy"), np.zeros((82, 4), np.float32)])
    np.save(workspace.folder(vectors) / "similarity.npy", similarity)
    settings = ClusterSettings(search=SearchSettings(method="approximate"))
    details = workspace.details(run(tmp_path, corpus, vectors, settings))
    assert details["neighbour_recall"] == 0.75
    nearest = json.loads((tmp_path / details["nearest"] / "artifact.json").read_text(encoding="utf-8"))
    assert nearest["details"]["recall"] == 0.5


def test_one_setting_gives_one_digest_and_another_seed_another_place(tmp_path: Path):
    corpus, vectors = publish(tmp_path)
    first = run(tmp_path, corpus, vectors, ClusterSettings())
    assert run(tmp_path, corpus, vectors, ClusterSettings()) == first
    assert run(tmp_path, corpus, vectors, ClusterSettings(seed=9)).path != first.path


def test_vectors_of_another_corpus_are_refused(tmp_path: Path):
    corpus, vectors = publish(tmp_path, vectors_kept=50)
    with pytest.raises(ValueError, match="50 vectors for 82 titles"):
        run(tmp_path, corpus, vectors, ClusterSettings())


def test_the_next_run_keeps_identities_and_reports_the_share_that_stayed(tmp_path: Path):
    first = run(tmp_path, *publish(tmp_path), ClusterSettings())
    second = run(tmp_path, *publish(tmp_path, name="y", turn=3), ClusterSettings())
    workspace = Workspace(tmp_path)
    one, other = (
        {
            group["name"]: group
            for group in json.loads(
                (workspace.folder(artifact) / "clusters.json").read_text(encoding="utf-8")
            )
        }
        for artifact in (first, second)
    )
    assert one.keys() == other.keys() == set(GROUPS)
    assert {name: (group["identity"], group["colour"]) for name, group in one.items()} == {
        name: (group["identity"], group["colour"]) for name, group in other.items()
    }
    assert other["Kitchen"]["id"] == 3 != one["Kitchen"]["id"]  # it is the smallest now
    assert workspace.details(first)["stayed_share"] is None and workspace.details(second)[
        "stayed_share"
    ] == pytest.approx(77 / 80)
    assert (
        run(tmp_path, *publish(tmp_path), ClusterSettings()) == first
    )  # it has no previous one, whatever came later


def test_clusters_use_context_and_neighbours_use_similarity(tmp_path: Path):
    corpus, vectors = publish(tmp_path)
    rows = np.zeros((82, 20), dtype=np.float32)
    rows[np.arange(80), np.arange(80) % 4] = 1  # by similarity, with a meaning, every fourth is alike
    workspace = Workspace(tmp_path)
    np.save(workspace.folder(vectors) / "similarity.npy", rows)
    artifact = run(tmp_path, corpus, vectors, ClusterSettings())
    folder, near = workspace.folder(artifact), nearest_folder(tmp_path, artifact)
    clusters, neighbours = np.load(folder / "clusters.npy"), np.load(near / "neighbours.npy")
    assert [len(set(clusters[first : first + 20])) for first in range(0, 80, 20)] == [1] * 4
    nearest = neighbours[:80, :19]
    assert (nearest % 4 == np.arange(80)[:, None] % 4).all()
    shown = pq.read_table(near / "vectors.parquet")["vector"].to_pylist()
    np.testing.assert_array_equal(np.array(shown), rows[:80])


def test_parts_of_large_clusters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(parts, "MIN_SPLIT_SIZE", 20)
    rng = np.random.default_rng(1)
    corpus, vectors = publish(tmp_path)
    workspace = Workspace(tmp_path)
    rows = np.load(workspace.folder(vectors) / "full.npy")
    rows[:20] += 0.3 * np.repeat(np.eye(2, 16, 8), 10, axis=0) + 0.01 * rng.normal(size=(20, 16))
    np.save(
        workspace.folder(vectors) / "full.npy", rows / np.maximum(np.linalg.norm(rows, axis=1), 1e-9)[:, None]
    )
    settings = ClusterSettings(strategy=ChineseWhispers(neighbours=8))
    folder = workspace.folder(run(tmp_path, corpus, vectors, settings))
    numbers, entries = read_subclusters(folder)
    clusters = np.load(folder / "clusters.npy")
    assert len(entries) == numbers.max() + 1 >= 2
    for number, entry in enumerate(entries):
        assert set(clusters[numbers == number]) == {entry["parent"]} and entry["id"] == number
        assert entry["size"] == (numbers == number).sum()
    wholes = [cluster["name"] for cluster in read_clusters(folder)]
    named = [(entry["parent"], entry["name"]) for entry in entries if entry["name"]]
    assert len(set(named)) == len(named) and not {(number, name) for number, name in enumerate(wholes)} & set(
        named
    )
    table = pq.read_table(folder / "clusters.parquet").to_pylist()
    named = [(entries[number]["name"] or None) if number >= 0 else None for number in numbers]
    assert [row["subcluster_name"] for row in table] == named
    assert [row["subcluster"] for row in table] == [int(one) if one >= 0 else None for one in numbers]


def test_tables_for_sql(tmp_path: Path):
    artifact = run(tmp_path, *publish(tmp_path), ClusterSettings())
    folder, near = Workspace(tmp_path).folder(artifact), nearest_folder(tmp_path, artifact)
    clusters = pq.read_table(folder / "clusters.parquet").to_pylist()
    assert (
        clusters[0]["title"] == "The Kitchen 0"
        and clusters[0]["cluster_name"] == "Kitchen"
        and clusters[81]["cluster"] is None
    )
    pairs = pq.read_table(near / "neighbours.parquet").to_pydict()
    neighbours = np.load(near / "neighbours.npy")
    assert len(pairs["rank"]) == (neighbours >= 0).sum()
    assert [pairs["neighbour_id"][row] for row in range(25)] == neighbours[0].tolist()
