"""Stage embed: Corpus, Lexicon to Vectors."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
from prefect import get_run_logger, task

from storage.artifacts import Corpus, Lexicon, Vectors
from storage.stages import Stage
from storage.workspace import Workspace
from tasks.augment import lexicon as lexicons

STAGE = Stage(Vectors, __file__)


@task(**STAGE.options)
def embed(home: str, corpus: Corpus, lexicon: Lexicon) -> Vectors:
    """A unit vector for every title of the corpus, by the code that embeds titles no guide ever had."""
    workspace = Workspace(home)
    raw_titles = pq.read_table(workspace.folder(corpus) / "titles.parquet", columns=["raw_title"])["raw_title"].to_pylist()
    vectors = lexicons.Lexicon.open(workspace.folder(lexicon)).embed(raw_titles)
    known = vectors.any(axis=1)
    with STAGE.publish(home, corpus, lexicon) as draft:
        np.save(draft.folder / "vectors.npy", vectors)
        np.save(draft.folder / "known.npy", known)
        draft.counts |= {"titles": len(vectors), "dim": vectors.shape[1], "unknown": int((~known).sum())}
    get_run_logger().info("%(titles)d vectors of %(dim)d dimensions; nothing is known of %(unknown)d titles", draft.counts)
    return draft.artifact
