"""A title encoder's words as a fastText model that the fasttext package and gensim load.

fastText divides the sum of a word's row and its n-grams' rows by their number n + 1, so a word whose vector
is v gets

    row = (n + 1) · v − Σ n-gram rows

and keeps v (to about 1e-7, after one correction of what float32 rounds away). A bucket's row is its n-gram
row plus the mean that the fit took away (also where it has no n-gram row, since the mean belongs to every
word), times one number for all: fastText cannot bring each unseen word to the same length, so their median
gets it.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from storage.arrays import Ragged, row_blocks
from tasks.encoder.title_encoder import TitleEncoder
from tasks.encoder.unseen_words import NgramRows
from tasks.fasttext.layout import Header
from tasks.fasttext.ngrams import bucket_ids, encode
from tasks.fasttext.writer import write_bin
from tasks.text.words import WORD


def word_vectors(encoder: TitleEncoder) -> tuple[list[str], np.ndarray]:
    """Words that training touched, most frequent first, and their rows: float32 (words, dim)."""
    words = sorted((row, text) for (kind, text), row in encoder.ids.items() if kind == WORD)
    return [text for _, text in words], encoder.rows[[row for row, _ in words]]


def require_ngrams(encoder: TitleEncoder) -> NgramRows:
    """The encoder's n-gram rows, all that the format has for unseen words; ValueError if it has others."""
    if not isinstance(source := encoder.unseen_words, NgramRows):
        text = f"unseen words of this model come from {source.key}, and a fastText file has n-grams alone"
        raise ValueError(f"{text}; train with augment.strategy=distilled to export it")
    return source


def export_bin(encoder: TitleEncoder, document_frequency: np.ndarray, path: Path | str) -> int:
    """Writes an encoder's words and n-grams as a .bin; returns how many words. ``document_frequency``, int64
    (tokens,), as in tokens.parquet, becomes the words' counts.
    """
    words, vectors = word_vectors(encoder)
    if not words:
        raise ValueError("the model has no word with a row, so there is nothing to write")
    counts = document_frequency[[encoder.ids[WORD, word] for word in words]]
    ngrams = require_ngrams(encoder)
    ids = bucket_ids(words, ngrams.shortest, ngrams.longest, ngrams.buckets)
    unique, inverse = np.unique(ids.values, return_inverse=True)
    bags, buckets = Ragged(ids.offsets, inverse), _bucket_rows(ngrams, unique)
    means = _add_up(buckets, bags, np.zeros_like(vectors)) / np.maximum(ids.lengths, 1)[:, None]
    scale = np.float32(ngrams.norm / max(float(np.median(np.linalg.norm(means, axis=1))), 1e-12))
    buckets *= scale
    parts = (bags.lengths + 1).astype(np.float32)[:, None]
    rows = parts * vectors - _add_up(buckets, bags, np.zeros_like(vectors))
    read = _add_up(buckets, bags, rows.copy()) * (1 / parts)
    rows += parts * (vectors - read)
    header = Header(dim=encoder.dim, bucket=ngrams.buckets, minn=ngrams.shortest, maxn=ngrams.longest)
    order = np.argsort(-counts, kind="stable")
    entries = [(encode(words[place]), int(counts[place])) for place in order]
    write_bin(path, header, entries, _all_rows(rows[order], ngrams, scale), [np.zeros_like(vectors)])
    return len(words)


def _bucket_rows(ngrams: NgramRows, wanted: np.ndarray) -> np.ndarray:
    rows = np.tile(ngrams.mean, (len(wanted), 1))
    places, known = ngrams.find(wanted)
    rows[known] += ngrams.rows[places[known]]
    return rows


def _add_up(rows: np.ndarray, ids: Ragged, sums: np.ndarray) -> np.ndarray:
    """Adds each bag's rows to its sum, in float32 and in their order, as fastText does."""
    for position in range(int(ids.lengths.max(initial=0))):
        alive = np.flatnonzero(ids.lengths > position)
        sums[alive] += rows[ids.values[ids.offsets[alive] + position]]
    return sums


def _all_rows(words: np.ndarray, ngrams: NgramRows, scale: np.float32) -> Iterator[np.ndarray]:
    yield words
    for own in row_blocks(ngrams.buckets):
        yield _bucket_rows(ngrams, np.arange(own.start, own.stop)) * scale
