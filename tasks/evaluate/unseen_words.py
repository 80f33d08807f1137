"""Measures how well held-out titles with unseen words are embedded.

An unseen word is a word that no training title contains. *Augmentation* (tasks/augment) gives unseen words a
vector. Scores and distances are measured with augmented vectors and, for comparison, with unaugmented
vectors, which ignore unseen words.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from storage.lazy import torch
from tasks.scoring.metrics import measure
from tasks.scoring.protocols import NO_UNSEEN_REASON, PROTOCOLS, CorpusTitles, score_knn

MIN_LANGUAGE_TITLES = 20  # minimum number of held-out titles of a language that is reported separately
METRICS = ("accuracy", "precision_at_k", "mrr")


def measure_unseen_words(
    titles: CorpusTitles,
    languages: Sequence[str | None],
    word_counts: np.ndarray,
    unseen_counts: np.ndarray,
    vectors: Mapping[str, np.ndarray],
    k: int,
) -> dict[str, object]:
    """Measures the frequency of unseen words, and distances and scores of titles with unseen words.

    Args:
        titles: All titles of the corpus.
        languages: Language of each title; None if unknown.
        word_counts, unseen_counts: Numbers of all words and of unseen words of each title.
        vectors: Vectors of the titles with and without augmentation, float32 (titles, dim), under the keys
            ``augmented`` and ``unaugmented``.
        k: Number of neighbours that vote.

    Returns:
        The section "unseen_words" of scores.json: the shares of titles with unseen words and of unseen words,
        in total and by language; k-NN scores by held-out set, with and without augmentation; and
        ``distance``, the mean cosine distance of a title from the other titles with the same first word: with
        and without augmentation, and under the key ``known`` for titles without unseen words.
    """
    is_held_out = np.isin(titles.split, [*PROTOCOLS])
    language_names = np.array([language or "unknown" for language in languages])

    def measure_shares(is_selected: np.ndarray) -> dict[str, object]:
        title_count, word_count = int(is_selected.sum()), int(word_counts[is_selected].sum())
        return {
            "titles": title_count,
            "titles_share": float(titles.oov[is_selected].mean()) if title_count else None,
            "tokens_share": float(unseen_counts[is_selected].sum()) / word_count if word_count else None,
        }

    distinct_languages, counts = np.unique(language_names[is_held_out], return_counts=True)
    reported_languages = distinct_languages[counts >= MIN_LANGUAGE_TITLES]
    has_unseen, has_no_unseen = is_held_out & titles.oov, is_held_out & ~titles.oov
    result: dict[str, object] = {
        **measure_shares(is_held_out),
        "languages": {
            str(language): measure_shares(is_held_out & (language_names == language))
            for language in reported_languages
        },
        "distance": {
            **{name: _mean_distance(array, titles.family, has_unseen) for name, array in vectors.items()},
            "known": _mean_distance(vectors["augmented"], titles.family, has_no_unseen),
        },
    }
    return result | {protocol: _score_protocol(titles, protocol, vectors, k) for protocol in PROTOCOLS}


def _score_protocol(
    titles: CorpusTitles, protocol: str, vectors: Mapping[str, np.ndarray], k: int
) -> dict[str, object]:
    """Computes the k-NN scores of the titles of a held-out set that have unseen words.

    Returns:
        METRICS by name of the vectors, and ``n``, the number of scored titles; without titles, a ``reason``.
    """
    labelled = titles.labelled(protocol)
    queries = labelled[titles.oov[labelled]]
    if not len(labelled) or not len(titles.training):
        missing_titles = "training title" if len(labelled) else f"title of {protocol}"
        return {"n": 0, "reason": f"no {missing_titles} has a label"}
    if not len(queries):
        return {"n": 0, "reason": NO_UNSEEN_REASON}
    scores: dict[str, object] = {"n": len(queries)}
    for name, array in vectors.items():
        metrics = measure(score_knn(titles, array, queries, k))
        scores[name] = {metric: metrics[metric] for metric in METRICS}
    return scores


def _mean_distance(vectors: np.ndarray, family: np.ndarray, is_selected: np.ndarray) -> dict[str, object]:
    """Computes the mean cosine distance of titles from the mean vector of the other titles of their family.

    Titles are skipped if one of the two vectors is zero.

    Args:
        vectors: Vectors of all titles, float32 (titles, dim).
        family: Number of each title's family: the titles with the same first word.
        is_selected: Marks the titles whose distance is measured.

    Returns:
        ``mean``, the mean distance (None without titles), and ``n``, the number of measured titles.
    """
    from storage.tables.segment_sums import segment_sum

    values = torch.from_numpy(vectors.astype(np.float64))
    family_ids = torch.from_numpy(family.astype(np.int64))
    sums = segment_sum(values, family_ids, int(family.max(initial=-1)) + 1).numpy()
    selected_vectors = vectors[is_selected]
    other_sums = sums[family[is_selected]] - selected_vectors
    norms = np.linalg.norm(other_sums, axis=1) * np.linalg.norm(selected_vectors, axis=1)
    is_nonzero = norms > 1e-6
    cosines = np.einsum("ij,ij->i", other_sums[is_nonzero], selected_vectors[is_nonzero]) / norms[is_nonzero]
    return {"n": int(is_nonzero.sum()), "mean": float((1 - cosines).mean()) if is_nonzero.any() else None}
