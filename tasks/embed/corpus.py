"""Computes the vectors of the titles of a corpus, block by block."""

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
    """A block of consecutive titles of the corpus with their unit-norm vectors."""

    raw_titles: list[str]
    contexts: list[list[str]]  # tokens that describe broadcasts: channel, hour …
    splits: list[str]
    oov: Bool[np.ndarray, " titles"]  # whether a word of the title occurs in no training title
    dense: Float32[np.ndarray, "titles features"]  # sentence and description features, see Bag.dense
    vectors: Float32[np.ndarray, "titles dim"]  # vectors without airing context
    full: Float32[np.ndarray, "titles dim"]  # vectors with airing context


def embed_corpus(folder: Path, encoder: TitleEncoder) -> Iterator[EmbeddedTitles]:
    """Computes the vectors of the titles of a Corpus folder and yields them in blocks, at least one."""
    titles, corpus = pq.read_table(folder / "titles.parquet", columns=COLUMNS), open_corpus(folder)
    for block in row_blocks(len(corpus)):  # arrays of a million titles would need 6 GB
        rows = np.arange(block.start, block.stop)
        raw_titles, contexts, splits, oov = titles[block].select(COLUMNS).columns
        dense = encoder.bag.dense(corpus.sentences[block], corpus.descriptions[block])
        texts = raw_titles.to_pylist(), contexts.to_pylist()
        vectors = encoder.embed_with_context(*texts, dense, corpus.complete_tokens(rows))
        yield EmbeddedTitles(*texts, splits.to_pylist(), oov.to_numpy(), dense, *vectors)
