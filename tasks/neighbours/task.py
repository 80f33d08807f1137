"""Stage neighbours: Corpus, Vectors to NearestTitles."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from prefect import get_run_logger, task

from storage.artifacts import Corpus, NearestTitles, Vectors
from storage.formats.nearest import write_graph, write_nearest
from storage.stages import Stage
from storage.workspace import Workspace
from tasks.neighbours.index import Exact, SearchSettings, sampled_recall
from tasks.neighbours.points import read_points

STAGE = Stage(NearestTitles, __file__)


@task(**STAGE.options)
def find_nearest(
    home: str, corpus: Corpus, vectors: Vectors, k: int, search: SearchSettings
) -> NearestTitles:
    """The k nearest titles of each, placeholders left out: by similarity, which are shown, and by the vectors
    with how titles air, of which clusters are made: what is best for a list need not be best for groups
    (docs/LOG.md).
    """
    workspace = Workspace(home)
    split = pq.read_table(workspace.folder(corpus) / "titles.parquet", columns=["split"])["split"]
    placeholder = np.array(split.to_pylist()) == "placeholder"
    folder = workspace.folder(vectors)
    with STAGE.publish(home, corpus, vectors, k, search) as draft:
        _, ids, cosines = _nearest(folder, "full", placeholder, k, search, "to cluster")
        write_graph(draft.folder, ids, cosines)
        recall, ids, cosines = _nearest(folder, "similarity", placeholder, k, search, "shown")
        write_nearest(draft.folder, ids, cosines, read_points(folder, "similarity", placeholder))
        draft.counts["titles"] = len(placeholder)
        draft.details["recall"] = recall
    return draft.artifact


def _nearest(
    vectors: Path, name: str, placeholder: np.ndarray, k: int, search: SearchSettings, purpose: str
) -> tuple[float, np.ndarray, np.ndarray]:
    """The share of the nearest titles that the search found, their ids and cosines, shape (titles, k)."""
    points = read_points(vectors, name, placeholder)
    index = search.open(points)
    ids, cosines = index.among_themselves(k)
    recall = 1.0 if isinstance(index, Exact) else sampled_recall(points, ids)
    kind = type(index).__name__.lower()
    get_run_logger().info("nearest titles (%s): %s search, recall %.4f", purpose, kind, recall)
    return recall, ids, cosines
