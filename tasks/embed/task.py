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
    """Two unit vectors for every title: of the title alone (similarity, clusters, the map), and with how it airs (categories)."""
    workspace = Workspace(home)
    titles = pq.read_table(workspace.folder(corpus) / "titles.parquet", columns=["raw_title", "context", "split", "oov"])
    opened = lexicons.Lexicon.open(workspace.folder(lexicon))
    vectors, full = opened.embed_with_context(titles["raw_title"].to_pylist(), titles["context"].to_pylist())
    known = vectors.any(axis=1)
    raw, oov = titles["raw_title"].to_pylist(), titles["oov"].to_numpy()
    held = np.flatnonzero([split not in ("train", "placeholder") for split in titles["split"].to_pylist()])
    words, unseen = np.zeros(len(raw), dtype=np.int32), np.zeros(len(raw), dtype=np.int32)
    words[held], unseen[held] = opened.count_unseen([raw[title] for title in held])
    unaugmented = opened.without_ngrams().embed([raw[title] for title in np.flatnonzero(oov)])
    with STAGE.publish(home, corpus, lexicon) as draft:
        np.save(draft.folder / "vectors.npy", vectors)
        np.save(draft.folder / "full.npy", full)
        for name, array in {"known": known, "words": words, "unseen": unseen, "unaugmented": unaugmented}.items():
            np.save(draft.folder / f"{name}.npy", array)  # words of held-out titles; unaugmented: a row a title with unseen words
        draft.counts |= {"titles": len(vectors), "dim": vectors.shape[1], "unknown": int((~known).sum())}
        draft.details["checkpoint"] = workspace.details(lexicon).get("checkpoint")
    get_run_logger().info("%(titles)d vectors of %(dim)d dimensions; nothing is known of %(unknown)d titles", draft.counts)
    return draft.artifact
