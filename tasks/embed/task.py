"""Stage embed: Corpus, TitleEncoderFiles to Vectors."""

import numpy as np
import pyarrow.parquet as pq
from prefect import get_run_logger, task

from storage.artifacts import Corpus, TitleEncoderFiles, Vectors
from storage.stages import Stage
from storage.workspace import Workspace
from tasks.embed.corpus import embed_corpus
from tasks.encoder.title_encoder import TitleEncoder

STAGE = Stage(Vectors, __file__)


@task(**STAGE.options)
def embed(home: str, corpus: Corpus, encoder: TitleEncoderFiles) -> Vectors:
    """Unit vectors of each title: alone, with how it airs (categories, clusters, the map's places), and for
    similarity. Also the words of held-out titles, and a row of those with unseen words without these.
    """
    workspace = Workspace(home)
    folder, opened = workspace.folder(corpus), TitleEncoder.open(workspace.folder(encoder))
    titles = pq.read_table(folder / "titles.parquet", columns=["split", "oov"])
    raw, _, dense, vectors, full = embed_corpus(folder, opened)
    splits = titles["split"].to_pylist()
    words, unseen = np.zeros(len(raw), dtype=np.int32), np.zeros(len(raw), dtype=np.int32)
    held = np.flatnonzero([split not in ("train", "placeholder") for split in splits])
    words[held], unseen[held] = opened.count_unseen([raw[title] for title in held])
    known = vectors.any(axis=1)
    arrays = {"vectors": vectors, "full": full, "known": known, "words": words, "unseen": unseen}
    oov = np.flatnonzero(titles["oov"].to_numpy())
    arrays["unaugmented"] = opened.without_unseen_words().embed([raw[title] for title in oov], dense[oov])
    arrays |= {
        "similarity": opened.similarity(dense, full),
        "similarity_alone": opened.similarity(dense, vectors),
    }
    with STAGE.publish(home, corpus, encoder) as draft:
        for name, array in arrays.items():
            np.save(draft.folder / f"{name}.npy", array)
        draft.counts |= {"titles": len(vectors), "dim": vectors.shape[1], "unknown": int((~known).sum())}
        draft.details["checkpoint"] = workspace.details(encoder).get("checkpoint")
    message = "%(titles)d vectors of %(dim)d dimensions; nothing is known of %(unknown)d titles"
    get_run_logger().info(message, draft.counts)
    return draft.artifact
