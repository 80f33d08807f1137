"""The Prefect task of the stage neighbours, which finds the nearest titles of each title."""

import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from prefect import get_run_logger, task

from storage.arrays import open_array
from storage.artifacts import Corpus, NearestTitles, Vectors, read_inputs
from storage.formats.nearest import write_graph, write_nearest
from storage.home.workspace import Workspace
from storage.stages import Stage
from tasks.neighbours.index import Approximate, Exact, SearchSettings, sampled_recall
from tasks.neighbours.pieces import search_pieces
from tasks.neighbours.points import read_points
from tasks.neighbours.rescoring import empty_neighbours
from tasks.neighbours.update import update_neighbours

STAGE = Stage(NearestTitles, __file__)


@task(**STAGE.options)
def find_nearest(
    home: str,
    corpus: Corpus,
    vectors: Vectors,
    k: int,
    search: SearchSettings,
    previous: NearestTitles | None = None,
) -> NearestTitles:
    """Publishes the k nearest titles of each title for two purposes, each with different vectors.

    Lists of similar titles compare similarity vectors. Clusters compare vectors with airing context. Titles
    that name no programme, such as "To be announced", have no neighbours. If most vectors are those of the
    previous night, its neighbours are updated, with the same result (update.py).
    """
    workspace = Workspace(home)
    earlier = _read_earlier(workspace, previous, corpus, k, search) if previous else None
    splits = pq.read_table(workspace.folder(corpus) / "titles.parquet", columns=["split"])["split"]
    is_placeholder = np.array(splits.to_pylist()) == "placeholder"
    folder = workspace.folder(vectors)
    with STAGE.publish(home, corpus, vectors, k, search) as draft:
        points = read_points(folder, "full", is_placeholder)
        file, options = folder / "full.npy", (k, search, draft.folder, earlier)
        ids, cosines, recall = _search_nearest(points, file, "to cluster", *options)
        write_graph(draft.folder, ids, cosines)
        if open_array(folder, "similarity").shape[1] > points.shape[1]:
            del points
            points = read_points(folder, "similarity", is_placeholder)
            file = folder / "similarity.npy"
            ids, cosines, recall = _search_nearest(points, file, "shown", *options)
        write_nearest(draft.folder, ids, cosines, points)
        draft.counts["titles"] = len(is_placeholder)
        draft.details["recall"] = recall
    return draft.artifact


def _search_nearest(
    points: np.ndarray,
    vectors: Path,
    purpose: str,
    k: int,
    search: SearchSettings,
    folder: Path,
    earlier: "_Earlier | None",
) -> tuple[np.ndarray, np.ndarray, float]:
    """Returns ids and cosines of the nearest titles, both (titles, k), and the recall of the search.

    Workers read the published array ``vectors`` and exchange temporary files with this process in ``folder``.
    """
    log = get_run_logger()
    if earlier and (updated := earlier.update(points, vectors.stem, k)):
        log.info("nearest titles (%s): those of the previous night, updated", purpose)
        return *updated, 1.0
    index = search.open(points)
    if isinstance(index, Approximate) and (search.workers > 0 or search.pool != "processes"):
        ids, cosines = empty_neighbours(len(points), k)
        with tempfile.TemporaryDirectory(dir=folder, prefix="work-") as work:
            for event in search_pieces(index, vectors, Path(work), search, ids, cosines):
                log.info("nearest titles (%s): %3.0f %%  %s", purpose, event.percent, event.note)
    else:
        ids, cosines = index.nearest_to_each(k)
    index_name, is_exact = type(index).__name__.lower(), isinstance(index, Exact)
    del index  # has half the size of the points
    recall = 1.0 if is_exact else sampled_recall(points, ids)
    log.info("nearest titles (%s): %s search, recall %.4f", purpose, index_name, recall)
    return ids, cosines, recall


class _Earlier(NamedTuple):
    """Neighbours of the previous night, from an exact search."""

    origin: np.ndarray  # row of each title in the previous night, -1 for new titles
    is_placeholder: np.ndarray  # bool, of the titles of the previous night
    vectors: Path  # folder of its Vectors
    nearest: Path  # folder of its NearestTitles

    def update(self, points: np.ndarray, name: str, k: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Returns ids and cosines of the nearest titles, or None if too many vectors have changed.

        ``points`` is the array ``name`` of the Vectors, without placeholder titles.
        """
        before = read_points(self.vectors, name, self.is_placeholder)
        if before.shape[1] != points.shape[1]:
            return None
        names = ("graph", "graph_cosines") if name == "full" else ("neighbours", "similarities")
        ids, cosines = (np.asarray(open_array(self.nearest, each)) for each in names)
        return update_neighbours(points, k, self.origin, before, ids, cosines)


def _read_earlier(
    workspace: Workspace, nearest: NearestTitles, corpus: Corpus, k: int, search: SearchSettings
) -> _Earlier | None:
    """Returns the neighbours of an earlier night; None if its search was not exact or had other settings."""
    keys = {item["kind"]: Path(item["path"]).name for item in read_inputs(workspace.folder(nearest))}
    earlier = workspace.read(Corpus, keys.get(Corpus.kind, ""))
    vectors = workspace.read(Vectors, keys.get(Vectors.kind, ""))
    if not earlier or not vectors or Path(nearest.path).name != STAGE.key(earlier, vectors, k, search):
        return None
    now, then = (
        pq.read_table(workspace.folder(each) / "titles.parquet", columns=["show_key", "split"])
        for each in (corpus, earlier)
    )
    if not search.is_exact(max(len(now), len(then))):
        return None
    rows = pc.index_in(now["show_key"], value_set=then["show_key"].combine_chunks())  # pyright: ignore[reportAttributeAccessIssue]
    is_placeholder = np.array(then["split"].to_pylist()) == "placeholder"
    origin = rows.fill_null(-1).to_numpy()
    return _Earlier(origin, is_placeholder, workspace.folder(vectors), workspace.folder(nearest))
