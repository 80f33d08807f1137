"""The titles of a corpus as vectors."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq

from storage.arrays import row_blocks
from storage.formats.corpus import open_corpus
from storage.shapes import Bool, Float32
from tasks.encoder.title_encoder import TitleEncoder

COLUMNS = ["raw_title", "context", "split", "oov"]


class EmbeddedTitles(NamedTuple):
    """Titles in the corpus' order, and their unit vectors."""

    raw_titles: list[str]
    contexts: list[list[str]]  # tokens of how each airs
    splits: list[str]
    oov: Bool[np.ndarray, " titles"]  # holds a word that no training title holds
    dense: Float32[np.ndarray, "titles features"]  # see Bag.dense
    vectors: Float32[np.ndarray, "titles dim"]  # of titles alone
    full: Float32[np.ndarray, "titles dim"]  # with how they air


def embed_corpus(folder: Path, encoder: TitleEncoder) -> Iterator[EmbeddedTitles]:
    """Embeds the titles of a Corpus folder, block by block, one at least."""
    titles, corpus = pq.read_table(folder / "titles.parquet", columns=COLUMNS), open_corpus(folder)
    for some in row_blocks(len(corpus)):  # the arrays of a million titles would take 6 GB
        rows = np.arange(some.start, some.stop)
        raw, contexts, splits, oov = titles[some].select(COLUMNS).columns
        dense = encoder.bag.dense(corpus.sentences[some], corpus.descriptions[some])
        texts = raw.to_pylist(), contexts.to_pylist()
        vectors = encoder.embed_with_context(*texts, dense, corpus.complete_tokens(rows))
        yield EmbeddedTitles(*texts, splits.to_pylist(), oov.to_numpy(), dense, *vectors)
