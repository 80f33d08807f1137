"""Computes the vectors of all titles of a Corpus, block by block."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq

from storage.arrays import row_blocks
from storage.formats.corpus import open_corpus
from storage.shapes import Bool, Float32
from tasks.encoder.title_encoder import TitleEncoder

TITLE_COLUMNS = ["raw_title", "context", "split", "oov"]


class EmbeddedTitles(NamedTuple):
    """A block of consecutive titles of a Corpus, with their unit-norm vectors."""

    raw_titles: list[str]
    contexts: list[list[str]]  # context tokens of each title: channel, hour …
    splits: list[str]  # split of each title: train, unseen_title, …
    oov: Bool[np.ndarray, " titles"]  # whether the title contains a word that no training title contains
    features: Float32[np.ndarray, "titles features"]  # sentence features x (tasks/encoder/bag.py)
    vectors: Float32[np.ndarray, "titles dim"]  # vectors without airing context
    full: Float32[np.ndarray, "titles dim"]  # vectors with airing context


def embed_corpus(folder: Path, encoder: TitleEncoder) -> Iterator[EmbeddedTitles]:
    """Yields the titles of the Corpus in ``folder`` with their vectors, in blocks (at least one)."""
    titles, corpus = pq.read_table(folder / "titles.parquet", columns=TITLE_COLUMNS), open_corpus(folder)
    for block in row_blocks(len(corpus)):  # the arrays of a million titles would need 6 GB
        rows = np.arange(block.start, block.stop)
        raw_titles, contexts, splits, oov = titles[block].select(TITLE_COLUMNS).columns
        features = encoder.bag.sentence_features(corpus.sentences[block], corpus.descriptions[block])
        texts, token_lists = raw_titles.to_pylist(), contexts.to_pylist()
        without_context, with_context = encoder.embed_with_context(
            texts, token_lists, features, corpus.complete_tokens(rows)
        )
        yield EmbeddedTitles(
            raw_titles=texts,
            contexts=token_lists,
            splits=splits.to_pylist(),
            oov=oov.to_numpy(),
            features=features,
            vectors=without_context,
            full=with_context,
        )
