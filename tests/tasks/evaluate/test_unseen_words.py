"""Shares, distances and scores of titles with unseen words, compared with values computed by hand."""

import numpy as np
import pytest

from storage.arrays import Ragged
from tasks.evaluate.unseen_words import measure_unseen_words
from tasks.scoring.protocols import CorpusTitles

SPLIT = np.array(["train"] * 20 + ["unseen_title"] * 24 + ["placeholder"])
N = len(SPLIT)


def world(oov: list[int]) -> CorpusTitles:
    """Two labels, even and odd titles; two families alike."""
    labels = Ragged.from_rows([[number % 2] for number in range(N)])
    flags = np.zeros(N, dtype=bool)
    flags[oov] = True
    arrays = {"family": np.arange(N) % 2, "oov": flags, "rare": np.zeros(N, dtype=bool)}
    return CorpusTitles(split=SPLIT, labels=labels, label_count=2, **arrays)


def test_shares_distances_and_scores():
    vectors = np.eye(2, dtype=np.float32)[np.arange(N) % 2]
    wrong = vectors.copy()
    wrong[[20, 21]] = vectors[[21, 20]]
    words, unseen = np.full(N, 4), np.zeros(N, dtype=int)
    unseen[[20, 21]] = [1, 2]
    languages = ["en"] * 43 + [None, "xx"]
    compared = {"augmented": vectors, "unaugmented": wrong}
    found = measure_unseen_words(world([20, 21]), languages, words, unseen, compared, 5)
    assert (
        found["titles"] == 24
        and found["titles_share"] == pytest.approx(2 / 24)
        and found["tokens_share"] == pytest.approx(3 / 96)
    )
    assert found["languages"] == {
        "en": {"titles": 23, "titles_share": pytest.approx(2 / 23), "tokens_share": pytest.approx(3 / 92)}
    }
    assert found["distance"]["augmented"] == {"n": 2, "mean": pytest.approx(0, abs=1e-6)}
    assert found["distance"]["unaugmented"]["mean"] == pytest.approx(1, abs=0.01)
    assert found["distance"]["known"] == {"n": 22, "mean": pytest.approx(0, abs=1e-6)}
    assert found["unseen_title"] == {
        "n": 2,
        "augmented": {"accuracy": 1, "precision_at_k": 1, "mrr": 1},
        "unaugmented": {"accuracy": 0, "precision_at_k": 0, "mrr": pytest.approx(0.5)},
    }


def test_without_unseen_words():
    vectors = np.eye(2, dtype=np.float32)[np.arange(N) % 2]
    compared = {"augmented": vectors, "unaugmented": vectors}
    found = measure_unseen_words(
        world([]), [None] * N, np.ones(N, dtype=int), np.zeros(N, dtype=int), compared, 5
    )
    assert found["titles_share"] == 0 and found["distance"]["augmented"] == {"n": 0, "mean": None}
    assert found["unseen_title"] == {
        "n": 0,
        "reason": "every word of these titles occurs in a training title",
    }
    assert found["next_period"] == {"n": 0, "reason": "no title of next_period has a label"}
    assert list(found["languages"]) == ["unknown"]
