"""The reasons that the map tells are those that explain() computes, for every title at once."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

from tasks.augment.lexicon import Lexicon
from tasks.neighbours.explain import FORM, title_parts
from tasks.neighbours.similarity import top_neighbours
from tasks.publish.reasons import APART, MOST_PARTS, SMALLEST, TOGETHER, find_reasons


@pytest.fixture(scope="module")
def lexicon(learnt) -> Lexicon:
    home, *_, lexicon = learnt
    return Lexicon.open(home / lexicon.path)


@pytest.fixture(scope="module")
def titles(learnt) -> list[str]:
    home, _, _, corpus, _, _ = learnt
    return [*pq.read_table(home / corpus.path / "titles.parquet")["raw_title"].to_pylist()[:60], "漢", "Harbour goalpost kitchen"]


def test_pairs_are_the_largest_of_the_whole_table(lexicon: Lexicon, titles: list[str]):
    vectors = lexicon.embed(titles)
    neighbours = top_neighbours(vectors, vectors, 4)[0][:, 1:]
    found = find_reasons(lexicon, titles, neighbours)
    told = 0
    for i, place in ((0, 0), (7, 1), (33, 2), (61, 0)):
        (words, parts), (others, their_parts) = (title_parts(lexicon, titles[row]) for row in (i, neighbours[i, place]))
        table = parts @ their_parts.T / np.linalg.norm(parts.sum(axis=0)) / np.linalg.norm(their_parts.sum(axis=0))
        expected = np.sort(table.ravel())[::-1][:TOGETHER]
        shares = found.share[i, place] / 100
        for number, value in enumerate(expected):
            if value < SMALLEST:
                assert found.left[i, place, number] == 0
                continue
            told += 1
            assert shares[number] == pytest.approx(value, abs=0.006)
            left, right = (part[place_ - 1] for part, place_ in ((words, found.left[i, place, number]), (others, found.right[i, place, number])))
            assert table[words.index(left), others.index(right)] == pytest.approx(value, abs=1e-4)
        lowest = table.min()
        assert (found.left[i, place, TOGETHER] > 0) == (lowest <= -SMALLEST) and found.left.shape[2] == TOGETHER + APART
        assert [*found.words[i], FORM] == words
    assert told >= 4


def test_nothing_is_told_of_what_is_not_known(lexicon: Lexicon, titles: list[str]):
    neighbours = np.full((len(titles), 2), -1)
    neighbours[60, 0] = 1  # nothing is known of the asking title
    found = find_reasons(lexicon, titles, neighbours)
    assert not found.left.any() and not found.share.any()
    assert find_reasons(lexicon, [], np.zeros((0, 3), dtype=int)).left.shape == (0, 3, 3)


def test_a_long_title_is_looked_at_up_to_its_eleventh_word(lexicon: Lexicon):
    words = ["kitchen", "baker", "goal", "league", "murder", "detective", "verdict", "dinner", "recipe", "cook", "stadium", "penalty", "striker", "robbery"]
    long = " ".join(words)
    found = find_reasons(lexicon, [long, "robbery"], np.array([[1], [0]]))
    assert found.words[0] == words[: MOST_PARTS - 1]
    assert found.left[0].max() <= MOST_PARTS
