"""Held-out sets: disjoint, small, complete families, the same on every night."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.formats.vocabulary import NEXT_PERIOD, PLACEHOLDER, SPLITS, TRAIN, UNSEEN_SHOW, UNSEEN_TITLE
from tasks.tokenize.splits import DAY, Split, SplitSettings, split_titles

TITLES = 2000


def world(
    titles: int = TITLES, families: int = 700, days: float = 30.0, seed: int = 0
) -> tuple[list[str], list[str], np.ndarray, int, np.ndarray]:
    """Makes show keys, families, first airings, the last airing, and placeholders."""
    rng = np.random.default_rng(seed)
    own = [f"family{number}" for number in rng.integers(0, families, titles)]
    keys = [f"{family} show{number}" for number, family in enumerate(own)]
    first = (rng.random(titles) ** 4 * days * DAY).astype(
        np.int64
    )  # most shows begin early, as in real guides
    first[0] = 0
    return keys, own, first, int(days * DAY), np.arange(titles) % 50 == 7


COLUMNS = ("show_keys", "families", "first_airings", "last_start", "placeholders")


def split(*columns, settings: SplitSettings | None = None) -> Split:
    return split_titles(**dict(zip(COLUMNS, columns, strict=True)), settings=settings or SplitSettings())


def test_each_title_is_in_one_set():
    *columns, placeholder = world()
    found = split(*columns, placeholder)
    assert ((found.codes == PLACEHOLDER) == placeholder).all()
    counts = np.bincount(found.codes, minlength=len(SPLITS))
    assert counts.sum() == TITLES and counts[PLACEHOLDER] == 40
    expected = 0.05 * (TITLES - 40)
    for code in (UNSEEN_TITLE, UNSEEN_SHOW):
        assert 0.5 * expected < counts[code] < 1.5 * expected, SPLITS[code]
    assert 0.3 * expected < counts[NEXT_PERIOD] <= expected
    assert found.codes.dtype == np.int8


def test_a_family_stays_together():
    keys, families, first, last, placeholder = world()
    codes = split(keys, families, first, last, placeholder).codes
    held = {family for family, code in zip(families, codes, strict=True) if code == UNSEEN_SHOW}
    assert held
    members = {code for family, code in zip(families, codes, strict=True) if family in held}
    assert members <= {UNSEEN_SHOW, PLACEHOLDER}


def test_splits_do_not_depend_on_the_order():
    keys, families, first, last, placeholder = world()
    codes = split(keys, families, first, last, placeholder).codes
    np.testing.assert_array_equal(split(keys, families, first, last, placeholder).codes, codes)
    order = np.random.default_rng(3).permutation(TITLES)
    names = ([column[row] for row in order] for column in (keys, families))
    shuffled = split(*names, first[order], last, placeholder[order])
    np.testing.assert_array_equal(shuffled.codes, codes[order])


def test_another_salt_holds_out_other_titles():
    codes, others = split(*world()).codes, split(*world(), settings=SplitSettings(salt="another")).codes
    for code in (UNSEEN_TITLE, UNSEEN_SHOW):
        assert (others[codes == code] == code).mean() < 0.2


def test_a_title_that_is_held_out_by_hash_is_never_trained_on_in_sixty_nights():
    """Each night has another part of the titles; a threshold that depends on their number moved some."""
    keys, families, first, last, placeholder = world()
    rng = np.random.default_rng(0)
    for salt in map(str, range(5)):
        held_out, trained = np.zeros((2, TITLES), dtype=bool)
        for night in range(60):
            rows = np.flatnonzero(rng.random(TITLES) < 0.3 + 0.4 * (night % 7) / 6)
            names = ([column[row] for row in rows] for column in (keys, families))
            columns = first[rows], last, placeholder[rows]
            codes = split(*names, *columns, settings=SplitSettings(salt=salt)).codes
            held_out[rows] |= np.isin(codes, (UNSEEN_TITLE, UNSEEN_SHOW))
            trained[rows] |= np.isin(codes, (TRAIN, NEXT_PERIOD))
        assert held_out.any() and trained.any() and not (held_out & trained).any()


def test_next_period_contains_the_titles_from_its_begin():
    keys, families, first, last, placeholder = world()
    found = split(keys, families, first, last, placeholder)
    assert found.next_period_begin is not None and found.reason == ""
    assert found.next_period_begin >= last * 3 // 4
    assert (first[found.codes == NEXT_PERIOD] >= found.next_period_begin).all()
    assert (first[found.codes == TRAIN] < found.next_period_begin).all()


def test_next_period_contains_all_titles_of_an_instant():
    """Twenty titles begin at one instant late in the guide, ten later: the twenty do not fit beside them, so
    none is taken."""
    first = np.zeros(400, dtype=np.int64)
    first[-30:-10], first[-10:] = 25 * DAY, 29 * DAY
    keys = [f"show{number}" for number in range(400)]
    found = split(keys, keys, first, 30 * DAY, np.zeros(400, dtype=bool))
    assert found.next_period_begin == 25 * DAY + 1
    assert set(np.flatnonzero(found.codes == NEXT_PERIOD)) <= set(range(390, 400))


@pytest.mark.parametrize(
    ("first", "last", "reason"),
    [
        (np.zeros(0, dtype=np.int64), 0, "the guide has no titles"),
        (np.zeros(50, dtype=np.int64), DAY, r"the guide spans 1\.0 days; next_period needs 2 or more"),
        (
            np.zeros(50, dtype=np.int64),
            30 * DAY,
            "no title airs for the first time in the last quarter of the guide",
        ),
    ],
)
def test_a_missing_next_period_has_a_reason(first: np.ndarray, last: int, reason: str):
    keys = [f"show{number}" for number in range(len(first))]
    found = split(keys, keys, first, last, np.zeros(len(first), dtype=bool))
    assert found.next_period_begin is None and not (found.codes == NEXT_PERIOD).any()
    assert re.fullmatch(reason, found.reason)


@settings(max_examples=60)
@given(st.integers(0, 300), st.integers(1, 60), st.floats(0, 40), st.integers(0, 999), st.floats(0.005, 0.05))
def test_next_period_is_never_larger_than_its_share(
    titles: int, families: int, days: float, seed: int, share: float
):
    keys, own, first, last, placeholder = world(max(titles, 1), families, days, seed)
    columns = (keys[:titles], own[:titles], first[:titles], last, placeholder[:titles])
    found = split(*columns, settings=SplitSettings(share=share))
    counts = np.bincount(found.codes, minlength=len(SPLITS))
    assert counts[NEXT_PERIOD] <= share * max(1, titles - counts[PLACEHOLDER])
    assert (found.next_period_begin is None) == bool(found.reason)
