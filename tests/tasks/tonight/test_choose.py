"""Lists for viewers, in a world of two kinds of titles."""

import datetime
import re

import numpy as np
import pyarrow as pa
import pytest

from storage.arrays import unit_rows
from tasks.recommend import Titles
from tasks.tonight.choose import Evening, titles_to_rank
from tasks.tonight.programmes import group_programmes
from tasks.tonight.settings import TonightSettings
from tests.tasks.tonight.evenings import coming

ANN, BOB = "a" * 32, "b" * 32
NAMES = [f"{kind} {number}" for number in range(12) for kind in ("Crime", "Cookery", "Weather")]
SHOWS = group_programmes(
    coming(
        *(
            (f"{18 + place // 12}:{place % 12 * 5:02}", None, f"Channel {place}", name)
            for place, name in enumerate(NAMES)
        )
    )
)
KINDS = {"crime": 0, "cookery": 1, "weather": 2}


def titles_of(names):
    """Makes vectors: a direction for each kind, with some noise for each title."""
    vectors = [
        np.eye(8)[KINDS[key.split()[0]]]
        + np.random.default_rng(len(key) + int(key.split()[1])).normal(0, 0.1, 8)
        for key in names
    ]
    return Titles(
        unit_rows(np.array(vectors, np.float32)),
        np.ones(len(names), np.int64),
    )


def evening(*likes, seen=(), **settings):
    rows = [
        {
            "viewer": viewer,
            "show_key": name.lower(),
            "title": name,
            "time": datetime.datetime(2026, 1, 1),
            "value": value,
        }
        for viewer, name, value in likes
    ]
    schema = {
        "viewer": pa.string(),
        "show_key": pa.string(),
        "title": pa.string(),
        "time": pa.timestamp("us"),
    }
    opinions = pa.Table.from_pylist(rows, pa.schema(schema | {"value": pa.float32()}))
    names = pa.schema(dict.fromkeys(("viewer", "show_key", "episode", "sub_title"), pa.string()))
    watched = [{"viewer": v, "show_key": name.lower(), "episode": "", "sub_title": ""} for v, name in seen]
    table = titles_of(titles_to_rank(SHOWS, opinions))
    return Evening(SHOWS, opinions, pa.Table.from_pylist(watched, names), table, TonightSettings(**settings))


def kinds(found):
    return [one.programme.title.split()[0] for one in found]


def test_lists_cover_both_tastes_with_reasons():
    made = evening((ANN, "Crime 99", 1.0), (ANN, "Cookery 99", 1.0), (BOB, "Weather 1", 1.0))
    ann, bob = made.recommend([ANN, BOB])
    assert set(kinds(ann)) == {"Crime", "Cookery"} and len(ann) == 10
    assert kinds(bob) == ["Weather"] * 10
    assert [one.rank for one in ann] == list(range(1, 11)) and {one.viewer for one in ann} == {ANN}
    for one in ann:
        assert one.why[0].title.split()[0] == one.programme.title.split()[0] and one.why[0].liked
        assert sum(why.share for why in one.why) == pytest.approx(1, abs=0.05)


def test_a_list_has_no_show_twice():
    (found,) = evening((ANN, "Crime 1", 1.0), count=36).recommend([ANN])
    assert len(found) == len({one.programme.title for one in found}) == 36


def test_seen_or_disliked_titles_are_not_on_a_list():
    made = evening(
        (ANN, "Crime 1", 1.0),
        (ANN, "Crime 2", -1.0),
        (BOB, "Crime 1", 1.0),
        seen=[(ANN, "Crime 3")],
        count=36,
        pool=36,
    )
    ann, bob = made.recommend([ANN, BOB])
    titles = {one.programme.title for one in ann}
    assert not titles & {"Crime 2", "Crime 3"} and len(titles) == 34
    assert {"Crime 2", "Crime 3"} < {one.programme.title for one in bob}


def test_fewer_programmes_than_requested():
    made = evening((ANN, "Crime 1", 1.0), seen=[(ANN, name) for name in NAMES])
    assert list(made.recommend([ANN])) == [[]] and made.add_counterfactuals([]) == []


def test_counterfactual_likes_change_the_list():
    likes = [(ANN, "Crime 99", 1.0), (ANN, "Cookery 99", 1.0)]
    made = evening(*likes)
    told = made.add_counterfactuals(next(made.recommend([ANN])))
    crime = [one for one in told if one.programme.title.startswith("Crime")]
    assert {one.counterfactual for one in crime} == {"Without “Crime 99” it would not be listed."}
    without = next(evening(likes[1]).recommend([ANN]))
    assert not {one.programme.title for one in crime} & {one.programme.title for one in without}


def test_several_likes_or_a_dislike_may_be_what_it_takes():
    likes = [(ANN, f"Crime {number}", 1.0) for number in (97, 98, 99)]
    told = evening(*likes, count=3).add_counterfactuals(next(evening(*likes, count=3).recommend([ANN])))
    sentences = {one.counterfactual for one in told}
    assert all(
        re.fullmatch(r"(Without|If you disliked) “Crime 9\d”.* it would not be listed\.|", one)
        for one in sentences
    )
    assert any(sentences)


def test_many_viewers_get_what_each_alone_gets(monkeypatch):
    likes = [(f"{n:032x}", f"{['Crime', 'Cookery', 'Weather'][n % 3]} {n % 12}", 1.0) for n in range(7)]
    monkeypatch.setattr("tasks.tonight.choose.VIEWERS_PER_BATCH", 3)
    made = evening(*likes)
    together = list(made.recommend(made.viewers))
    assert [found[0].viewer for found in together] == made.viewers
    for found in together:
        alone = next(made.recommend([found[0].viewer]))
        assert [one.programme for one in alone] == [one.programme for one in found]
        assert [one.score for one in alone] == pytest.approx([one.score for one in found], abs=1e-3)
