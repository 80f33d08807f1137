"""The parts of a title add up to its vector, and the contributions to the cosine."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from tasks.augment.lexicon import Lexicon
from tasks.neighbours.explain import FORM, explain, title_parts
from tasks.neighbours.search import SearchError, TitleSearch
from tests.worlds import UNSEEN


@pytest.fixture(scope="module")
def search(learnt) -> TitleSearch:
    home, _, _, corpus, _, lexicon = learnt
    opened = Lexicon.open(home / lexicon.path)
    columns = pq.read_table(home / corpus.path / "titles.parquet", columns=["title", "raw_title", "show_key", "labels", "channels"]).to_pydict()
    return TitleSearch(opened, opened.embed(columns["raw_title"]), columns)


@pytest.mark.parametrize("title", ["Harbour kitchen recipes", "Lisbon goal goal league (7)", f"Velvet {UNSEEN['football'][0]} stadium", "NYC: murder!", "kitchen"])
def test_parts_add_up_to_the_vector(search: TitleSearch, title: str):
    words, parts = title_parts(search.lexicon, title)
    assert words[-1] == FORM and len(parts) == len(words)
    total = parts.sum(axis=0)
    np.testing.assert_allclose(total / np.linalg.norm(total), search.lexicon.embed([title])[0], atol=1e-5)


def test_contributions_add_up_to_the_cosine_and_name_the_right_words(search: TitleSearch):
    left, right = "Harbour kitchen recipes", "Lisbon baking recipe"
    found = explain(search, left, right)
    one, other = search.lexicon.embed([left, right])
    assert sum(pair.contribution for pair in found.pairs) == pytest.approx(float(one @ other), abs=2e-3)
    assert found.cosine == pytest.approx(float(one @ other), abs=1e-4)
    assert {found.pairs[0].left, found.pairs[0].right} <= {"kitchen", "recipes", "baking", "recipe"}
    contributions = [pair.contribution for pair in found.pairs]
    assert contributions == sorted(contributions, reverse=True)


def test_without_a_word_is_the_rest_looked_up(search: TitleSearch):
    found = explain(search, "Harbour kitchen murder", "Lisbon detective evidence")
    assert [one.word for one in found.without] == ["Harbour", "kitchen", "murder"]
    rest, other = search.lexicon.embed(["Harbour kitchen", "Lisbon detective evidence"])
    assert found.without[2].cosine == pytest.approx(float(rest @ other), abs=1e-4)
    assert found.without[1].cosine > found.cosine > found.without[2].cosine  # murder brings them together, kitchen keeps them apart
    assert all(len(one.nearest) == 3 for one in found.without)


def test_the_rank_is_the_place_among_the_neighbours(search: TitleSearch):
    asked = search.columns["title"][5]
    near = search.similar(asked, 3)
    assert explain(search, asked, near[0].title).rank == 1
    assert explain(search, asked, "no guide has this kitchen").rank is None
    assert explain(search, "kitchen", asked).without == []


def test_a_rest_of_which_nothing_is_known_is_near_to_nothing(search: TitleSearch):
    known = search.columns["title"][5]
    found = explain(search, "漢 kitchen", known).without[1]
    assert (found.word, found.cosine, found.rank, found.nearest) == ("kitchen", 0, None, [])


def test_a_title_of_which_nothing_is_known_is_refused(search: TitleSearch):
    with pytest.raises(SearchError, match="'漢'"):
        explain(search, "Harbour kitchen", "漢")
