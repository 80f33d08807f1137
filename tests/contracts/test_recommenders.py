"""Contract of every recommender."""

from typing import get_args

import numpy as np
import pydantic
import pytest

from storage.arrays import unit_rows
from tasks.recommend import Likes, Recommender, Titles, best_titles, find_counterfactual

KINDS = [pytest.param(kind(), id=kind().name) for kind in get_args(Recommender)]
PERSONAL = [param for param in KINDS if param.id != "popularity"]
TASTES, EACH = 4, 30


def guide(seed: int = 0) -> Titles:
    """Makes titles of four tastes, ordered by taste; later titles of a taste air more often."""
    rng = np.random.default_rng(seed)
    taste = np.repeat(np.arange(TASTES), EACH)
    vectors = unit_rows((np.eye(16)[taste] + 0.2 * rng.normal(size=(len(taste), 16))).astype(np.float32))
    airings = np.tile(np.arange(1, EACH + 1), TASTES)
    return Titles(vectors, airings)


def likes_of(*viewers: dict[int, float]) -> Likes:
    pairs = [(viewer, *pair) for viewer, own in enumerate(viewers) for pair in own.items()]
    columns = np.array(pairs, dtype=np.float64).reshape(-1, 3).T
    viewer, title, value = columns[0].astype(np.int32), columns[1].astype(np.int32), columns[2]
    return Likes(viewer, title, value.astype(np.float32), np.zeros(len(pairs)), len(viewers))


def of(taste: int, count: int, first: int = 0) -> dict[int, float]:
    return {taste * EACH + first + place: 1.0 for place in range(count)}


ALL = np.arange(TASTES * EACH)
MIXED = likes_of(of(0, 5) | of(2, 5), of(1, 3) | {95: -1.0}, {}, {100: -0.5})


@pytest.mark.parametrize("strategy", KINDS)
def test_scores_are_finite_float32_of_every_viewer_and_title(strategy: Recommender):
    scores = strategy.fit(MIXED, guide()).scores(np.array([3, 0, 2]), ALL[10:])
    assert scores.dtype == np.float32 and scores.shape == (3, len(ALL) - 10)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("strategy", KINDS)
def test_a_viewer_has_the_same_scores_alone_as_among_others(strategy: Recommender):
    fitted = strategy.fit(MIXED, guide())
    together, alone = fitted.scores(np.arange(4), ALL), fitted.scores(np.array([1]), ALL[7:9])
    np.testing.assert_allclose(together[1:2, 7:9], alone, rtol=1e-5)


@pytest.mark.parametrize("strategy", PERSONAL)
def test_titles_of_a_liked_taste_are_above_others(strategy: Recommender):
    scores = strategy.fit(MIXED, guide()).scores(np.array([0]), ALL)[0].reshape(TASTES, EACH)
    assert scores[[0, 2], 10:].min() > scores[[1, 3]].max()


@pytest.mark.parametrize("strategy", PERSONAL)
def test_more_of_a_liked_taste_ranks_higher(strategy: Recommender):
    few, more = likes_of(of(0, 3) | of(2, 3)), likes_of(of(0, 3) | of(2, 8))
    shares = []
    for likes in (few, more):
        scores = strategy.fit(likes, guide()).scores(np.array([0]), ALL)[0].reshape(TASTES, EACH)[:, 10:]
        shares.append(scores[2].mean() - scores[0].mean())
    assert shares[1] > shares[0]


@pytest.mark.parametrize("strategy", KINDS)
def test_the_order_of_likes_changes_nothing(strategy: Recommender):
    shuffled = MIXED.take(np.random.default_rng(3).permutation(len(MIXED)))
    one, other = (strategy.fit(likes, guide()).scores(np.arange(4), ALL) for likes in (MIXED, shuffled))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("strategy", KINDS)
def test_two_fits_give_the_same_bits(strategy: Recommender):
    one, other = (strategy.fit(MIXED, guide()).scores(np.arange(4), ALL) for _ in range(2))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("strategy", KINDS)
def test_a_viewer_without_likes_gets_popular_titles(strategy: Recommender):
    popular = likes_of(*[of(1, 2, first=4)] * 5, {})
    scores = strategy.fit(popular, guide()).scores(np.array([5]), ALL)[0]
    assert set(np.argsort(-scores)[:2]) == {34, 35}


@pytest.mark.parametrize("strategy", KINDS)
def test_without_any_likes_frequent_titles_lead(strategy: Recommender):
    scores = strategy.fit(likes_of({}), guide()).scores(np.array([0]), ALL)[0]
    assert set(np.argsort(-scores)[:TASTES] % EACH) == {EACH - 1}


@pytest.mark.parametrize("strategy", KINDS)
def test_no_viewers_and_no_titles(strategy: Recommender):
    fitted = strategy.fit(MIXED, guide())
    assert fitted.scores(np.zeros(0, np.int32), ALL).shape == (0, len(ALL))
    assert fitted.scores(np.array([0]), ALL[:0]).shape == (1, 0)
    assert [len(rows) for rows in best_titles(fitted, np.array([0]), ALL[:0])] == [0]


@pytest.mark.parametrize("strategy", KINDS)
def test_titles_without_a_vector_are_scored(strategy: Recommender):
    titles = guide()
    titles.vectors[::3] = 0
    assert np.isfinite(strategy.fit(MIXED, titles).scores(np.arange(4), ALL)).all()


@pytest.mark.parametrize("strategy", KINDS)
@pytest.mark.parametrize("count", [0, 1, 2, 11])
def test_few_titles(strategy: Recommender, count: int):
    vectors = np.eye(max(count, 1), 16, dtype=np.float32)[:count]
    titles = Titles(vectors, np.ones(count, np.int64))
    likes = likes_of({count - 1: 1.0} if count else {})
    assert np.isfinite(strategy.fit(likes, titles).scores(np.array([0]), np.arange(count))).all()


@pytest.mark.parametrize("strategy", KINDS)
def test_shares_of_reasons_sum_to_one(strategy: Recommender):
    fitted = strategy.fit(MIXED, guide())
    for viewer in range(4):
        for title in (20, 50, 94):
            reasons = fitted.reasons_for(viewer, title)
            assert not reasons or abs(sum(reason.share for reason in reasons) - 1) < 1e-5
            assert [reason.share for reason in reasons] == sorted((r.share for r in reasons), reverse=True)
        liked, shares = fitted.shares(viewer, ALL)
        sums = shares.sum(axis=0)
        assert shares.shape == (len(liked), len(ALL)) and shares.min(initial=0) >= 0
        assert np.isclose(sums, 1, atol=1e-5).sum() + (sums == 0).sum() == len(ALL)


@pytest.mark.parametrize("strategy", PERSONAL)
def test_reasons_are_likes_of_the_same_taste(strategy: Recommender):
    reasons = strategy.fit(MIXED, guide()).reasons_for(0, 75)
    assert reasons and all(reason.liked and 60 <= reason.title < 65 for reason in reasons)


@pytest.mark.parametrize("strategy", PERSONAL)
def test_removing_the_counterfactual_likes_removes_the_title(strategy: Recommender):
    own = of(0, 2) | of(2, 2)
    coming = np.setdiff1d(ALL, list(own))
    fitted = strategy.fit(likes_of(own), guide())

    def listed(revised: object) -> np.ndarray:
        return next(best_titles(revised, np.array([0]), coming))

    title = int(listed(fitted)[0])
    change = find_counterfactual(fitted, 0, own, title, listed)
    assert change.without and set(change.without) <= own.keys()
    left = {row: value for row, value in own.items() if row not in change.without}
    assert title not in listed(strategy.fit(likes_of(left), guide()))


@pytest.mark.parametrize("strategy", KINDS)
def test_likes_of_unknown_titles_are_refused(strategy: Recommender):
    with pytest.raises(ValueError, match="titles 0 to 119, got 120"):
        strategy.fit(likes_of({120: 1.0}), guide())


@pytest.mark.parametrize("strategy", KINDS)
def test_settings_are_checked(strategy: Recommender):
    adapter = pydantic.TypeAdapter(type(strategy))
    assert adapter.validate_python({"name": strategy.name}) == strategy
    with pytest.raises(pydantic.ValidationError, match="no_such_setting"):
        adapter.validate_python({"no_such_setting": 1})
