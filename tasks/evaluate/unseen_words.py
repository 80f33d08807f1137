"""What words that no training title holds do to the space: their share, and where titles with them lie.

All over held-out titles. "Without augmentation" is the same model with those words left out of the bag.
"""

from collections.abc import Sequence

import numpy as np
import torch

from storage.sums import add_up
from tasks.scoring.metrics import measure
from tasks.scoring.protocols import NO_UNSEEN, PROTOCOLS, Titles, judge_knn

FEWEST = 20  # held-out titles that a language needs for a line of its own
MEASURES = ("accuracy", "precision_at_k", "mrr")


def measure_unseen_words(
    titles: Titles,
    languages: Sequence[str | None],
    words: np.ndarray,
    unseen: np.ndarray,
    vectors: np.ndarray,
    unaugmented: np.ndarray,
    k: int,
) -> dict[str, object]:
    """Shares (also by language), distances and, by protocol, scores with and without augmentation.

    ``words`` are in each title, ``unseen`` of them in no training title. ``distance`` is the cosine distance
    to the mean of the other titles with the same first word; ``known``: of titles without such words.
    """
    held = np.isin(titles.split, PROTOCOLS)
    names = np.array([language or "unknown" for language in languages])

    def shares(chosen: np.ndarray) -> dict[str, object]:
        count, tokens = int(chosen.sum()), int(words[chosen].sum())
        return {
            "titles": count,
            "titles_share": float(titles.oov[chosen].mean()) if count else None,
            "tokens_share": float(unseen[chosen].sum()) / tokens if tokens else None,
        }

    spoken, counts = np.unique(names[held], return_counts=True)
    strange = held & titles.oov
    chosen = {"augmented": (vectors, strange), "unaugmented": (unaugmented, strange)}
    chosen["known"] = vectors, held & ~titles.oov
    found = {
        **shares(held),
        "languages": {str(name): shares(held & (names == name)) for name in spoken[counts >= FEWEST]},
        "distance": {name: _distance(own, titles.family, rows) for name, (own, rows) in chosen.items()},
    }
    training = titles.labelled("train")
    for protocol in PROTOCOLS:
        labelled = titles.labelled(protocol)
        queries = labelled[titles.oov[labelled]]
        if not len(labelled) or not len(training):
            missing = "training title" if len(labelled) else f"title of {protocol}"
            found[protocol] = {"n": 0, "reason": f"no {missing} holds a label"}
        elif not len(queries):
            found[protocol] = {"n": 0, "reason": NO_UNSEEN}
        else:
            found[protocol] = {"n": len(queries)}
            for name, own in (("augmented", vectors), ("unaugmented", unaugmented)):
                measured = measure(judge_knn(titles, own, queries, training, k))
                found[protocol][name] = {metric: measured[metric] for metric in MEASURES}
    return found


def _distance(vectors: np.ndarray, family: np.ndarray, chosen: np.ndarray) -> dict[str, object]:
    """Mean of 1 − cosine to the mean of the family's other titles, where there are others and a vector."""
    values, places = torch.from_numpy(vectors.astype(np.float64)), torch.from_numpy(family.astype(np.int64))
    sums = add_up(values, places, int(family.max(initial=-1)) + 1).numpy()
    others = sums[family[chosen]] - vectors[chosen]
    norms = np.linalg.norm(others, axis=1) * np.linalg.norm(vectors[chosen], axis=1)
    usable = norms > 1e-6
    cosines = np.einsum("ij,ij->i", others[usable], vectors[chosen][usable]) / norms[usable]
    return {"n": int(usable.sum()), "mean": float((1 - cosines).mean()) if usable.any() else None}
