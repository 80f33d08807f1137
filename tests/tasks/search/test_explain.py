"""The parts of a title add up to its similarity vector, and the contributions to the cosine."""

import numpy as np
import pytest

from tasks.search.explain import explain
from tasks.search.parts import FORM, MEANING, NON_WORD_PARTS, split_into_parts
from tasks.search.query import Query
from tasks.search.search import SearchError, TitleSearch
from tests.worlds import UNSEEN

UNKNOWN = "ᎣᏏᏲ"
TITLES = [
    "Harbour kitchen recipes",
    "Lisbon goal goal league (7)",
    f"Velvet {UNSEEN['football'][0]} stadium",
    "NYC: murder!",
    "kitchen",
    "Кухня",  # known by its meaning alone
]


def alone(search: TitleSearch, *titles: str) -> np.ndarray:
    dense = search.encoder.sentence_features(titles)
    return search.encoder.similarity(dense, search.encoder.embed(titles, dense))


@pytest.mark.parametrize("title", TITLES)
def test_parts_add_up_to_the_vector(search: TitleSearch, title: str):
    (names,), _, parts = split_into_parts(search.encoder, [title])
    assert tuple(names[-len(NON_WORD_PARTS) :]) == NON_WORD_PARTS and len(parts) == len(names)
    total = parts.sum(axis=0)
    np.testing.assert_allclose(total / np.linalg.norm(total), alone(search, title)[0], atol=1e-5)
    assert not parts[names.index("(channel)") :].any()


def test_parts_with_context_add_up_to_the_stored_vector(search: TitleSearch):
    rows = [3, 100, 200]
    raw = [search.titles["raw_title"][row].as_py() for row in rows]
    contexts = [search.titles["context"][row].as_py() for row in rows]
    names, offsets, parts = split_into_parts(
        search.encoder, raw, contexts, search.features[rows].astype(np.float32)
    )
    for number, row in enumerate(rows):
        own = parts[offsets[number] : offsets[number + 1]]
        total = own.sum(axis=0)
        np.testing.assert_allclose(total / np.linalg.norm(total), search.vectors_with_context[row], atol=1e-3)
        for kind in (MEANING, "(channel)", "(hour)", "(duration)"):
            assert own[names[number].index(kind)].any()


def test_contributions_add_up_to_the_cosine(search: TitleSearch):
    left, right = "Mercury kitchen recipes", "Jupiter baking recipe"
    found = explain(search, left, right)
    one, other = alone(search, left, right)
    assert sum(pair.contribution for pair in found.pairs) == pytest.approx(float(one @ other), abs=2e-3)
    assert found.cosine == pytest.approx(float(one @ other), abs=1e-4)
    words = [pair for pair in found.pairs if not {pair.left, pair.right} & set(NON_WORD_PARTS)]
    assert {words[0].left, words[0].right} <= {"kitchen", "recipes", "baking", "recipe"}
    contributions = [pair.contribution for pair in found.pairs]
    assert contributions == sorted(contributions, reverse=True)
    assert {pair.left for pair in found.pairs} == {"mercury", "kitchen", "recipes", FORM, MEANING}


def test_titles_of_the_guide_are_explained_with_context(search: TitleSearch):
    left, right = (search.columns["title"][row] for row in (5, 9))
    found = explain(search, left, right)
    one, other = search.vectors_with_context[[5, 9]]
    assert found.cosine == pytest.approx(float(one @ other), abs=1e-3)
    assert sum(pair.contribution for pair in found.pairs) == pytest.approx(found.cosine, abs=5e-3)
    assert {"(channel)", "(hour)", "(weekday)", "(duration)", "(manner)"} <= {p.left for p in found.pairs}
    typed = explain(search, left, "Mercury kitchenette")
    assert not {"(channel)", "(hour)"} & {pair.left for pair in typed.pairs}
    assert typed.cosine == pytest.approx(
        float(search.vectors_without_context[5] @ alone(search, "Mercury kitchenette")[0]), abs=1e-3
    )


def test_the_effect_of_a_word_is_that_of_its_removal(search: TitleSearch):
    left, right = "Mercury kitchen murder", "Jupiter detective evidence"
    found = explain(search, left, right)
    assert [one.word for one in found.without] == ["Mercury", "kitchen", "murder"]
    rest, other = alone(search, "Mercury kitchen", right)
    assert found.without[2].cosine == pytest.approx(float(rest @ other), abs=1e-4)
    assert (
        found.without[1].cosine > found.cosine > found.without[2].cosine
    )  # murder brings them together, kitchen keeps them apart
    assert all(len(one.nearest) == 3 for one in found.without)


def test_without_a_word_a_title_keeps_its_context(search: TitleSearch):
    left, right = (search.columns["title"][row] for row in (5, 9))
    found = explain(search, left, right)
    words = left.split()
    context = search.look_up(Query(left)).context
    rest = " ".join(words[1:])
    dense = search.encoder.sentence_features([rest])
    full = search.encoder.embed_with_context([rest], [context], dense)[1]
    vector = search.encoder.similarity(dense, full)[0]
    assert found.without[0].cosine == pytest.approx(float(vector @ search.vectors_with_context[9]), abs=1e-3)


def test_the_rank_is_the_position_among_the_neighbours(search: TitleSearch):
    asked = search.columns["title"][5]
    near = search.similar(asked, 3)
    assert explain(search, asked, near[0].title).rank == 1
    assert explain(search, asked, "no guide has this kitchen").rank is None
    assert explain(search, "kitchen", asked).without == []


def test_a_remaining_title_without_known_tokens_has_no_neighbours(search: TitleSearch):
    known = search.columns["title"][5]
    found = explain(search, f"{UNKNOWN} kitchen", known).without[1]
    assert (found.word, found.cosine, found.rank, found.nearest) == ("kitchen", 0, None, [])


def test_a_title_without_known_tokens_is_refused(search: TitleSearch):
    with pytest.raises(SearchError, match=f"'{UNKNOWN}'"):
        explain(search, "Harbour kitchen", UNKNOWN)
