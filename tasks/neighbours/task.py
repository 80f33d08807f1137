"""Defines the Prefect task of the stage neighbours, which finds the nearest titles of each title."""

import tempfile
from functools import partial
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
from tasks.neighbours.index import Approximate, SearchSettings, sampled_recall
from tasks.neighbours.pieces import search_pieces
from tasks.neighbours.points import find_placeholders, read_points
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
    """Publishes the k nearest titles of each title for lists of similar titles, and for clusters.

    For the lists, titles are compared by similarity vectors, and for clusters by vectors with airing context.
    Placeholder titles, such as "To be announced", have no neighbours. If most vectors are equal to those of
    an earlier night, the neighbours of that night are updated, with the same result as a search of all titles
    (update.py).

    Args:
        home: Folder in which all results are stored.
        corpus: Corpus of the titles.
        vectors: Vectors of the titles.
        k: Number of neighbours of a title.
        search: Settings of the search.
        previous: NearestTitles of the earlier night; None if there is none.
    """
    workspace = Workspace(home)
    earlier = _read_earlier_night(workspace, previous, corpus, k, search) if previous else None
    splits = pq.read_table(workspace.folder(corpus) / "titles.parquet", columns=["split"])["split"]
    is_placeholder = find_placeholders(splits)
    folder = workspace.folder(vectors)
    with STAGE.publish(home, corpus, vectors, k, search) as draft:
        find = partial(_find_neighbours, k=k, search=search, folder=draft.folder, earlier=earlier)
        points = read_points(folder, "full", is_placeholder)
        ids, cosines, graph_recall = find(points, folder / "full.npy", "clusters")
        write_graph(draft.folder, ids, cosines)
        recall = graph_recall
        if open_array(folder, "similarity").shape[1] > points.shape[1]:
            del points  # before the similarity vectors are read, to save memory
            points = read_points(folder, "similarity", is_placeholder)
            ids, cosines, recall = find(points, folder / "similarity.npy", "lists of similar titles")
        write_nearest(draft.folder, ids, cosines, points)
        draft.counts["titles"] = len(is_placeholder)
        draft.details |= {"recall": recall, "graph_recall": graph_recall}
    return draft.artifact


def _find_neighbours(
    points: np.ndarray,
    vectors: Path,
    purpose: str,
    *,
    k: int,
    search: SearchSettings,
    folder: Path,
    earlier: "_EarlierNight | None",
) -> tuple[np.ndarray, np.ndarray, float]:
    """Returns the ids and the cosines of the nearest titles, both (titles, k), and the recall of the search.

    Args:
        points: Vectors of titles; placeholder titles have zero vectors.
        vectors: File of the published array of vectors, which workers read.
        purpose: Purpose of the neighbours, for the log.
        k: Number of neighbours of a title.
        search: Settings of the search.
        folder: Folder for temporary files, to which all workers have access.
        earlier: Neighbours of an earlier night; None if they cannot be updated.
    """
    log = get_run_logger()
    if earlier and (updated := earlier.update(points, vectors.stem, k)):
        log.info("nearest titles for %s: the neighbours of an earlier night were updated", purpose)
        return *updated, 1.0
    index = search.open(points)
    if isinstance(index, Approximate) and (search.workers > 0 or search.pool != "processes"):
        ids, cosines = empty_neighbours(len(points), k)
        with tempfile.TemporaryDirectory(dir=folder, prefix="work-") as work:
            for event in search_pieces(index, vectors, Path(work), search, ids, cosines):
                log.info("nearest titles for %s: %3.0f %%  %s", purpose, event.percent, event.note)
    else:
        ids, cosines = index.nearest_to_each(k)
    is_exact = index.is_exact
    del index  # the index needs half of the memory of the points
    recall = 1.0 if is_exact else sampled_recall(points, ids)
    method = "exact" if is_exact else "approximate"
    log.info("nearest titles for %s: %s search, recall %.4f", purpose, method, recall)
    return ids, cosines, recall


class _EarlierNight(NamedTuple):
    """Neighbours of an earlier night, from an exact search."""

    rows: np.ndarray  # row in the earlier night of each title of tonight, -1 for new titles
    is_placeholder: np.ndarray  # bool, one entry per title of the earlier night
    vectors: Path  # folder of the Vectors of the earlier night
    nearest: Path  # folder of the NearestTitles of the earlier night

    def update(self, points: np.ndarray, name: str, k: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Returns the ids and cosines of tonight's nearest titles, or None if too many vectors have changed.

        ``points`` is tonight's array ``name`` of the Vectors, in which placeholder titles are zero.
        """
        earlier_points = read_points(self.vectors, name, self.is_placeholder)
        if earlier_points.shape[1] != points.shape[1]:
            return None
        names = ("graph", "graph_cosines") if name == "full" else ("neighbours", "similarities")
        ids, cosines = (np.asarray(open_array(self.nearest, array_name)) for array_name in names)
        return update_neighbours(points, k, self.rows, earlier_points, ids, cosines)


def _read_earlier_night(
    workspace: Workspace, nearest: NearestTitles, corpus: Corpus, k: int, search: SearchSettings
) -> _EarlierNight | None:
    """Returns the neighbours of an earlier night; None if that search was not exact or had other settings."""
    keys = {item["kind"]: Path(item["path"]).name for item in read_inputs(workspace.folder(nearest))}
    earlier_corpus = workspace.read(Corpus, keys.get(Corpus.kind, ""))
    earlier_vectors = workspace.read(Vectors, keys.get(Vectors.kind, ""))
    if not earlier_corpus or not earlier_vectors:
        return None
    if Path(nearest.path).name != STAGE.key(earlier_corpus, earlier_vectors, k, search):
        return None
    titles, earlier_titles = (
        pq.read_table(workspace.folder(artifact) / "titles.parquet", columns=["show_key", "split"])
        for artifact in (corpus, earlier_corpus)
    )
    if not search.is_exact(max(len(titles), len(earlier_titles))):
        return None
    earlier_shows = earlier_titles["show_key"].combine_chunks()
    rows = pc.index_in(titles["show_key"], value_set=earlier_shows)  # pyright: ignore[reportAttributeAccessIssue]
    return _EarlierNight(
        rows=rows.fill_null(-1).to_numpy(),
        is_placeholder=find_placeholders(earlier_titles["split"]),
        vectors=workspace.folder(earlier_vectors),
        nearest=workspace.folder(nearest),
    )
