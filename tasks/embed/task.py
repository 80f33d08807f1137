"""The Prefect task of the stage embed, which computes the vectors of all titles."""

from collections.abc import Callable
from contextlib import ExitStack

import numpy as np
from prefect import get_run_logger, task

from storage.arrays import array_writer
from storage.artifacts import Corpus, TitleEncoderFiles, Vectors
from storage.home.workspace import Workspace
from storage.stages import Stage
from tasks.embed.corpus import EmbeddedTitles, embed_corpus
from tasks.encoder.title_encoder import TitleEncoder

STAGE = Stage(Vectors, __file__)


@task(**STAGE.options)
def embed(home: str, corpus: Corpus, encoder: TitleEncoderFiles) -> Vectors:
    """Publishes vectors of each title: without and with airing context (channel, hour …), and for similarity.

    Categories, clusters and the map use vectors with airing context. The artifact also contains word counts
    of held-out titles and, for titles with unseen words, vectors that ignore these words.
    """
    workspace = Workspace(home)
    folder, title_encoder = workspace.folder(corpus), TitleEncoder.open(workspace.folder(encoder))
    count = zero_vectors = 0
    with STAGE.publish(home, corpus, encoder) as draft:
        with ExitStack() as open_files:
            writers: dict[str, Callable[[np.ndarray], None]] = {}
            for block in embed_corpus(folder, title_encoder):
                for name, array in _arrays(title_encoder, block).items():
                    if name not in writers:
                        writer = array_writer(draft.folder, name, array.dtype, array.shape[1:])
                        writers[name] = open_files.enter_context(writer)
                    writers[name](array)
                count += len(block.vectors)
                zero_vectors += int((~block.vectors.any(axis=1)).sum())
        draft.counts |= {"titles": count, "dim": title_encoder.width, "unknown": zero_vectors}
        draft.details["checkpoint"] = workspace.details(encoder).get("checkpoint")
    message = "%(titles)d vectors of %(dim)d dimensions, %(unknown)d of them zero (no known features)"
    get_run_logger().info(message, draft.counts)
    return draft.artifact


def _arrays(encoder: TitleEncoder, block: EmbeddedTitles) -> dict[str, np.ndarray]:
    """Returns the arrays to publish for one block of titles, by array name."""
    raw_titles, dense = block.raw_titles, block.dense
    words, unseen = np.zeros(len(raw_titles), dtype=np.int32), np.zeros(len(raw_titles), dtype=np.int32)
    held_out = np.flatnonzero([split not in ("train", "placeholder") for split in block.splits])
    words[held_out], unseen[held_out] = encoder.count_unseen([raw_titles[title] for title in held_out])
    oov = np.flatnonzero(block.oov)
    without_unseen = encoder.without_unseen_words().embed([raw_titles[title] for title in oov], dense[oov])
    return {
        "vectors": block.vectors,
        "full": block.full,
        "known": np.asarray(block.vectors.any(axis=1)),
        "words": words,
        "unseen": unseen,
        "unaugmented": without_unseen,
        "similarity": encoder.similarity(dense, block.full),
        "similarity_alone": encoder.similarity(dense, block.vectors),
    }
