"""Measures the drift between two nightly runs: changes of vocabulary, categories, titles and neighbours.

Distributions are compared by the Jensen–Shannon divergence in bits, which is 0 for equal and 1 for disjoint
distributions (Lin, *Divergence measures based on the Shannon entropy*, 1991, equation 4.1 with equal
weights). The nearest neighbours of a title are searched only among titles of both runs, so that new titles
have no influence.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from storage.formats.corpus import OpenCorpus
from storage.formats.model import open_similarity
from storage.formats.vocabulary import NEXT_PERIOD, UNSEEN_SHOW, UNSEEN_TITLE
from storage.shapes import Float32
from tasks.neighbours.similarity import top_neighbours

NEAREST = 10  # number of compared neighbours per title
MAX_QUERIES = 2_000  # titles whose neighbours are compared
MAX_CANDIDATES = 20_000  # titles among which neighbours are searched
Counts = Mapping[str, int]  # number of occurrences by word or category


def oov_share(corpus: OpenCorpus) -> float:
    """Returns the share of held-out titles of a corpus with a word that no training title contains."""
    is_held_out = np.isin(corpus.split, (UNSEEN_TITLE, UNSEEN_SHOW, NEXT_PERIOD))
    return float(corpus.oov[is_held_out].mean()) if is_held_out.any() else 0.0


def measure_drift(previous_model: Path, current_model: Path) -> dict[str, float]:
    """Returns the metrics of the drift between two Model folders, by name.

    The metric ``neighbours_stayed`` is missing if the models have fewer than eleven titles in common.

    Args:
        previous_model: Folder of the Model of the previous run.
        current_model: Folder of the Model of this run.
    """
    previous_words, current_words = _word_counts(previous_model), _word_counts(current_model)
    previous_titles, current_titles = (
        pq.read_table(folder / "titles.parquet", columns=["raw_title", "labels"])
        for folder in (previous_model, current_model)
    )
    metrics = {
        "vocabulary_distance": divergence(previous_words, current_words),
        "new_words": missing_share(current_words, previous_words),
        "gone_words": missing_share(previous_words, current_words),
        "category_distance": divergence(_category_counts(previous_titles), _category_counts(current_titles)),
    }
    previous_index = pc.index_in(current_titles["raw_title"], value_set=previous_titles["raw_title"])  # pyright: ignore[reportAttributeAccessIssue]
    previous_rows = previous_index.combine_chunks().fill_null(-1).to_numpy()
    common_rows = np.flatnonzero(previous_rows >= 0)
    metrics["new_titles"] = 1 - len(common_rows) / max(1, len(current_titles))
    metrics["gone_titles"] = 1 - len(common_rows) / max(1, len(previous_titles))
    sample = np.linspace(0, len(common_rows) - 1, min(MAX_CANDIDATES, len(common_rows))).astype(int)
    compared_rows = common_rows[sample]
    if len(compared_rows) > NEAREST:
        metrics["neighbours_stayed"] = 1.0
        if previous_model != current_model:
            previous_vectors = open_similarity(previous_model)[previous_rows[compared_rows]]
            metrics["neighbours_stayed"] = neighbour_overlap(
                previous_vectors, open_similarity(current_model)[compared_rows]
            )
    return metrics


def divergence(left: Counts, right: Counts) -> float:
    """Returns the Jensen–Shannon divergence, in bits, of two distributions of counts; 0 if one is empty."""
    names = sorted({*left, *right})
    shares = np.array([[counts.get(name, 0) for name in names] for counts in (left, right)], dtype=float)
    totals = shares.sum(axis=1, keepdims=True)
    if not names or not totals.all():
        return 0.0
    shares /= totals
    mean = shares.mean(axis=0)
    ratio = np.divide(shares, mean, out=np.ones_like(shares), where=shares > 0)
    return max(0.0, float((shares * np.log2(ratio)).sum() / 2))


def missing_share(counts: Counts, reference: Counts) -> float:
    """Returns the share of the occurrences in ``counts`` whose names are missing in ``reference``."""
    missing_count = sum(count for name, count in counts.items() if name not in reference)
    return missing_count / max(1, sum(counts.values()))


def neighbour_overlap(
    previous_vectors: Float32[np.ndarray, "titles dim_before"],
    current_vectors: Float32[np.ndarray, "titles dim"],
) -> float:
    """Returns the mean share of the ten previous neighbours of a title that are still among the ten nearest.

    The mean is over a sample of at most MAX_QUERIES titles.

    Args:
        previous_vectors: Vectors of titles by the previous model.
        current_vectors: Vectors of the same titles by the current model.
    """
    queries = np.linspace(0, len(current_vectors) - 1, min(MAX_QUERIES, len(current_vectors))).astype(int)
    neighbours = zip(
        _nearest_rows(previous_vectors, queries), _nearest_rows(current_vectors, queries), strict=True
    )
    shares = [
        np.isin(previous_rows[previous_rows >= 0], current_rows).mean()
        for previous_rows, current_rows in neighbours
        if (previous_rows >= 0).any()
    ]
    return float(np.mean(shares)) if shares else 0.0


def _nearest_rows(vectors: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Returns the ten nearest other rows of each row in ``queries``, int64 (queries, 10), padded with -1."""
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    ids, _ = top_neighbours(vectors[queries], vectors, NEAREST + 1)
    other_columns = np.argsort(ids == queries[:, None], axis=1, kind="stable")[:, :NEAREST]
    return np.take_along_axis(ids, other_columns, axis=1)


def _word_counts(model: Path) -> Counter[str]:
    """Reads from a Model folder the number of occurrences of each word in training titles."""
    table = pq.read_table(model / "tokens.parquet", columns=["kind", "token", "term_frequency"])
    words = table.filter(pc.field("kind") == "word")
    return Counter(dict(zip(words["token"].to_pylist(), words["term_frequency"].to_pylist(), strict=True)))


def _category_counts(titles: pa.Table) -> Counter[str]:
    """Returns the number of titles in each category."""
    return Counter(label for labels in titles["labels"].to_pylist() for label in labels)
