"""A Lexicon as a fastText model that the fasttext package and gensim load.

fastText divides the sum of a word's row and its n-grams' rows by their number n + 1, so that a word whose vector is v gets

    row = (n + 1) · v − Σ n-gram rows

and keeps v (to about 1e-7, after one correction of what float32 rounds away). Every bucket's row is what was distilled
plus the mean that distilling took away (also where nothing was distilled, since the mean belongs to every word), times one
number for all: fastText cannot bring each word never seen to the same length, so the median of them gets it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from storage.arrays import Ragged
from tasks.augment.distilled import Distilled
from tasks.augment.fasttext.layout import Header
from tasks.augment.fasttext.writer import write_bin
from tasks.augment.lexicon import Lexicon
from tasks.augment.ngrams import bucket_ids
from tasks.augment.unseen import NgramRows
from tasks.tokenize.words import WORD

_BLOCK = 65_536  # buckets written at once: 32 MB of 128 dimensions


def word_vectors(lexicon: Lexicon) -> tuple[list[str], np.ndarray]:
    """Words that training touched, most frequent first, and their rows: float32 (words, dim)."""
    words = [(row, text) for (kind, text), row in lexicon.ids.items() if kind == WORD]
    words.sort()
    return [text for _, text in words], lexicon.rows[[row for row, _ in words]]


def export_bin(lexicon: Lexicon, document_frequency: np.ndarray, path: Path | str, buckets: int | None = None) -> int:
    """Writes a lexicon's words and n-grams as a .bin; returns how many words.

    Args:
        lexicon: What to write.
        document_frequency: int64 (tokens,), as in tokens.parquet: becomes the words' counts.
        path: File to write.
        buckets: Hash buckets; None takes the lexicon's own, for the same vectors. Another number distils anew: a smaller file.

    Raises:
        ValueError: The lexicon has no word.
    """
    words, vectors = word_vectors(lexicon)
    if not words:
        raise ValueError("the model has no word with a row, so there is nothing to write")
    counts = document_frequency[[lexicon.ids[WORD, word] for word in words]]
    ngrams = lexicon.ngrams
    if buckets is not None and buckets != ngrams.buckets:
        ngrams = Distilled(shortest=ngrams.shortest, longest=ngrams.longest, buckets=buckets).fit(words, vectors, counts)
    ids = bucket_ids(words, ngrams.shortest, ngrams.longest, ngrams.buckets)
    sums = _sums(ngrams, ids)
    scale = np.float32(ngrams.norm / max(float(np.median(np.linalg.norm(sums / np.maximum(ids.lengths, 1)[:, None], axis=1))), 1e-12))
    rows = _word_rows(vectors, ngrams, ids, scale)
    header = Header(
        version=12, dim=lexicon.dim, ws=5, epoch=1, min_count=1, neg=5, word_ngrams=1, loss=2, model=2,
        bucket=ngrams.buckets, minn=ngrams.shortest, maxn=ngrams.longest, lr_update_rate=100, t=1e-4,
    )  # fmt: skip
    entries = [(word.encode("utf-8", "surrogatepass"), int(count)) for word, count in zip(words, counts, strict=True)]
    order = np.argsort(-counts, kind="stable")
    write_bin(path, header, [entries[place] for place in order], _all_rows(rows[order], ngrams, scale), [np.zeros_like(vectors)])
    return len(words)


def _bucket_rows(ngrams: NgramRows, wanted: np.ndarray, scale: np.float32) -> np.ndarray:
    """Rows of buckets as they are written: float32 (wanted, dim)."""
    rows = np.tile(ngrams.mean, (len(wanted), 1))
    if len(ngrams.bucket_ids):
        places = np.searchsorted(ngrams.bucket_ids, wanted).clip(max=len(ngrams.bucket_ids) - 1)
        known = ngrams.bucket_ids[places] == wanted
        rows[known] += ngrams.rows[places[known]]
    return rows * scale


def _sums(ngrams: NgramRows, ids: Ragged) -> np.ndarray:
    """Sum of the n-gram rows of each word, unscaled: float32 (words, dim)."""
    unique, inverse = np.unique(ids.values, return_inverse=True)
    return _add_up(_bucket_rows(ngrams, unique, np.float32(1)), Ragged(ids.offsets, inverse), np.zeros((len(ids), len(ngrams.mean)), dtype=np.float32))


def _add_up(rows: np.ndarray, ids: Ragged, sums: np.ndarray) -> np.ndarray:
    """Adds each bag's rows to its sum, in float32 and in their order, as fastText does."""
    for position in range(int(ids.lengths.max()) if len(ids) else 0):
        alive = np.flatnonzero(ids.lengths > position)
        sums[alive] += rows[ids.values[ids.offsets[alive] + position]]
    return sums


def _word_rows(vectors: np.ndarray, ngrams: NgramRows, ids: Ragged, scale: np.float32) -> np.ndarray:
    unique, inverse = np.unique(ids.values, return_inverse=True)
    bags, buckets = Ragged(ids.offsets, inverse), _bucket_rows(ngrams, unique, scale)
    parts = (ids.lengths + 1).astype(np.float32)[:, None]
    rows = parts * vectors - _add_up(buckets, bags, np.zeros_like(vectors))
    read = _add_up(buckets, bags, rows.copy()) * (1 / parts)
    return rows + parts * (vectors - read)


def _all_rows(words: np.ndarray, ngrams: NgramRows, scale: np.float32) -> Iterator[np.ndarray]:
    yield words
    for start in range(0, ngrams.buckets, _BLOCK):
        yield _bucket_rows(ngrams, np.arange(start, min(start + _BLOCK, ngrams.buckets)), scale)
