"""Explains why two titles are similar: by the parts of their vectors, and by removing single words.

The vector of a title is the normalized sum of the vectors of its parts (tasks/search/parts.py). There is one
part per word, one for the meaning, and one per kind of airing context, such as channel and hour. Therefore
the cosine of titles A and B is a sum over all pairs of a part a_i of A and a part b_j of B:

    cos(A, B) = Σ_i Σ_j  a_i · b_j / (|A| |B|)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from tasks.search.parts import NON_WORD_PARTS, split_into_parts
from tasks.search.query import Query
from tasks.search.search import SearchError, TitleSearch, no_match_message
from tasks.text.titles import parse_title

TITLES_PER_REMOVAL = 3  # nearest titles that are listed after the removal of a word


@dataclass(frozen=True, kw_only=True)
class PartPair:
    """Contribution of a part of the left title and a part of the right title to the cosine of the titles."""

    left: str  # a word of the left title, or a name in NON_WORD_PARTS such as "(meaning)"
    right: str  # a word of the right title, or a name in NON_WORD_PARTS
    contribution: float  # summand of the cosine


@dataclass(frozen=True, kw_only=True)
class WordRemoval:
    """Effect of removing one word from the left title, whose channel, hour and description are kept."""

    word: str  # the removed word
    cosine: float  # cosine of the shortened left title and the right title
    rank: int | None  # rank as in Explanation; None also if the model has no vector for the shortened title
    nearest: list[str]  # titles of the guide that are nearest to the shortened title


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Explanation of the cosine of a left and a right title, which ``guidespace explain`` prints."""

    left: str
    right: str
    cosine: float
    rank: int | None  # rank of the right title among the left title's neighbours, from 1; None: not in guide
    pairs: list[PartPair]  # pairs with the largest contribution first; contributions add up to the cosine
    without: list[WordRemoval]  # one removal per word of the left title; empty if it has only one word


def explain(search: TitleSearch, left: str, right: str) -> Explanation:
    """Explains the cosine of two titles. Channels and hours are compared only if the guide has both titles.

    Raises:
        SearchError: The model has no vector for one of the titles.
    """
    encoder, queries = search.encoder, [search.look_up(Query(text)) for text in (left, right)]
    with_context, features = all(query.row is not None for query in queries), search.query_features(queries)
    raw_titles = [query.raw_title for query in queries]
    contexts = [query.context if with_context else [] for query in queries]
    names, offsets, parts = split_into_parts(encoder, raw_titles, contexts, features)
    contributions, title_vectors = compare_parts(parts[: offsets[1]], parts[offsets[1] :])
    if not all(vector.any() for vector in title_vectors):
        raise SearchError(no_match_message(right if title_vectors[0].any() else left))
    pairs = [
        PartPair(left=left_part, right=right_part, contribution=round(float(value), 4))
        for (left_part, right_part), value in zip(product(*names), contributions.flat, strict=True)
        if value or not {left_part, right_part} & set(NON_WORD_PARTS)
    ]
    pairs.sort(key=lambda pair: -pair.contribution)
    title_words = parse_title(raw_titles[0]).display.split()
    words = title_words if len(title_words) > 1 else []
    shortened_titles = [" ".join(title_words[:i] + title_words[i + 1 :]) for i in range(len(words))]
    description_features = features[:1] - encoder.sentence_features(raw_titles[:1])
    shortened_features = encoder.sentence_features(shortened_titles) + description_features
    left_features = np.concatenate([features[:1], shortened_features])
    left_vectors = encoder.embed_with_context(
        [raw_titles[0], *shortened_titles], [contexts[0]] * (1 + len(shortened_titles)), left_features
    )
    similarity_vectors = encoder.similarity(left_features, left_vectors[with_context])
    right_vector = title_vectors[1].astype(np.float32)
    ranks = _rank_right_title(search, similarity_vectors, right_vector, with_context, (left, right))
    _, rank, _ = next(ranks)  # of the complete title; the shortened titles follow
    without = [
        WordRemoval(word=word, cosine=round(cosine, 4), rank=rank_without, nearest=nearest)
        for word, (cosine, rank_without, nearest) in zip(words, ranks, strict=True)
    ]
    cosine = round(float(contributions.sum()), 4)
    return Explanation(left=left, right=right, cosine=cosine, rank=rank, pairs=pairs, without=without)


def compare_parts(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """Computes the contribution of each pair of parts of two titles to the cosine of the titles.

    Args:
        left: Vectors of the parts of the left title, (parts, dim).
        right: Vectors of the parts of the right title, (parts, dim).

    Returns:
        The contributions, float64 (left parts, right parts), and the vectors of the left and the right title,
        which have unit norm, or are zero if all parts of the title are zero.
    """
    scaled_parts, title_vectors = [], []
    for parts in (left, right):
        part_sum = parts.sum(axis=0, dtype=np.float64)
        length = np.linalg.norm(part_sum) or np.inf
        scaled_parts.append(parts / length)
        title_vectors.append(part_sum / length)
    return scaled_parts[0] @ scaled_parts[1].T, title_vectors


def _rank_right_title(
    search: TitleSearch,
    vectors: np.ndarray,
    right_vector: np.ndarray,
    with_context: bool,
    titles: tuple[str, str],
) -> Iterator[tuple[float, int | None, list[str]]]:
    """Ranks the right title among the nearest titles of each vector.

    Args:
        search: Search in the titles of the guide. Titles of the left title's show are not ranked.
        vectors: Similarity vectors of the left title and of shortened forms of it.
        right_vector: Similarity vector of the right title.
        with_context: Whether vectors that include channels and hours are compared.
        titles: The left and the right title.

    Yields:
        The cosine of a vector and ``right_vector``, the rank of the right title from 1 (None if the guide
        does not have it), and the nearest titles.
    """
    shows = np.array(search.columns["show_key"])
    is_left, is_right = (shows == parse_title(title).show_key for title in titles)
    for vector in vectors:
        if not vector.any():
            yield 0.0, None, []
            continue
        cosines = (search.vectors_with_context if with_context else search.vectors_without_context) @ vector
        cosines[is_left] = -np.inf
        right_rows = np.flatnonzero(is_right & ~is_left)
        rank = int((cosines > cosines[right_rows].max()).sum()) + 1 if len(right_rows) else None
        order = np.argsort(-cosines, kind="stable")[:TITLES_PER_REMOVAL]
        nearest_titles = [search.columns["title"][row] for row in order if cosines[row] > 0]
        yield float(vector @ right_vector), rank, nearest_titles
