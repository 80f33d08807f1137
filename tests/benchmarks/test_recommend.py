"""The benchmark of recommendations: metrics against values computed by hand, and simulated viewers."""

import numpy as np

from benchmarks.recommend.films import Ratings, judge, recommend
from benchmarks.recommend.viewers import LEAST, Viewer, draw_viewers
from benchmarks.recommend.viewers import judge as judge_list
from tasks.recommend import NearestLikes, Popularity


def ratings(rows: list[tuple[int, int, float]], films: int = 12) -> Ratings:
    viewers, titles, stars = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    return Ratings(viewers.astype(np.int64), titles.astype(np.int64), stars, (2, films))


def test_relevant_films_are_rated_above_the_mean():
    training = ratings([(0, 0, 1), (1, 1, 1)])
    held_out = ratings([(0, 3, 1), (0, 5, 0.5), (0, 2, -1), (1, 4, -1)])
    scores = np.tile(-np.arange(12.0), (2, 1))  # films in order of number, those rated before left out
    gain, recall, average = judge(scores, training, held_out)[0]
    # relevant are 3 and 5, at the places 3 and 5 of 1, 2, 3, 4, 5
    assert np.isclose(gain, (1 / np.log2(4) + 1 / np.log2(6)) / (1 + 1 / np.log2(3)))
    assert recall == 1 and np.isclose(average, (1 / 3 + 2 / 5) / 2)
    assert np.isnan(judge(scores, training, held_out)[1]).all()


def test_splits_are_disjoint_complete_and_reproducible():
    whole = ratings([(viewer, film, 1) for viewer in range(2) for film in range(12)])
    training, held_out = whole.split(1)
    assert len(training.stars) + len(held_out.stars) == 24 and len(held_out.stars) > 0
    pairs = {*zip(training.viewers, training.films)} | {*zip(held_out.viewers, held_out.films)}
    assert len(pairs) == 24
    assert (whole.split(1)[1].films == held_out.films).all()


def test_films_that_were_liked_together_are_recommended():
    training = ratings([(0, 0, 1), (0, 1, 1), (0, 2, 1), (1, 0, 1), (1, 1, 1)])
    scores = recommend(NearestLikes(), training)
    assert scores.shape == (2, 12) and scores[1, 2] == scores[1, 2:].max()
    assert recommend(Popularity(), training)[0].argmax() in (0, 1)


def test_drawn_viewers_like_every_taste_but_no_coming_title():
    members = np.repeat(np.eye(6, dtype=bool), 50, axis=0)
    viewers = list(draw_viewers(members, np.ones(300, bool), 2, 20, seed=3))
    for viewer in viewers:
        assert (members[np.ix_(viewer.likes, viewer.tastes)].sum(axis=0) > 0).all()
        assert not set(viewer.likes) & set(viewer.coming) and len(viewer.coming) > 100
        assert np.isclose(viewer.weights.sum(), 1) and len(viewer.likes) >= LEAST
    again = draw_viewers(members, np.ones(300, bool), 2, 20, seed=3)
    assert [viewer.likes.tolist() for viewer in again] == [viewer.likes.tolist() for viewer in viewers]


def test_a_list_serves_a_taste_by_a_title_of_it():
    members = np.repeat(np.eye(3, dtype=bool), 4, axis=0)
    viewer = Viewer(np.array([0]), np.arange(12), np.array([0, 2]), np.array([0.5, 0.5]))
    assert judge_list(members, viewer, np.array([0, 1, 8, 4])) == [1, 0, 0.75]
    assert judge_list(members, viewer, np.array([0, 1, 8, 9])) == [1, 1, 1]
    assert judge_list(members, viewer, np.array([0, 1, 2, 4])) == [0, 0, 0.75]
