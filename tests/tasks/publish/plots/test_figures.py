"""Plots of held-out titles and of the history of runs, by hand-made answers."""

import datetime
from pathlib import Path

import numpy as np
import pytest

from storage.arrays import Ragged
from storage.formats.corpus import TRAIN, OpenCorpus
from tasks.publish.plots.held_out_plots import (
    Predictions,
    plot_borders,
    plot_precision_by_rarest_word,
    predict_both,
    rarest_words,
)
from tasks.publish.plots.run_plots import MOST, HistoryPoint, extend_history, plot_history, write_history
from tasks.text.words import NGRAM, WORD

AT = datetime.datetime(2025, 6, 7, 4, tzinfo=datetime.UTC)


def corpus_of(
    tokens: list[list[int]], labels: list[list[int]], split: list[int], kinds: list[int], oov: list[bool]
) -> OpenCorpus:
    each = np.arange(len(tokens), dtype=np.int32)
    weights = np.ones(len(kinds), dtype=np.float32)
    return OpenCorpus(
        folder=Path(),
        tokens=Ragged.from_rows(tokens),
        labels=Ragged.from_rows(labels),
        split=np.array(split, dtype=np.int8),
        show=each,
        family=each,
        oov=np.array(oov),
        kinds=np.array(kinds, dtype=np.int8),
        weights=weights,
        label_names=["news", "sport"],
        sentences=np.zeros((len(tokens), 0), np.float16),
        descriptions=np.zeros((len(tokens), 0), np.float16),
    )


@pytest.mark.parametrize("block", [1, 2, 100])
def test_the_rarest_word_counts_training_titles_once_each_and_words_alone(block, monkeypatch):
    monkeypatch.setattr("storage.arrays.BLOCK", block)
    tokens = [[0, 0, 1], [0, 3], [1], [0, 1, 2], [0], [3], [2]]  # token 2 is an n-gram, 3 a word
    corpus = corpus_of(
        tokens,
        [[0]] * 7,
        [TRAIN, TRAIN, TRAIN, 1, 1, 1, 1],
        [WORD, WORD, NGRAM, WORD],
        [False, False, False, False, True, False, False],
    )
    assert rarest_words(corpus, np.array([3, 4, 5, 6])).tolist() == [
        2,
        0,
        1,
        -1,
    ]  # 0 is in two training titles, though twice in one


def test_precision_by_rarest_word_is_a_mean_a_bin():
    figure = plot_precision_by_rarest_word(
        np.array([0, 0, 1, 4, 120, -1]), np.array([0.1, 0.3, 0.5, 0.6, 1.0, 0.9])
    )
    assert list(figure.data[0].x) == ["unseen", "1", "3–4", "100 or more"]
    assert list(figure.data[0].y) == pytest.approx([0.2, 0.5, 0.6, 1.0])
    assert figure.data[0].text[0] == "0.20<br>of 2"
    assert (
        "No held-out"
        in plot_precision_by_rarest_word(np.array([-1]), np.array([1.0])).layout.annotations[0].text
    )


def test_a_hyperplane_cannot_go_round_what_neighbours_can():
    """Sport surrounds news on a circle: on one side of any plane there is always some of both; neighbours
    know better."""
    angle = np.linspace(0, 2 * np.pi, 120, endpoint=False)
    vectors = np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)
    label = (np.arange(120) // 15) % 2  # eight arcs
    split = np.where(np.arange(120) % 15 == 7, 1, TRAIN)  # the middle of each arc is held out
    corpus = corpus_of([[0]] * 120, [[int(one)] for one in label], split.tolist(), [WORD], [False] * 120)
    queries = np.flatnonzero(split == 1)
    predictions = predict_both(corpus, vectors, queries)
    assert predictions.knn.tolist() == label[queries].tolist() and predictions.knn_right.all()
    assert 0 < predictions.plane_right.sum() < len(queries)
    assert (predictions.plane_right == (predictions.plane == label[queries])).all()


def test_straight_borders_are_found_by_both():
    rng = np.random.default_rng(1)
    centres = np.array([[1.0, 0.0], [0.0, 1.0]])
    label = np.arange(80) % 2
    vectors = centres[label] + rng.normal(0, 0.1, (80, 2))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    corpus = corpus_of(
        [[0]] * 80, [[int(one)] for one in label], [TRAIN] * 60 + [1] * 20, [WORD], [False] * 80
    )
    predictions = predict_both(corpus, vectors, np.arange(60, 80))
    assert predictions.knn_right.all() and predictions.plane_right.all()


def test_borders_are_drawn_by_who_was_right():
    right = np.array([True, True, False, False])
    predictions = Predictions(
        np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), right, np.array([True, False, True, False])
    )
    figure = plot_borders(
        ["A", "B", "<i>", "D"],
        np.arange(8).reshape(4, 2) / 10,
        [["news"]] * 4,
        ["news", "sport"],
        predictions,
    )
    assert [trace.name for trace in figure.data] == [
        "both right (1)",
        "both wrong (1)",
        "only k-NN right (1)",
        "only the hyperplane right (1)",
    ]
    assert figure.data[3].text[0] == "<b>&lt;i&gt;</b><br>news<br>k-NN: sport<br>hyperplane: news"
    assert (figure.data[3].x[0], figure.data[3].y[0]) == (0.4, 0.5)
    assert "2 of 4 titles" in figure.layout.annotations[-1].text
    nothing = Predictions(*(np.zeros(0, dtype=int) for _ in range(4)))
    assert "No held-out" in plot_borders([], np.zeros((0, 2)), [], [], nothing).layout.annotations[0].text


def test_runs_are_remembered_from_page_to_page(tmp_path: Path):
    scores = {
        "protocols": {
            "unseen_title": {"title_only": {"n": 9, "knn": {"precision_at_k": 0.4}}},
            "next_period": {"title_only": {"n": 0, "reason": "none"}},
        }
    }
    first = extend_history(None, AT, [{"loss": 2.0}, {"loss": 1.0}], scores)
    assert first == [HistoryPoint(AT, [2.0, 1.0], {"unseen_title": 0.4})]
    write_history(tmp_path, first)
    scores["protocols"]["unseen_title"]["title_only"]["knn"]["precision_at_k"] = 0.5
    both = extend_history(tmp_path, AT + datetime.timedelta(days=1), [{"loss": 1.5}], scores)
    assert both[0] == first[0] and both[1].precision == {"unseen_title": 0.5}
    write_history(tmp_path, both * MOST)
    assert len(extend_history(tmp_path, AT, [], scores)) == MOST

    figure = plot_history(both)
    assert [list(trace.y) for trace in figure.data] == [[2.0, 1.0], [1.5], [0.4, 0.5]]
    assert [trace.line.width for trace in figure.data[:2]] == [1.5, 3]
    assert "No run" in plot_history([]).layout.annotations[-1].text
