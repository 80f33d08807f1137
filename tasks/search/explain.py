"""Explains the similarity of two titles: contributions of pairs of parts, and the effect of removing a word.

The similarity vector of a title is the normalized sum of its parts (tasks/search/parts.py), so a cosine is a
sum over pairs of parts:

    cos(A, B) = Σ_i Σ_j  a_i · b_j / (|A| |B|)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from tasks.search.parts import NO_WORDS, parts_of
from tasks.search.query import Query
from tasks.search.search import SearchError, TitleSearch, no_match_message
from tasks.text.titles import parse_title

NEAREST = 3  # titles listed per removed word


@dataclass(frozen=True, kw_only=True)
class PartPair:
    """Contribution to the cosine of a pair of parts, each a word or one of NO_WORDS."""

    left: str
    right: str
    contribution: float


@dataclass(frozen=True, kw_only=True)
class Without:
    """The first title with one word removed; its context and description are unchanged."""

    word: str
    cosine: float  # cosine of the remaining title and the second title
    rank: int | None  # as in Explanation, or None if no remaining token is known
    nearest: list[str]  # titles nearest to the remaining title


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Explanation of the cosine of two titles."""

    left: str
    right: str
    cosine: float
    rank: int | None  # of the second title among the first's neighbours, from 1; None if not in the guide
    pairs: list[PartPair]  # largest contribution first; the sum is the cosine
    without: list[Without]  # per word of the first title; empty if it has one word


def explain(search: TitleSearch, left: str, right: str) -> Explanation:
    """Explains the cosine of two titles, with contexts if the guide has both titles, else without.

    Raises:
        SearchError: No token of one of the titles is known.
    """
    encoder, resolved = search.encoder, [search.look_up(Query(text)) for text in (left, right)]
    aired, dense = all(title.row is not None for title in resolved), search.dense_of(resolved)
    raw = [title.raw_title for title in resolved]
    contexts = [title.context if aired else [] for title in resolved]
    names, offsets, parts = parts_of(encoder, raw, contexts, dense)
    table, sums = compare_parts(parts[: offsets[1]], parts[offsets[1] :])
    if not all(vector.any() for vector in sums):
        raise SearchError(no_match_message(right if sums[0].any() else left))
    summands = zip(product(*names), table.flat, strict=True)
    terms = [(i, j, float(value)) for (i, j), value in summands if value or not {i, j} & set(NO_WORDS)]
    pairs = [PartPair(left=i, right=j, contribution=round(value, 4)) for i, j, value in terms]
    pairs.sort(key=lambda pair: -pair.contribution)
    title_words = parse_title(raw[0]).display.split()
    words = title_words if len(title_words) > 1 else []
    remainders = [" ".join(title_words[:i] + title_words[i + 1 :]) for i in range(len(words))]
    descriptions = dense[:1] - encoder.dense(raw[:1])
    denses = np.concatenate([dense[:1], encoder.dense(remainders) + descriptions])
    forms = encoder.embed_with_context([raw[0], *remainders], [contexts[0]] * (1 + len(remainders)), denses)
    vectors = encoder.similarity(denses, forms[aired])
    removals = _evaluate_removals(search, vectors, sums[1].astype(np.float32), aired, (left, right))
    rank = next(removals)[1]
    without = [
        Without(word=word, cosine=round(cosine, 4), rank=position, nearest=titles)
        for word, (cosine, position, titles) in zip(words, removals, strict=True)
    ]
    cosine = round(float(table.sum()), 4)
    return Explanation(left=left, right=right, cosine=cosine, rank=rank, pairs=pairs, without=without)


def compare_parts(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """Computes the contribution of each pair of parts to the cosine, and the unit vectors of both titles.

    Returns:
        float64 (parts, other parts), and two vectors, which are zero if no part is known.
    """
    scaled, sums = [], []
    for parts in (one, other):
        total = parts.sum(axis=0, dtype=np.float64)
        length = np.linalg.norm(total) or np.inf
        scaled.append(parts / length)
        sums.append(total / length)
    return scaled[0] @ scaled[1].T, sums


def _evaluate_removals(
    search: TitleSearch,
    vectors: np.ndarray,
    right_vector: np.ndarray,
    aired: bool,
    titles: tuple[str, str],
) -> Iterator[tuple[float, int | None, list[str]]]:
    """Yields, per vector, its cosine with the right title, the rank of that title, and the nearest titles.

    Titles of the left title's show are excluded. ``aired`` selects vectors of titles with context.
    """
    shows = np.array(search.columns["show_key"])
    is_left, is_right = (shows == parse_title(title).show_key for title in titles)
    for vector in vectors:
        if not vector.any():
            yield 0.0, None, []
            continue
        cosines = (search.vectors_with_context if aired else search.vectors_without_context) @ vector
        cosines[is_left] = -np.inf
        right_rows = np.flatnonzero(is_right & ~is_left)
        rank = int((cosines > cosines[right_rows].max()).sum()) + 1 if len(right_rows) else None
        order = np.argsort(-cosines, kind="stable")[:NEAREST]
        near = [search.columns["title"][row] for row in order if cosines[row] > 0]
        yield float(vector @ right_vector), rank, near
