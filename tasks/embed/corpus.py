"""The titles of a corpus as vectors."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq

from storage.formats.corpus import open_corpus
from storage.shapes import Float32
from tasks.encoder.title_encoder import TitleEncoder


class EmbeddedCorpus(NamedTuple):
    """Titles in the corpus' order, and their unit vectors."""

    raw_titles: list[str]
    contexts: list[list[str]]  # tokens of how each airs
    dense: Float32[np.ndarray, "titles features"]  # see Bag.dense
    vectors: Float32[np.ndarray, "titles dim"]  # of titles alone
    full: Float32[np.ndarray, "titles dim"]  # with how they air


def embed_corpus(folder: Path, encoder: TitleEncoder) -> EmbeddedCorpus:
    """Embeds the titles of a Corpus folder."""
    titles, corpus = (
        pq.read_table(folder / "titles.parquet", columns=["raw_title", "context"]),
        open_corpus(folder),
    )
    raw, contexts = (titles[name].to_pylist() for name in ("raw_title", "context"))
    dense = encoder.bag.dense(corpus.sentences, corpus.descriptions)
    return EmbeddedCorpus(raw, contexts, dense, *encoder.embed_with_context(raw, contexts, dense))
