"""Why two titles are near: what each pair of their parts adds to the cosine, and what is near without a word.

A title's similarity vector is the normalized sum of its parts (tasks/search/parts.py), so a cosine is a sum
over pairs of parts:

    cos(A, B) = Σ_i Σ_j  a_i · b_j / (|A| |B|)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from tasks.search.parts import NO_WORDS, parts_of
from tasks.search.query import Query
from tasks.search.search import SearchError, TitleSearch, nothing_known
from tasks.text.titles import parse_title


@dataclass(frozen=True, kw_only=True)
class PartPair:
    """A part of each title, a word or one of NO_WORDS, and what the pair adds to the cosine."""

    left: str
    right: str
    contribution: float


@dataclass(frozen=True, kw_only=True)
class Without:
    """The first title without one of its words, as written; it airs as before, and is described as before."""

    word: str
    cosine: float  # of the rest with the second title
    rank: int | None  # as in Explanation; None where the rest is unknown, too
    nearest: list[str]  # titles nearest to the rest


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Why two titles are as near as they are."""

    left: str
    right: str
    cosine: float
    rank: (
        int | None
    )  # of the second among those nearest to the first, from 1; None: the guide does not have it
    pairs: list[PartPair]  # largest contribution first; they add up to the cosine
    without: list[Without]  # the first less each of its words in turn; empty for a title of one word


def explain(search: TitleSearch, left: str, right: str, *, nearest: int = 3) -> Explanation:
    """Explains the cosine of two titles as they air, where the guide has both, else of the titles alone.

    Raises:
        SearchError: Nothing of one of the titles is known.
    """
    encoder, asked = search.encoder, [search.look_up(Query(title)) for title in (left, right)]
    aired, dense = all(own.row is not None for own in asked), search.dense_of(asked)
    raw, contexts = [own.raw_title for own in asked], [own.context if aired else [] for own in asked]
    names, offsets, parts = parts_of(encoder, raw, contexts, dense)
    table, sums = compare_parts(parts[: offsets[1]], parts[offsets[1] :])
    if not all(vector.any() for vector in sums):
        raise SearchError(nothing_known(right if sums[0].any() else left))
    summands = zip(product(*names), table.flat, strict=True)
    told = [(i, j, float(value)) for (i, j), value in summands if value or not {i, j} & set(NO_WORDS)]
    pairs = [PartPair(left=i, right=j, contribution=round(value, 4)) for i, j, value in told]
    pairs.sort(key=lambda pair: -pair.contribution)
    written = parse_title(raw[0]).display.split()
    words = written if len(written) > 1 else []
    rests = [" ".join(written[:place] + written[place + 1 :]) for place in range(len(words))]
    descriptions = dense[:1] - encoder.dense(raw[:1])
    denses = np.concatenate([dense[:1], encoder.dense(rests) + descriptions])
    forms = encoder.embed_with_context([raw[0], *rests], [contexts[0]] * (1 + len(rests)), denses)
    vectors = encoder.similarity(denses, forms[aired])
    looked_up = _look_up(search, vectors, sums[1].astype(np.float32), aired, (left, right), nearest)
    rank = next(looked_up)[1]
    without = [
        Without(word=word, cosine=round(cosine, 4), rank=place, nearest=titles)
        for word, (cosine, place, titles) in zip(words, looked_up, strict=True)
    ]
    cosine = round(float(table.sum()), 4)
    return Explanation(left=left, right=right, cosine=cosine, rank=rank, pairs=pairs, without=without)


def compare_parts(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """What each pair of parts adds to the cosine of two titles, float64 (parts, other parts), and their unit
    vectors, zero where nothing is known.
    """
    sides, sums = [], []
    for parts in (one, other):
        total = parts.sum(axis=0, dtype=np.float64)
        length = np.linalg.norm(total) or np.inf
        sides.append(parts / length)
        sums.append(total / length)
    return sides[0] @ sides[1].T, sums


def _look_up(
    search: TitleSearch,
    vectors: np.ndarray,
    right_vector: np.ndarray,
    aired: bool,
    titles: tuple[str, str],
    nearest: int,
) -> Iterator[tuple[float, int | None, list[str]]]:
    """Of each vector, its cosine with the right title, that one's rank in the guide, and the nearest titles;
    without the show of the left title.
    """
    shows = np.array(search.columns["show_key"])
    own, other = (shows == parse_title(title).show_key for title in titles)
    for vector in vectors:
        if not vector.any():
            yield 0.0, None, []
            continue
        cosines = (search.full if aired else search.alone) @ vector
        cosines[own] = -np.inf
        place = np.flatnonzero(other & ~own)
        rank = int((cosines > cosines[place].max()).sum()) + 1 if len(place) else None
        order = np.argsort(-cosines, kind="stable")[:nearest]
        near = [search.columns["title"][row] for row in order if cosines[row] > 0]
        yield float(vector @ right_vector), rank, near
