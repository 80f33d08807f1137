"""The vote on small examples."""

import numpy as np
import pytest

from storage.arrays import Ragged
from tasks.baselines.predictions import predict_from_scores, rank_labels, vote

NEWS, SPORT, MOVIE, KIDS = range(4)
# Training titles 0 … 5 and their labels.
LABELS = Ragged.from_rows([[NEWS], [NEWS], [SPORT], [SPORT], [MOVIE, KIDS], [SPORT]])
FREQUENCY = np.bincount(LABELS.values, minlength=4)  # news 2, sport 3, movie 1, kids 1


def ask(
    neighbours: list[int], similarities: list[float], frequency: np.ndarray = FREQUENCY
) -> tuple[list[int], list[int]]:
    """Returns the labels from best to worst, and the written labels."""
    predictions = vote(np.array([neighbours]), np.array([similarities], dtype=np.float32), LABELS, frequency)
    return np.argsort(predictions.ranks[0]).tolist(), np.flatnonzero(predictions.predicted[0]).tolist()


def test_more_votes_win_over_greater_similarity():
    ranking, written = ask([4, 0, 1], [1.0, 0.1, 0.1])
    assert ranking[0] == NEWS
    assert written == [NEWS]  # 2 of 3; movie and kids have 1 of 3


def test_equal_votes_go_to_the_summed_similarity():
    assert ask([0, 2], [0.6, 0.5])[0][:2] == [NEWS, SPORT]
    assert ask([2, 0], [0.6, 0.5])[0][:2] == [SPORT, NEWS]


def test_equal_votes_and_similarity_go_to_the_more_frequent_label_not_to_the_lower_id():
    assert ask([0, 2], [0.5, 0.5])[0][:2] == [SPORT, NEWS]
    rare_sport = np.array([9, 3, 1, 1])
    assert ask([0, 2], [0.5, 0.5], rare_sport)[0][:2] == [NEWS, SPORT]


def test_sums_of_similarities_in_another_order_still_tie():
    # 0.1 + 0.2 + 0.3 differs from 0.3 + 0.2 + 0.1 in floating point; here it must not decide.
    labels = Ragged.from_rows([[0], [1], [0], [1], [0], [1]])
    similarities = np.array([[0.1, 0.3, 0.2, 0.2, 0.3, 0.1]], dtype=np.float32)
    for frequency, winner in ((np.array([5, 6]), 1), (np.array([6, 5]), 0)):
        assert vote(np.arange(6)[None, :], similarities, labels, frequency).top.tolist() == [winner]


def test_labels_that_always_occur_together_rank_first_and_second():
    ranking, written = ask([4, 4], [0.9, 0.8], np.array([2, 3, 1, 7]))
    assert ranking[:2] == [KIDS, MOVIE]  # the more frequent first
    assert written == [MOVIE, KIDS]


def test_half_of_the_neighbours_is_enough_to_be_written():
    assert ask([0, 1, 2, 4], [0.9, 0.8, 0.7, 0.6])[1] == [NEWS]  # 2 of 4
    assert ask([0, 1, 2, 3], [0.9, 0.8, 0.7, 0.6])[1] == [NEWS, SPORT]


def test_the_top_vote_is_written_where_no_label_reaches_half():
    assert ask([0, 2, 4], [0.9, 0.8, 0.95], np.array([2, 3, 1, 7]))[1] == [KIDS]
    assert ask([0, 2, 4], [0.99, 0.8, 0.95])[1] == [NEWS]


def test_absent_neighbours_neither_vote_nor_count():
    ranking, written = ask([4, -1, -1, -1], [0.2, 0.0, 0.0, 0.0])
    assert set(ranking[:2]) == {MOVIE, KIDS}
    assert written == [MOVIE, KIDS]  # one of one


def test_a_query_without_neighbours_gets_the_majority_class():
    ranking, written = ask([-1, -1], [0.0, 0.0])
    assert ranking[:2] == [SPORT, NEWS]
    assert written == [SPORT]


def test_vote_empty():
    predictions = vote(
        np.zeros((0, 10), dtype=np.int64), np.zeros((0, 10), dtype=np.float32), LABELS, FREQUENCY
    )
    assert len(predictions) == 0 and predictions.ranks.shape == (0, 4)


def test_vote_single_label_world():
    predictions = vote(
        np.array([[0]]), np.array([[1.0]], dtype=np.float32), Ragged.from_rows([[0]]), np.array([1])
    )
    assert predictions.ranks.tolist() == [[1]] and predictions.predicted.tolist() == [[True]]


def test_negative_similarities_do_not_undo_a_vote():
    assert ask([0, 1, 2], [-1.0, -1.0, -0.5])[0][0] == NEWS


def test_vote_refuses_nan_and_what_is_no_cosine():
    for value in (np.nan, 1.5):
        with pytest.raises(ValueError, match="between -1 and 1"):
            ask([0], [value])
    with pytest.raises(ValueError, match=r"\(queries, k\)"):
        vote(np.zeros((1, 2), dtype=np.int64), np.zeros((1, 3), dtype=np.float32), LABELS, FREQUENCY)


def test_vote_agrees_with_a_slow_loop():
    rng = np.random.default_rng(7)
    labels = Ragged.from_rows([rng.choice(12, size=rng.integers(1, 4), replace=False) for _ in range(80)])
    frequency = np.bincount(labels.values, minlength=12)
    neighbours = rng.integers(-1, 80, size=(60, 10))
    similarities = rng.integers(0, 5, size=(60, 10)).astype(np.float32) / 4  # many ties
    predictions = vote(neighbours, similarities, labels, frequency)
    for query in range(60):
        votes, summed = np.zeros(12), np.zeros(12)
        for neighbour, similarity in zip(neighbours[query], similarities[query], strict=True):
            if neighbour >= 0:
                votes[labels[neighbour]] += 1
                summed[labels[neighbour]] += similarity
        keys = [
            (votes[label], summed[label], frequency[label]) for label in np.argsort(predictions.ranks[query])
        ]
        assert keys == sorted(keys, reverse=True)
        written = set(np.flatnonzero((votes > 0) & (votes >= (neighbours[query] >= 0).sum() / 2)))
        assert set(np.flatnonzero(predictions.predicted[query])) == (written or {int(predictions.top[query])})


def test_every_row_of_ranks_is_a_permutation_and_all_equal_scores_follow_frequency():
    ranks = rank_labels(np.zeros((3, 5)), np.array([1, 5, 2, 9, 3]))
    assert ranks.tolist() == [[5, 2, 4, 1, 3]] * 3


def test_labels_equal_in_everything_are_not_ranked_by_id():
    order = np.argsort(rank_labels(np.zeros((1, 50)), np.ones(50, dtype=int))[0])
    assert sorted(order.tolist()) == list(range(50))
    assert order.tolist() != list(range(50)) and order.tolist() != list(range(50))[::-1]


def test_scores_that_are_nan_are_refused_and_minus_infinity_is_last():
    frequency = np.array([1, 9])
    with pytest.raises(ValueError, match="not a number"):
        predict_from_scores(np.array([[np.nan, 0.0]]), np.zeros((1, 2), dtype=bool), frequency)
    assert predict_from_scores(
        np.array([[-5.0, -np.inf]]), np.zeros((1, 2), dtype=bool), frequency
    ).ranks.tolist() == [[1, 2]]
