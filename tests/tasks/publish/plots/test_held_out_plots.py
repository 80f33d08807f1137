"""Plots of held-out titles on small corpora."""

from pathlib import Path

import numpy as np
import pytest

from storage.arrays import Ragged
from storage.formats.corpus import TRAIN, OpenCorpus
from tasks.publish.plots.held_out_plots import (
    plot_category_accuracy,
    plot_precision_by_rarest_word,
    rarest_word_counts,
)
from tasks.text.words import NGRAM, WORD


def make_corpus(tokens=None, labels=None, split=None, kinds=(WORD,), oov=None) -> OpenCorpus:
    titles = len(split)
    row = np.arange(titles, dtype=np.int32)
    return OpenCorpus(
        folder=Path(),
        tokens=Ragged.from_rows(tokens or [[0]] * titles),
        labels=Ragged.from_rows([[0]] * titles if labels is None else [[int(label)] for label in labels]),
        split=np.array(split, dtype=np.int8),
        show=row,
        family=row,
        oov=np.array(oov or [False] * titles),
        rare=np.zeros(titles, dtype=bool),
        kinds=np.array(kinds, dtype=np.int8),
        weights=np.ones(len(kinds), dtype=np.float32),
        label_names=["news", "sport"],
        sentences=np.zeros((titles, 0), np.float16),
        descriptions=np.zeros((titles, 0), np.float16),
    )


@pytest.mark.parametrize("block", [1, 2, 100])
def test_rarest_words_count_each_training_title_once(block, monkeypatch):
    monkeypatch.setattr("storage.arrays.BLOCK_ROWS", block)
    corpus = make_corpus(
        tokens=[[0, 0, 1], [0, 3], [1], [0, 1, 2], [0], [3], [2]],  # token 2 is an n-gram
        split=[TRAIN, TRAIN, TRAIN, 1, 1, 1, 1],
        kinds=[WORD, WORD, NGRAM, WORD],
        oov=[False, False, False, False, True, False, False],
    )
    assert rarest_word_counts(corpus, np.array([3, 4, 5, 6])).tolist() == [2, 0, 1, -1]


def test_precision_is_averaged_by_bin_of_the_rarest_word():
    rarest, precision = np.array([0, 0, 1, 4, 120, -1]), np.array([0.1, 0.3, 0.5, 0.6, 1.0, 0.9])
    (bars,) = plot_precision_by_rarest_word(rarest, precision).data
    assert list(bars.x) == ["unseen", "1", "3–4", "100 or more"]
    assert list(bars.y) == pytest.approx([0.2, 0.5, 0.6, 1.0])
    assert not plot_precision_by_rarest_word(np.array([-1]), np.array([1.0])).data[0].x


def test_accuracy_by_category_and_protocol():
    labels = [["news"], ["news"], ["news", "sport"], ["sport"], ["news"]]
    correct, protocols = [True, False, True, False, True], ["unseen_title"] * 4 + ["next_period"]
    first, second = plot_category_accuracy(labels, correct, protocols).data
    assert dict(zip(first.y, first.x)) == pytest.approx({"news": 2 / 3, "sport": 1 / 2})
    assert dict(zip(first.y, first.text)) == {"news": "67% of 3", "sport": "50% of 2"}
    assert (list(second.y), list(second.x)) == (["news"], [1.0])
    assert (first.visible, second.visible) == (True, "legendonly")


def test_only_the_largest_categories_are_shown():
    labels = [[f"genre {i}"] for i in range(40) for _ in range(40 - i)]
    (bars,) = plot_category_accuracy(labels, [True] * len(labels), ["unseen_show"] * len(labels)).data
    assert set(bars.y) == {f"genre {i}" for i in range(25)}
