"""Stage embed: Corpus, TitleEncoderFiles to Vectors."""

from collections.abc import Callable
from contextlib import ExitStack

import numpy as np
from prefect import get_run_logger, task

from storage.arrays import array_writer
from storage.artifacts import Corpus, TitleEncoderFiles, Vectors
from storage.stages import Stage
from storage.workspace import Workspace
from tasks.embed.corpus import EmbeddedTitles, embed_corpus
from tasks.encoder.title_encoder import TitleEncoder

STAGE = Stage(Vectors, __file__)


@task(**STAGE.options)
def embed(home: str, corpus: Corpus, encoder: TitleEncoderFiles) -> Vectors:
    """Unit vectors of each title: alone, with how it airs (categories, clusters, the map's places), and for
    similarity. Also the words of held-out titles, and a row of those with unseen words without these.
    """
    workspace = Workspace(home)
    folder, opened = workspace.folder(corpus), TitleEncoder.open(workspace.folder(encoder))
    count = unknown = 0
    with STAGE.publish(home, corpus, encoder) as draft:
        with ExitStack() as open_files:
            writers: dict[str, Callable[[np.ndarray], None]] = {}
            for some in embed_corpus(folder, opened):
                for name, array in _arrays(opened, some).items():
                    if name not in writers:
                        writer = array_writer(draft.folder, name, array.dtype, array.shape[1:])
                        writers[name] = open_files.enter_context(writer)
                    writers[name](array)
                count += len(some.vectors)
                unknown += int((~some.vectors.any(axis=1)).sum())
        draft.counts |= {"titles": count, "dim": opened.width, "unknown": unknown}
        draft.details["checkpoint"] = workspace.details(encoder).get("checkpoint")
    message = "%(titles)d vectors of %(dim)d dimensions; nothing is known of %(unknown)d titles"
    get_run_logger().info(message, draft.counts)
    return draft.artifact


def _arrays(encoder: TitleEncoder, some: EmbeddedTitles) -> dict[str, np.ndarray]:
    """The rows of some titles in the arrays of a Vectors."""
    raw, dense = some.raw_titles, some.dense
    words, unseen = np.zeros(len(raw), dtype=np.int32), np.zeros(len(raw), dtype=np.int32)
    held = np.flatnonzero([split not in ("train", "placeholder") for split in some.splits])
    words[held], unseen[held] = encoder.count_unseen([raw[title] for title in held])
    oov = np.flatnonzero(some.oov)
    known_words = encoder.without_unseen_words().embed([raw[title] for title in oov], dense[oov])
    return {
        "vectors": some.vectors,
        "full": some.full,
        "known": np.asarray(some.vectors.any(axis=1)),
        "words": words,
        "unseen": unseen,
        "unaugmented": known_words,
        "similarity": encoder.similarity(dense, some.full),
        "similarity_alone": encoder.similarity(dense, some.vectors),
    }
