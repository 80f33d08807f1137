"""Explains why two titles are similar, by parts of their vectors and by removing single words.

The vector of a title is the normalized sum of the vectors of its parts: one per word, one for the meaning,
and one per kind of broadcast data, such as channel and hour (tasks/search/parts.py). Therefore the cosine of
titles A and B is a sum over pairs of a part a_i of A and a part b_j of B:

    cos(A, B) = Σ_i Σ_j  a_i · b_j / (|A| |B|)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from tasks.search.parts import NON_WORD_PARTS, parts_of
from tasks.search.query import Query
from tasks.search.search import SearchError, TitleSearch, no_match_message
from tasks.text.titles import parse_title

TITLES_PER_REMOVAL = 3  # nearest titles that are listed after the removal of a word


@dataclass(frozen=True, kw_only=True)
class PartPair:
    """Contribution of a part of the left title and a part of the right title to the cosine of the titles."""

    left: str  # a word of the title, or one of NON_WORD_PARTS such as "(meaning)"
    right: str
    contribution: float  # summand of the cosine


@dataclass(frozen=True, kw_only=True)
class WordRemoval:
    """Effect of removing one word from the left title. Channel, hour and description are kept."""

    word: str  # the removed word
    cosine: float  # cosine of the shortened left title and the right title
    rank: int | None  # as in Explanation; also None if the model knows no remaining word or n-gram
    nearest: list[str]  # titles nearest to the shortened title


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Explanation of the cosine of a left and a right title, which ``guidespace explain`` prints."""

    left: str
    right: str
    cosine: float
    rank: int | None  # of the right title among the left title's neighbours, from 1; None if not in the guide
    pairs: list[PartPair]  # largest contribution first; all contributions add up to the cosine
    without: list[WordRemoval]  # one per word of the left title; empty if the title has only one word


def explain(search: TitleSearch, left: str, right: str) -> Explanation:
    """Explains the cosine of two titles. Channels and hours are included if the guide has both titles.

    Raises:
        SearchError: The model knows no word, n-gram or meaning of one of the titles.
    """
    encoder, titles = search.encoder, [search.look_up(Query(text)) for text in (left, right)]
    has_context, dense = all(title.row is not None for title in titles), search.dense_of(titles)
    raw = [title.raw_title for title in titles]
    contexts = [title.context if has_context else [] for title in titles]
    names, offsets, parts = parts_of(encoder, raw, contexts, dense)
    contributions, sums = compare_parts(parts[: offsets[1]], parts[offsets[1] :])
    if not all(vector.any() for vector in sums):
        raise SearchError(no_match_message(right if sums[0].any() else left))
    summands = zip(product(*names), contributions.flat, strict=True)
    terms = [(i, j, float(value)) for (i, j), value in summands if value or not {i, j} & set(NON_WORD_PARTS)]
    pairs = [PartPair(left=i, right=j, contribution=round(value, 4)) for i, j, value in terms]
    pairs.sort(key=lambda pair: -pair.contribution)
    title_words = parse_title(raw[0]).display.split()
    words = title_words if len(title_words) > 1 else []
    shortened = [" ".join(title_words[:i] + title_words[i + 1 :]) for i in range(len(words))]
    description_part = dense[:1] - encoder.dense(raw[:1])
    dense_inputs = np.concatenate([dense[:1], encoder.dense(shortened) + description_part])
    title_vectors = encoder.embed_with_context(
        [raw[0], *shortened], [contexts[0]] * (1 + len(shortened)), dense_inputs
    )
    vectors = encoder.similarity(dense_inputs, title_vectors[has_context])
    results = _rank_right_title(search, vectors, sums[1].astype(np.float32), has_context, (left, right))
    rank = next(results)[1]
    without = [
        WordRemoval(word=word, cosine=round(cosine, 4), rank=position, nearest=titles)
        for word, (cosine, position, titles) in zip(words, results, strict=True)
    ]
    cosine = round(float(contributions.sum()), 4)
    return Explanation(left=left, right=right, cosine=cosine, rank=rank, pairs=pairs, without=without)


def compare_parts(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """Computes the contribution of each pair of parts of two titles to the cosine of the titles.

    Args:
        left: Vectors of the parts of the left title, (parts, dim).
        right: Vectors of the parts of the right title, (parts, dim).

    Returns:
        Contributions, float64 (left parts, right parts), and the unit-norm vectors of the left and the right
        title, which are zero if all parts of the title are zero.
    """
    scaled_parts, sums = [], []
    for parts in (left, right):
        part_sum = parts.sum(axis=0, dtype=np.float64)
        length = np.linalg.norm(part_sum) or np.inf
        scaled_parts.append(parts / length)
        sums.append(part_sum / length)
    return scaled_parts[0] @ scaled_parts[1].T, sums


def _rank_right_title(
    search: TitleSearch,
    vectors: np.ndarray,
    right_vector: np.ndarray,
    aired: bool,
    titles: tuple[str, str],
) -> Iterator[tuple[float, int | None, list[str]]]:
    """Ranks the right title among the neighbours of each of several vectors of the left title.

    Titles of the left title's show are not ranked. ``aired`` selects the table of vectors that include
    channels and hours.

    Yields:
        The cosine of the vector and ``right_vector``, the rank of the right title from 1 (None if the guide
        does not have it), and the nearest titles.
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
        order = np.argsort(-cosines, kind="stable")[:TITLES_PER_REMOVAL]
        nearest_titles = [search.columns["title"][row] for row in order if cosines[row] > 0]
        yield float(vector @ right_vector), rank, nearest_titles
