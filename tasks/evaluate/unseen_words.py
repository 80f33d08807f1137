"""Measures how well held-out titles with unseen words are embedded.

An unseen word is a word that no training title contains. *Augmentation* (tasks/augment) gives such words a
vector. Scores and distances are measured with augmentation and, for comparison, with vectors that ignore
unseen words.
"""

from collections.abc import Sequence

import numpy as np

from storage.lazy import torch
from tasks.scoring.metrics import measure
from tasks.scoring.protocols import NO_UNSEEN_REASON, PROTOCOLS, CorpusTitles, judge_knn

MIN_LANGUAGE_TITLES = 20  # held-out titles needed to report a language
METRICS = ("accuracy", "precision_at_k", "mrr")


def measure_unseen_words(
    titles: CorpusTitles,
    languages: Sequence[str | None],
    words: np.ndarray,
    unseen: np.ndarray,
    vectors: np.ndarray,
    unaugmented: np.ndarray,
    k: int,
) -> dict[str, object]:
    """Measures the frequency of unseen words, and distances and scores of titles that contain them.

    ``words`` and ``unseen`` are the numbers of all words and of unseen words of each title; ``vectors`` and
    ``unaugmented`` are the vectors of the titles, [titles, dim], with augmentation and without.

    Returns:
        The section "unseen_words" of scores.json: shares of titles and words, also by language; by held-out
        set, k-NN scores with and without augmentation; and ``distance``, the mean cosine distance of a title
        from the other titles with the same first word (key ``known``: titles without unseen words).
    """
    is_held_out = np.isin(titles.split, [*PROTOCOLS])
    names = np.array([language or "unknown" for language in languages])

    def shares(is_selected: np.ndarray) -> dict[str, object]:
        count, tokens = int(is_selected.sum()), int(words[is_selected].sum())
        return {
            "titles": count,
            "titles_share": float(titles.oov[is_selected].mean()) if count else None,
            "tokens_share": float(unseen[is_selected].sum()) / tokens if tokens else None,
        }

    language_names, counts = np.unique(names[is_held_out], return_counts=True)
    reported_languages = language_names[counts >= MIN_LANGUAGE_TITLES]
    has_unseen = is_held_out & titles.oov
    chosen = {"augmented": (vectors, has_unseen), "unaugmented": (unaugmented, has_unseen)}
    chosen["known"] = vectors, is_held_out & ~titles.oov
    result = {
        **shares(is_held_out),
        "languages": {str(name): shares(is_held_out & (names == name)) for name in reported_languages},
        "distance": {name: _distance(array, titles.family, rows) for name, (array, rows) in chosen.items()},
    }
    training = titles.labelled("train")
    for protocol in PROTOCOLS:
        labelled = titles.labelled(protocol)
        queries = labelled[titles.oov[labelled]]
        if not len(labelled) or not len(training):
            missing = "training title" if len(labelled) else f"title of {protocol}"
            result[protocol] = {"n": 0, "reason": f"no {missing} holds a label"}
        elif not len(queries):
            result[protocol] = {"n": 0, "reason": NO_UNSEEN_REASON}
        else:
            result[protocol] = {"n": len(queries)}
            for name, array in (("augmented", vectors), ("unaugmented", unaugmented)):
                metrics = measure(judge_knn(titles, array, queries, training, k))
                result[protocol][name] = {metric: metrics[metric] for metric in METRICS}
    return result


def _distance(vectors: np.ndarray, family: np.ndarray, rows: np.ndarray) -> dict[str, object]:
    """Returns the mean cosine distance of the titles ``rows`` from the mean of the rest of their family.

    A family is the titles with the same first word. Titles are skipped if one of both vectors is zero.
    """
    from storage.tables.segment_sums import segment_sum

    values, family_ids = (
        torch.from_numpy(vectors.astype(np.float64)),
        torch.from_numpy(family.astype(np.int64)),
    )
    sums = segment_sum(values, family_ids, int(family.max(initial=-1)) + 1).numpy()
    other_sums = sums[family[rows]] - vectors[rows]
    norms = np.linalg.norm(other_sums, axis=1) * np.linalg.norm(vectors[rows], axis=1)
    is_nonzero = norms > 1e-6
    cosines = np.einsum("ij,ij->i", other_sums[is_nonzero], vectors[rows][is_nonzero]) / norms[is_nonzero]
    return {"n": int(is_nonzero.sum()), "mean": float((1 - cosines).mean()) if is_nonzero.any() else None}
