"""Reasons of neighbours against the table of all pairs of parts."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from tasks.encoder.title_encoder import TitleEncoder
from tasks.neighbours.similarity import top_neighbours
from tasks.publish.map.reasons import MAX_WORDS, MIN_SHARE, PAIRS, POSITIVE, find_reasons
from tasks.search.parts import FORM, NON_WORD_PARTS, split_into_parts


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


def is_eligible(left: str, right: str) -> bool:
    """Whether a pair of parts may be a reason: two words, or the same other part except FORM."""
    return (left == right != FORM) or not {left, right} & set(NON_WORD_PARTS)


def test_pairs_are_the_largest_of_the_table(encoder: TitleEncoder, titles: list[str]):
    vectors = encoder.embed(titles)
    neighbours = top_neighbours(vectors, vectors, 4)[0][:, 1:]
    reasons = find_reasons(encoder, titles, neighbours)
    compared = 0
    for i, rank in ((0, 0), (7, 1), (33, 2), (61, 0)):
        (names, other_names), offsets, rows = split_into_parts(
            encoder, [titles[i], titles[neighbours[i, rank]]]
        )
        parts, other_parts = rows[: offsets[1]].astype(float), rows[offsets[1] :].astype(float)
        norms = [np.linalg.norm(rows.sum(axis=0)) for rows in (parts, other_parts)]
        eligible = [[is_eligible(left, right) for right in other_names] for left in names]
        table = np.where(eligible, parts @ other_parts.T / np.prod(norms), 0)
        for pair, value in enumerate(np.sort(table.ravel())[::-1][:POSITIVE]):
            left, right = reasons.left[i, rank, pair], reasons.right[i, rank, pair]
            if value < MIN_SHARE:
                assert left == 0
                continue
            compared += 1
            assert reasons.share[i, rank, pair] / 100 == pytest.approx(value, abs=0.006)
            assert table[left - 1, right - 1] == pytest.approx(value, abs=1e-4)
        assert (reasons.left[i, rank, POSITIVE] > 0) == (table.min() <= -MIN_SHARE)
        assert [*reasons.words[i], *NON_WORD_PARTS] == names
    assert compared >= 4


def test_titles_without_a_vector_have_no_reasons(encoder: TitleEncoder, titles: list[str]):
    neighbours = np.full((len(titles), 2), -1)
    neighbours[60, 0] = 1  # title 60 has no known token
    reasons = find_reasons(encoder, titles, neighbours)
    assert not reasons.left.any() and not reasons.share.any()
    assert find_reasons(encoder, [], np.zeros((0, 3), dtype=int)).left.shape == (0, 3, PAIRS)


def test_words_beyond_the_limit_are_ignored(encoder: TitleEncoder):
    words = [*(f"word{number}" for number in range(MAX_WORDS + 2)), "kitchen"]
    reasons = find_reasons(encoder, [" ".join(words), "kitchen"], np.array([[1], [0]]))
    assert reasons.words[0] == words[:MAX_WORDS]
    assert reasons.left[0].max() <= MAX_WORDS + len(NON_WORD_PARTS)
