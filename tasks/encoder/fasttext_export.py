"""Exports the words of a title encoder as a fastText model, for the fasttext package and gensim.

In fastText, the vector of a word is the sum of the row of the word and the rows of its n n-grams, divided by
n + 1. The row of a word that should have the vector v is therefore

    row = (n + 1) · v − Σ n-gram rows

After a correction of float32 rounding, the exported vector differs from v by about 1e-7. To get the row of an
n-gram bucket, the mean that was subtracted in the fit is added to its fitted row (or to zero), and the sum is
multiplied by a scale that all buckets have in common. fastText does not normalize the vectors of unseen
words. The scale is chosen so that the median norm of the mean n-gram rows of words is the norm of unseen
words in the title encoder.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from storage.arrays import Ragged, row_blocks
from tasks.encoder.title_encoder import TitleEncoder
from tasks.encoder.unseen_words import NgramRows
from tasks.fasttext.layout import Header
from tasks.fasttext.matrices import add_rows
from tasks.fasttext.ngrams import bucket_ids, encode
from tasks.fasttext.writer import write_bin
from tasks.text.words import WORD


def word_vectors(encoder: TitleEncoder) -> tuple[list[str], np.ndarray]:
    """Returns the trained words, the most frequent first, and their embedding rows, float32 (words, dim)."""
    words = sorted((row, text) for (kind, text), row in encoder.ids.items() if kind == WORD)
    return [text for _, text in words], encoder.rows[[row for row, _ in words]]


def require_ngrams(encoder: TitleEncoder) -> NgramRows:
    """Returns the fitted n-gram rows of an encoder.

    Raises:
        ValueError: The encoder computes vectors of unseen words without n-gram rows.
    """
    if not isinstance(source := encoder.unseen_words, NgramRows):
        raise ValueError(
            f"the vectors of unseen words of this model come from {source.key}, but a fastText file can "
            "contain only n-grams; train with augment.strategy=distilled to export a fastText file"
        )
    return source


def export_bin(encoder: TitleEncoder, document_frequency: np.ndarray, path: Path | str) -> int:
    """Writes the words and n-grams of an encoder as a .bin file and returns the number of words.

    Args:
        encoder: Encoder to export.
        document_frequency: Number of training titles of each token (tokens.parquet), int64 (tokens,).
        path: File to write.

    Raises:
        ValueError: The encoder has no words, or computes vectors of unseen words without n-gram rows.
    """
    words, vectors = word_vectors(encoder)
    if not words:
        raise ValueError("the model has no trained words; train it on a guide whose titles contain words")
    counts = document_frequency[[encoder.ids[WORD, word] for word in words]]
    ngrams = require_ngrams(encoder)
    ids = bucket_ids(words, ngrams.shortest, ngrams.longest, ngrams.buckets)
    distinct_ids, inverse = np.unique(ids.values, return_inverse=True)
    word_buckets, bucket_rows = Ragged(ids.offsets, inverse), _bucket_rows(ngrams, distinct_ids)
    zeros = np.zeros_like(vectors)
    means = add_rows(bucket_rows.__getitem__, word_buckets, zeros) / np.maximum(ids.lengths, 1)[:, None]
    scale = np.float32(ngrams.norm / max(float(np.median(np.linalg.norm(means, axis=1))), 1e-12))
    bucket_rows *= scale
    row_counts = (word_buckets.lengths + 1).astype(np.float32)[:, None]
    rows = row_counts * vectors - add_rows(bucket_rows.__getitem__, word_buckets, zeros)
    exported_vectors = add_rows(bucket_rows.__getitem__, word_buckets, rows) * (1 / row_counts)
    rows += row_counts * (vectors - exported_vectors)
    header = Header(dim=encoder.dim, bucket=ngrams.buckets, minn=ngrams.shortest, maxn=ngrams.longest)
    order = np.argsort(-counts, kind="stable")
    entries = [(encode(words[position]), int(counts[position])) for position in order]
    write_bin(path, header, entries, _all_rows(rows[order], ngrams, scale), [zeros])
    return len(words)


def _bucket_rows(ngrams: NgramRows, buckets: np.ndarray) -> np.ndarray:
    """Returns the fitted row (or zero) of each bucket plus the mean, float32 (buckets, dim)."""
    rows = np.tile(ngrams.mean, (len(buckets), 1))
    positions, has_row = ngrams.find(buckets)
    rows[has_row] += ngrams.rows[positions[has_row]]
    return rows


def _all_rows(word_rows: np.ndarray, ngrams: NgramRows, scale: np.float32) -> Iterator[np.ndarray]:
    """Yields the rows of words, then the rows of all buckets in blocks."""
    yield word_rows
    for block in row_blocks(ngrams.buckets):
        yield _bucket_rows(ngrams, np.arange(block.start, block.stop)) * scale
