"""What words never seen do to the space: how many there are, where titles with them land, and what their n-grams add.

All over held-out titles, since no training title can hold such a word. "Without augmentation" is the same model with those
words left out of the bag.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tasks.evaluate.metrics import measure
from tasks.evaluate.protocols import NO_UNSEEN, PROTOCOLS, Titles, judge_knn

FEWEST = 20  # held-out titles that a language needs for a line of its own
MEASURES = ("accuracy", "precision_at_10", "mrr")


def measure_unseen_words(
    titles: Titles, languages: Sequence[str | None], words: np.ndarray, unseen: np.ndarray, vectors: np.ndarray, unaugmented: np.ndarray, k: int
) -> dict[str, object]:
    """Shares, distances and scores.

    Args:
        titles: The corpus.
        languages: Of each title, as the guide says, or None.
        words: int, shape (titles,): words of each title; read for held-out titles only.
        unseen: int, shape (titles,): how many of them no training title holds.
        vectors: float32, shape (titles, dim): with augmentation.
        unaugmented: float32, shape (titles, dim): without.
        k: Neighbours that vote.

    Returns:
        ``titles_share``, ``tokens_share``, ``titles``; the same by language under ``languages``; ``distance`` (cosine, to the mean
        of the other titles with the same first word: ``augmented``, ``unaugmented``, and of titles without such words: ``known``);
        by protocol, ``knn`` with and without augmentation.
    """
    held = np.isin(titles.split, PROTOCOLS)
    names = np.array([language or "unknown" for language in languages], dtype=object)
    found: dict[str, object] = _shares(held, words, unseen, titles.oov)
    own, counts = np.unique(names[held].astype(str), return_counts=True)
    found["languages"] = {str(name): _shares(held & (names == name), words, unseen, titles.oov) for name, count in zip(own, counts, strict=True) if count >= FEWEST}
    found["distance"] = {
        "augmented": _distance(vectors, titles.family, held & titles.oov),
        "unaugmented": _distance(unaugmented, titles.family, held & titles.oov),
        "known": _distance(vectors, titles.family, held & ~titles.oov),
    }
    training = titles.labelled("train")
    for protocol in PROTOCOLS:
        labelled = titles.labelled(protocol)
        queries = labelled[titles.oov[labelled]]
        if not len(queries) or not len(training):
            reason = NO_UNSEEN if len(labelled) and len(training) else f"no {'training title' if len(labelled) else f'title of {protocol}'} holds a label"
            found[protocol] = {"n": 0, "reason": reason}
            continue
        found[protocol] = {"n": len(queries)} | {
            name: {metric: value for metric, value in measure(judge_knn(titles, own, queries, training, k)).items() if metric in MEASURES}
            for name, own in (("augmented", vectors), ("unaugmented", unaugmented))
        }
    return found


def _shares(chosen: np.ndarray, words: np.ndarray, unseen: np.ndarray, oov: np.ndarray) -> dict[str, object]:
    """Of some titles."""
    count, tokens = int(chosen.sum()), int(words[chosen].sum())
    return {"titles": count, "titles_share": float(oov[chosen].mean()) if count else None, "tokens_share": float(unseen[chosen].sum()) / tokens if tokens else None}


def _distance(vectors: np.ndarray, family: np.ndarray, chosen: np.ndarray) -> dict[str, object]:
    """Mean of 1 − cosine to the mean of the family's other titles, over the chosen titles that have others and a vector."""
    sums = np.zeros((int(family.max()) + 1 if len(family) else 0, vectors.shape[1]), dtype=np.float64)
    np.add.at(sums, family, vectors)
    others = sums[family[chosen]] - vectors[chosen]
    norms = np.linalg.norm(others, axis=1) * np.linalg.norm(vectors[chosen], axis=1)
    usable = norms > 1e-6
    cosines = np.einsum("ij,ij->i", others[usable], vectors[chosen][usable]) / norms[usable]
    return {"n": int(usable.sum()), "mean": float((1 - cosines).mean()) if usable.any() else None}
