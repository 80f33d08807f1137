import numpy as np
import pytest

from storage.arrays import unit_rows
from tasks.recommend import Likes, NearestLikes, Titles, best_titles, diversify, find_counterfactual
from tasks.recommend.lists import top_indices

SHARES = np.array([[1, 1, 1, 0], [0, 0, 0, 1]], dtype=np.float32)  # three titles of one like, one of another


def test_diversity_gives_every_like_a_position():
    scores = np.array([0.9, 0.8, 0.7, 0.6], np.float32)
    assert diversify(scores, SHARES, 3, trade_off=0).tolist() == [0, 1, 2]
    assert diversify(scores, SHARES, 3, trade_off=0.5).tolist() == [0, 3, 1]


def test_positions_are_shared_in_proportion_to_likes():
    shares = np.zeros((4, 20), np.float32)
    shares[:3, :10] = 1 / 3  # a taste of three likes
    shares[3, 10:] = 1
    chosen = diversify(np.full(20, 0.5, np.float32), shares, 4, trade_off=1)
    assert (chosen < 10).tolist() == [True, False, True, True]


def test_without_likes_the_best_scores_are_listed():
    scores = np.array([0.1, 0.3, 0.2], np.float32)
    assert diversify(scores, np.zeros((0, 3), np.float32), 5).tolist() == [1, 2, 0]
    assert diversify(scores[:0], np.zeros((0, 0), np.float32), 5).tolist() == []


@pytest.mark.parametrize("count", [0, 1, 3, 9, 50])
def test_top_indices_are_those_of_a_stable_sort(count: int):
    scores = np.random.default_rng(0).integers(5, size=50).astype(np.float32)
    expected = np.argsort(-scores, kind="stable")[:count]
    np.testing.assert_array_equal(top_indices(scores, count) if count else expected, expected)


def world() -> tuple[Titles, dict[int, float], np.ndarray]:
    """Makes a viewer who likes eight crime and three cookery titles, and upcoming titles of three tastes."""
    rng, taste = np.random.default_rng(0), np.repeat(np.arange(4), [38, 33, 30, 30])
    vectors = unit_rows((np.eye(16)[taste] + 0.15 * rng.normal(size=(len(taste), 16))).astype(np.float32))
    own = dict.fromkeys([*range(8), 38, 39, 40], 1.0)
    titles = Titles(vectors, np.ones(len(taste), np.int64))
    return titles, own, np.setdiff1d(np.arange(len(taste)), list(own))


def likes(own: dict[int, float]) -> Likes:
    rows, values = np.array(list(own), np.int32), np.array(list(own.values()), np.float32)
    return Likes(np.zeros(len(rows), np.int32), rows, values, np.zeros(len(rows)), 1)


def test_a_list_serves_both_tastes_by_their_likes():
    titles, own, coming = world()
    (rows,) = best_titles(NearestLikes().fit(likes(own), titles), np.array([0]), coming)
    crime, cookery = (rows < 38).sum(), ((rows >= 38) & (rows < 71)).sum()
    assert len(rows) == len(set(rows)) == 10 and not set(rows) & own.keys()
    assert crime + cookery == 10 and crime > cookery >= 2


def test_many_viewers_get_the_lists_that_each_gets_alone(monkeypatch: pytest.MonkeyPatch):
    titles, _, coming = world()
    viewers, count = np.repeat(np.arange(3), 5).astype(np.int32), 15
    rows = np.random.default_rng(1).integers(len(titles), size=count).astype(np.int32)
    fitted = NearestLikes().fit(Likes(viewers, rows, np.ones(15, np.float32), np.zeros(15), 3), titles)
    alone = [next(best_titles(fitted, np.array([viewer]), coming)).tolist() for viewer in range(3)]
    monkeypatch.setattr("tasks.recommend.lists.VIEWER_BATCH", 2)
    monkeypatch.setattr("tasks.recommend.nearest_likes.TILE_SIZE", 256)
    assert [rows.tolist() for rows in best_titles(fitted, np.arange(3), coming)] == alone


def test_one_dislike_is_enough_where_several_likes_would_have_to_go():
    titles, own, coming = world()
    fitted = NearestLikes().fit(likes(own), titles)

    def listed(revised: NearestLikes) -> np.ndarray:
        return next(best_titles(revised, np.array([0]), coming))

    changes = [find_counterfactual(fitted, 0, own, int(row), listed) for row in listed(fitted)]
    several = [change for change in changes if len(change.without) > 1]
    assert any(len(change.without) == 1 for change in changes) and several
    for change, row in zip(changes, listed(fitted), strict=True):
        left = {title: value for title, value in own.items() if title not in change.without}
        assert not change.without or row not in listed(NearestLikes().fit(likes(left), titles))
        if change.disliked is not None:
            turned = own | {change.disliked: -1.0}
            assert row not in listed(NearestLikes().fit(likes(turned), titles))
