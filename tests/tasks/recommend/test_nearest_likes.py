import numpy as np
import pytest

from storage.arrays import unit_rows
from tasks.recommend import Likes, NearestLikes, Titles
from tasks.recommend.nearness import GROUPS, REACH, crowds, nearness


def titles(*vectors: np.ndarray) -> Titles:
    rows = unit_rows(np.array(vectors, dtype=np.float32))
    return Titles(rows, np.ones(len(rows), np.int64))


def likes(pairs: dict[int, float]) -> Likes:
    rows, values = np.array(list(pairs), np.int32), np.array(list(pairs.values()), np.float32)
    return Likes(np.zeros(len(rows), np.int32), rows, values, np.zeros(len(rows)), 1)


def scores(known: Titles, pairs: dict[int, float], **settings: float) -> np.ndarray:
    fitted = NearestLikes(**settings).fit(likes(pairs), known)
    return fitted.scores(np.array([0]), np.arange(len(known)))[0]


def world(per_taste: int = 40, seed: int = 0) -> Titles:
    """Makes titles of three tastes; cosines within the second are higher."""
    rng, tastes = np.random.default_rng(seed), np.repeat(np.arange(3), per_taste)
    spread = np.where(tastes == 1, 0.05, 0.2)[:, None]
    return titles(*(np.eye(24)[tastes] + spread * rng.normal(size=(len(tastes), 24))))


def test_titles_of_both_tastes_rank_above_titles_between_them():
    known = world()
    between = known.vectors[5:15] + known.vectors[85:95]
    found = scores(titles(*known.vectors, *between), dict.fromkeys([0, 1, 2, 80, 81, 82], 1))
    first, other, second = found[:120].reshape(3, 40)[:, 3:].mean(axis=1)
    assert min(first, second) > found[120:].mean() > other
    mean = known.vectors[[0, 1, 2, 80, 81, 82]].mean(axis=0)  # what one averaged vector would say
    assert (unit_rows(between) @ mean).mean() > (known.vectors[3:40] @ mean).mean()


def test_a_crowded_taste_is_no_nearer_than_a_sparse_one():
    known = world()
    found = scores(known, dict.fromkeys([0, 1, 2, 40, 41, 42], 1.0)).reshape(3, 40)[:, 5:].mean(axis=1)
    cosines = (known.vectors @ known.vectors[[0, 1, 2, 40, 41, 42]].T).max(axis=1)
    plain = cosines.reshape(3, 40)[:, 5:].mean(axis=1)
    assert abs(found[0] - found[1]) < 0.3 * (plain[1] - plain[0])
    assert min(found[:2]) > found[2]


def test_scores_are_the_root_mean_square_of_the_nearest_likes():
    known = world()
    own = {0: 1.0, 3: 1.0, 40: 1.0, 41: 1.0, 80: 1.0}
    near = np.sort(
        nearness(known.vectors, crowds(known.vectors), np.array(list(own)), np.arange(120)), axis=0
    )
    for nearest in (1, 3, 7):
        expected = np.sqrt(np.square(near[-nearest:]).mean(axis=0))
        found = scores(known, own, nearest=nearest)
        assert np.abs(found - expected).max() < 0.011  # popularity has .01 log 2.5


def test_a_dislike_lowers_what_is_nearer_to_it_than_to_likes():
    known = world()
    plain, disliked = (scores(known, {0: 1.0} | more, nearest=1) for more in ({}, {1: -1.0}))
    near = nearness(known.vectors, crowds(known.vectors), np.array([0, 1]), np.arange(120))
    expected = plain - np.maximum(0, near[1] - np.maximum(0, near[0] - 0.05))
    np.testing.assert_allclose(disliked, expected, atol=1e-6)
    assert (disliked == plain).any() and (disliked < plain).any()


def test_reasons_have_the_shares_of_the_squared_nearness():
    known = world()
    fitted = NearestLikes(nearest=2).fit(likes({0: 1, 1: 1, 2: 1, 40: -1}), known)
    reasons = fitted.reasons_for(0, 7)
    near = nearness(known.vectors, crowds(known.vectors), np.arange(3), np.array([7]))[:, 0]
    order = np.argsort(-near)[:2]
    assert [reason.title for reason in reasons] == order.tolist() and all(one.liked for one in reasons)
    np.testing.assert_allclose(
        [one.share for one in reasons], near[order] ** 2 / np.square(near[order]).sum(), rtol=1e-5
    )


def test_of_two_likes_one_that_is_near_is_worth_more_than_two_that_are_half_as_near():
    known = world()
    between = known.vectors[5:15] + known.vectors[85:95]
    found = scores(titles(*known.vectors, *between), {0: 1, 80: 1})
    assert np.sort(found[np.r_[1:40, 81:120]])[-20:].mean() > found[120:].mean()


def test_a_dislike_that_lowers_the_score_is_a_reason():
    fitted = NearestLikes().fit(likes({0: 1, 41: -1}), world())
    (reason,) = fitted.reasons_for(0, 45)
    assert (reason.title, reason.liked, reason.share) == (41, False, 1)


def test_crowds_are_the_mean_over_groups_of_the_nearest():
    vectors = world().vectors
    found = crowds(vectors)
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, 0)
    expected = np.mean([cosines[:, group::GROUPS].max(axis=1) for group in range(GROUPS)], axis=0)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_crowds_of_many_titles_are_measured_on_some():
    vectors = unit_rows(np.random.default_rng(0).normal(size=(5_000, 8)).astype(np.float32))
    found, all_of_them = crowds(vectors), np.sort(vectors @ vectors.T, axis=1)[:, -11:-1].mean(axis=1)
    assert found.shape == (5_000,) and 0 < (all_of_them - found).mean() < 0.15


def test_titles_that_are_as_near_as_their_neighbours_are_in_reach():
    near = nearness(np.eye(2, dtype=np.float32), np.zeros(2, np.float32), np.array([0]), np.arange(2))
    np.testing.assert_allclose(near, [[1 + REACH, REACH]])


def test_nothing_is_near_to_a_title_without_a_vector():
    vectors = world().vectors.copy()
    vectors[[3, 50]] = 0
    near = nearness(vectors, crowds(vectors), np.array([0, 3]), np.arange(120))
    assert not near[1].any() and not near[0, 50] and near[0, 5:40].any()


def test_the_latest_of_several_likes_counts():
    column = np.zeros(3, np.int32)
    values = np.array([1, -1, 0.5], np.float32)
    settled = Likes(column, column, values, np.array([1.0, 3.0, 2.0]), 1).deduplicate()
    assert settled.values.tolist() == [-1]


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [("values", np.float32(2), "from -1"), ("values", np.nan, "from -1"), ("viewers", 1, "from 0 to 0")],
)
def test_wrong_likes_are_refused(column: str, value: float, message: str):
    columns = {"viewers": np.zeros(2, np.int32), "titles": np.zeros(2, np.int32)}
    columns |= {"values": np.ones(2, np.float32), "times": np.zeros(2)}
    columns[column][1] = value
    with pytest.raises(ValueError, match=message):
        Likes(**columns, viewer_count=1)


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="one entry per like"):
        Likes(np.zeros(1, np.int32), np.zeros(2, np.int32), np.ones(2, np.float32), np.zeros(2), 1)
    with pytest.raises(ValueError, match="2 vectors, 3 airings"):
        Titles(np.eye(2, dtype=np.float32), np.ones(3, np.int64))
