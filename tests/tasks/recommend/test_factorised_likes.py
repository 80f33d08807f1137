"""The factorisation adds what similar viewers like, and nothing to titles that nobody has rated."""

import numpy as np

from tasks.recommend import FactorisedLikes, Likes, NearestLikes, Titles

TITLES = Titles(
    np.zeros((30, 8), np.float32), np.ones(30, np.int64)
)  # without vectors, so that only other viewers distinguish titles
ALL = np.arange(30)


def two_groups() -> Likes:
    """Makes viewers: twenty like eight of titles 0 to 9, twenty eight of 10 to 19; 20 to 29 are unrated."""
    rng = np.random.default_rng(0)
    viewers = np.repeat(np.arange(40, dtype=np.int32), 8)
    titles = np.concatenate([rng.choice(10, 8, replace=False) + 10 * (viewer // 20) for viewer in range(40)])
    return Likes(viewers, titles.astype(np.int32), np.ones(320, np.float32), np.zeros(320), 40)


def test_titles_of_similar_viewers_are_ahead_and_unrated_titles_keep_their_score() -> None:
    likes = two_groups()
    fitted, nearest = FactorisedLikes().fit(likes, TITLES), NearestLikes().fit(likes, TITLES)
    scores = fitted.scores(np.arange(40), ALL)
    unliked = [sorted(set(range(10)) - set(likes.titles[likes.viewers == viewer])) for viewer in range(20)]
    for viewer, titles in enumerate(unliked):
        assert scores[viewer, titles].min() > scores[viewer, 10:20].max()
    np.testing.assert_array_equal(scores[:, 20:], nearest.scores(np.arange(40), ALL[20:]))


def test_revised_likes_move_the_factors_of_the_viewer() -> None:
    fitted = FactorisedLikes().fit(two_groups(), TITLES)
    revised = fitted.with_likes(0, np.arange(10, 16, dtype=np.int32), np.ones(6, np.float32))
    before, after = (model.scores(np.array([0]), ALL)[0] for model in (fitted, revised))
    assert before[:10].mean() > before[10:20].mean() and after[:10].mean() < after[10:20].mean()


def test_without_weight_the_scores_are_those_of_the_nearest_likes() -> None:
    likes = two_groups()
    scores = FactorisedLikes(weight=0).fit(likes, TITLES).scores(np.arange(40), ALL)
    np.testing.assert_array_equal(scores, NearestLikes().fit(likes, TITLES).scores(np.arange(40), ALL))
