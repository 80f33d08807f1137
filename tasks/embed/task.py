"""Defines the Prefect task of the stage embed, which computes the vectors of all titles of a Corpus."""

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
    """Publishes the vectors of all titles: without and with airing context, and similarity vectors.

    Categories, clusters and the map use the vectors with airing context (channel, hour …). The artifact also
    contains the word counts of held-out titles. For titles with unseen words, it contains vectors without
    these words.
    """
    workspace = Workspace(home)
    folder, title_encoder = workspace.folder(corpus), TitleEncoder.open(workspace.folder(encoder))
    title_count = zero_vectors = 0
    with STAGE.publish(home, corpus, encoder) as draft:
        with ExitStack() as open_files:
            writers: dict[str, Callable[[np.ndarray], None]] = {}
            for block in embed_corpus(folder, title_encoder):
                for name, array in _arrays(title_encoder, block).items():
                    if name not in writers:
                        writer = array_writer(draft.folder, name, array.dtype, array.shape[1:])
                        writers[name] = open_files.enter_context(writer)
                    writers[name](array)
                title_count += len(block.vectors)
                zero_vectors += int((~block.vectors.any(axis=1)).sum())
        draft.counts |= {"titles": title_count, "dim": title_encoder.width, "unknown": zero_vectors}
        draft.details["checkpoint"] = workspace.details(encoder).get("checkpoint")
    message = "%(titles)d vectors of %(dim)d dimensions; %(unknown)d are zero: no token, no sentence vector"
    get_run_logger().info(message, draft.counts)
    return draft.artifact


def _arrays(encoder: TitleEncoder, block: EmbeddedTitles) -> dict[str, np.ndarray]:
    """Returns the arrays to publish for a block of titles, by the names of their files."""
    raw_titles, sentence_features = block.raw_titles, block.features
    word_counts, unseen_counts = np.zeros((2, len(raw_titles)), dtype=np.int32)
    held_out_rows = np.flatnonzero([split not in ("train", "placeholder") for split in block.splits])
    held_out_titles = [raw_titles[row] for row in held_out_rows]
    word_counts[held_out_rows], unseen_counts[held_out_rows] = encoder.count_unseen(held_out_titles)
    oov_rows = np.flatnonzero(block.oov)
    vectors_without_unseen = encoder.without_unseen_words().embed(
        [raw_titles[row] for row in oov_rows], sentence_features[oov_rows]
    )
    return {
        "vectors": block.vectors,
        "full": block.full,
        "known": np.asarray(block.vectors.any(axis=1)),
        "words": word_counts,
        "unseen": unseen_counts,
        "unaugmented": vectors_without_unseen,
        "similarity": encoder.similarity(sentence_features, block.full),
        "similarity_alone": encoder.similarity(sentence_features, block.vectors),
    }
