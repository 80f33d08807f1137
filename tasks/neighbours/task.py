"""The Prefect task of the stage neighbours, which finds the nearest titles of each title."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from prefect import get_run_logger, task

from storage.arrays import open_array
from storage.artifacts import Corpus, NearestTitles, Vectors
from storage.formats.nearest import write_graph, write_nearest
from storage.home.workspace import Workspace
from storage.stages import Stage
from tasks.neighbours.index import Approximate, Exact, SearchSettings, sampled_recall
from tasks.neighbours.pieces import search_pieces
from tasks.neighbours.points import read_points
from tasks.neighbours.rescoring import empty_neighbours

STAGE = Stage(NearestTitles, __file__)


@task(**STAGE.options)
def find_nearest(
    home: str, corpus: Corpus, vectors: Vectors, k: int, search: SearchSettings
) -> NearestTitles:
    """Publishes the k nearest titles of each title for two purposes, each with different vectors.

    Lists of similar titles compare similarity vectors. Clusters compare vectors with airing context. Titles
    that name no programme, such as "To be announced", have no neighbours.
    """
    workspace = Workspace(home)
    splits = pq.read_table(workspace.folder(corpus) / "titles.parquet", columns=["split"])["split"]
    is_placeholder = np.array(splits.to_pylist()) == "placeholder"
    folder = workspace.folder(vectors)
    with STAGE.publish(home, corpus, vectors, k, search) as draft:
        points = read_points(folder, "full", is_placeholder)
        file, options = folder / "full.npy", (k, search, draft.folder)
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
    points: np.ndarray, vectors: Path, purpose: str, k: int, search: SearchSettings, folder: Path
) -> tuple[np.ndarray, np.ndarray, float]:
    """Returns ids and cosines of the nearest titles, both (titles, k), and the recall of the search.

    Workers read the published array ``vectors`` and exchange temporary files with this process in ``folder``.
    """
    index, log = search.open(points), get_run_logger()
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
