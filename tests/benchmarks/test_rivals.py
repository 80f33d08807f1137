"""Systems of the benchmark learn the categories of the toy world."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.rivals.contest import DIM, Contest, Rival
from benchmarks.rivals.fasttext import FastText
from benchmarks.rivals.ours import Ours
from benchmarks.rivals.plain import LabelMode, Plain
from benchmarks.training.training import SHORT_BAGS

pytestmark = pytest.mark.slow

RIVALS = [
    Ours(SHORT_BAGS),
    Plain(),
    LabelMode(),
    FastText("fastText", "tokens"),
    FastText("its n-grams", "words", longest_ngram=5),
]


@pytest.mark.parametrize("rival", RIVALS, ids=lambda rival: rival.name)
def test_a_rival_learns_the_toy_categories(toy_corpus: Path, rival: Rival):
    if isinstance(rival, FastText):
        pytest.importorskip("fasttext")
    contest = Contest(toy_corpus)
    trained = rival.train(contest, 20, 1, 1)  # a step per epoch
    vectors = trained.vectors()
    assert vectors.shape == (270, DIM) and np.isfinite(vectors).all()
    assert (
        isinstance(rival, FastText) or trained.spent.cpu > 0
    )  # its training of 200 titles takes less than its reading varies
    assert (
        contest.scores(vectors, "unseen_title", resamples=2)["precision_at_10"].value > 0.6
    )  # three categories: .33 by chance
