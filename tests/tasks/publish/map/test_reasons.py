"""The reasons that the map tells are those that explain() computes, for every title at once."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from tasks.encoder.title_encoder import TitleEncoder
from tasks.neighbours.similarity import top_neighbours
from tasks.publish.map.reasons import APART, MOST_WORDS, SMALLEST, TOGETHER, find_reasons
from tasks.search.parts import FORM, NO_WORDS, title_parts


@pytest.fixture(scope="module")
def encoder(learnt) -> TitleEncoder:
    home, *_, encoder = learnt
    return TitleEncoder.open(home / encoder.path)


@pytest.fixture(scope="module")
def titles(learnt) -> list[str]:
    home, _, _, corpus, _, _ = learnt
    return [
        *pq.read_table(home / corpus.path / "titles.parquet")["raw_title"].to_pylist()[:60],
        "ᎣᏏᏲ",
        "Harbour goalpost kitchen",
    ]


def told_of_both(left: str, right: str) -> bool:
    """Two words are told, or the same other part but the form."""
    return (left == right != FORM) or not {left, right} & set(NO_WORDS)


def test_pairs_are_the_largest_of_the_whole_table(encoder: TitleEncoder, titles: list[str]):
    vectors = encoder.embed(titles)
    neighbours = top_neighbours(vectors, vectors, 4)[0][:, 1:]
    found = find_reasons(encoder, titles, neighbours)
    told = 0
    for i, place in ((0, 0), (7, 1), (33, 2), (61, 0)):
        (words, parts), (others, their_parts) = (
            title_parts(encoder, titles[row]) for row in (i, neighbours[i, place])
        )
        table = (
            parts
            @ their_parts.T
            / np.linalg.norm(parts.sum(axis=0))
            / np.linalg.norm(their_parts.sum(axis=0))
        )
        told_of = np.array([[told_of_both(left, right) for right in others] for left in words])
        table = np.where(told_of, table, 0)
        expected = np.sort(table.ravel())[::-1][:TOGETHER]
        shares = found.share[i, place] / 100
        for number, value in enumerate(expected):
            if value < SMALLEST:
                assert found.left[i, place, number] == 0
                continue
            told += 1
            assert shares[number] == pytest.approx(value, abs=0.006)
            left, right = (
                part[place_ - 1]
                for part, place_ in (
                    (words, found.left[i, place, number]),
                    (others, found.right[i, place, number]),
                )
            )
            assert table[words.index(left), others.index(right)] == pytest.approx(value, abs=1e-4)
        lowest = table.min()
        assert (found.left[i, place, TOGETHER] > 0) == (lowest <= -SMALLEST) and found.left.shape[
            2
        ] == TOGETHER + APART
        assert [*found.words[i], *NO_WORDS] == words
    assert told >= 4


def test_nothing_is_told_of_what_is_not_known(encoder: TitleEncoder, titles: list[str]):
    neighbours = np.full((len(titles), 2), -1)
    neighbours[60, 0] = 1  # nothing is known of the asking title
    found = find_reasons(encoder, titles, neighbours)
    assert not found.left.any() and not found.share.any()
    assert find_reasons(encoder, [], np.zeros((0, 3), dtype=int)).left.shape == (0, 3, 4)


def test_a_long_title_is_looked_at_up_to_its_eleventh_word(encoder: TitleEncoder):
    words = [
        "kitchen",
        "baker",
        "goal",
        "league",
        "murder",
        "detective",
        "verdict",
        "dinner",
        "recipe",
        "cook",
        "stadium",
        "penalty",
        "striker",
        "robbery",
    ]
    long = " ".join(words)
    found = find_reasons(encoder, [long, "robbery"], np.array([[1], [0]]))
    assert found.words[0] == words[:MOST_WORDS]
    assert found.left[0].max() <= MOST_WORDS + len(NO_WORDS)
