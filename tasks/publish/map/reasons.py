"""Why titles are near: the pairs of parts that weigh most in the cosine of a title and each of its nearest.

Parts are words, the meaning, and each kind of how a title airs (tasks/search/parts.py). Told are pairs of
words, and what is alike in the same part of both; a word beside a channel says nothing to a reader.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from storage.arrays import Ragged
from storage.shapes import Int
from tasks.compiled import compiled
from tasks.encoder.bags import widen
from tasks.encoder.title_encoder import TitleEncoder
from tasks.search.parts import FORM, NO_WORDS, add_up_parts, parts_of

NEIGHBOURS = 5  # of each title that are explained
TOGETHER, APART = 3, 1  # pairs shown of each: those that bring together, those that keep apart
SMALLEST = 0.02  # of a cosine; less is not shown
MOST_WORDS = 11  # of a title that are compared
KEPT, OTHERS, FORM_PLACE = TOGETHER + APART, len(NO_WORDS), NO_WORDS.index(FORM)
_TITLES = 4096  # at once: their parts and their neighbours' take 200 MB


@dataclass(frozen=True)
class Reasons:
    """Pairs of parts of neighbours; arrays are (titles, neighbours, 4)."""

    words: list[list[str]]  # after the last come NO_WORDS
    left: np.ndarray  # uint8: part of the title, counted from 1; 0 where there is none
    right: np.ndarray  # uint8: likewise, of the neighbour
    share: np.ndarray  # int8: hundredths of a cosine that the pair adds, falling; negative ones keep apart


def find_reasons(
    encoder: TitleEncoder,
    raw_titles: Sequence[str],
    neighbours: Int[np.ndarray, "titles k"],
    contexts: Sequence[Sequence[str]] | None = None,
    dense: np.ndarray | None = None,
    known: Ragged | None = None,
) -> Reasons:
    """Splits the cosine of each title and its five nearest (-1: none) by parts; ``contexts``, ``dense`` and
    ``known`` as in ``parts_of``.
    """
    contexts = [()] * len(raw_titles) if contexts is None else contexts
    words, parts, norms = _all_parts(encoder, raw_titles, contexts, dense, known)
    counts = np.array([len(own) for own in words], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(counts + len(NO_WORDS))])
    neighbours = neighbours[:, :NEIGHBOURS]
    shape = (*neighbours.shape, TOGETHER + APART)
    left, right, share = (np.zeros(shape, dtype=dtype) for dtype in (np.uint8, np.uint8, np.int8))
    for start in range(0, len(neighbours), _TITLES):
        own = slice(start, start + _TITLES)
        near = neighbours[own]
        used = np.union1d(np.arange(start, start + len(near)), near[near >= 0])
        lengths = counts[used] + len(NO_WORDS)
        ends = np.cumsum(lengths)
        rows = np.repeat(offsets[used] - ends + lengths, lengths) + np.arange(ends[-1])
        explained = widen(parts[rows]), ends - lengths, counts[used], norms[used]
        places = np.searchsorted(used, np.arange(start, start + len(near)))
        near = np.where(near < 0, -1, np.searchsorted(used, near))
        compiled(_largest_pairs, fastmath=True)(*explained, places, near, left[own], right[own], share[own])
    return Reasons(words, left, right, share)


def _largest_pairs(  # numba: one function, arrays and numbers
    parts: np.ndarray,
    begins: np.ndarray,
    words: np.ndarray,
    norms: np.ndarray,
    titles: np.ndarray,
    neighbours: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    share: np.ndarray,
) -> None:
    """Told are two words, or the same other part of both but the form (the first behind the words)."""
    found, ours, theirs = np.empty(KEPT, dtype=np.float32), np.empty(KEPT, np.uint8), np.empty(KEPT, np.uint8)
    for title, own in enumerate(titles):
        for place, other in enumerate(neighbours[title]):
            if other < 0 or norms[own] == 0:
                continue
            scale = max(norms[own] * norms[other], np.float32(1e-12))
            found[:], ours[:], theirs[:] = 0, 0, 0
            for i in range(words[own] + OTHERS):
                beyond = i - words[own]
                first = 0 if beyond < 0 else words[other] + beyond
                end = words[other] if beyond < 0 else first + (beyond != FORM_PLACE)
                for j in range(first, end):
                    product = np.float32(0)
                    for axis in range(parts.shape[1]):
                        product += parts[begins[own] + i, axis] * parts[begins[other] + j, axis]
                    value, rank = product / scale, KEPT
                    if value <= -SMALLEST and value < found[TOGETHER]:
                        rank = TOGETHER
                    elif value >= SMALLEST and value > found[TOGETHER - 1]:
                        rank = TOGETHER - 1
                        while rank > 0 and value > found[rank - 1]:
                            found[rank], ours[rank], theirs[rank] = (
                                found[rank - 1],
                                ours[rank - 1],
                                theirs[rank - 1],
                            )
                            rank -= 1
                    if rank < KEPT:
                        found[rank], ours[rank], theirs[rank] = value, i + 1, j + 1
            left[title, place], right[title, place] = ours, theirs
            for rank in range(KEPT):
                share[title, place, rank] = round(min(max(found[rank] * 100, -127), 127))


def _all_parts(
    encoder: TitleEncoder,
    raw_titles: Sequence[str],
    contexts: Sequence[Sequence[str]],
    dense: np.ndarray | None,
    known: Ragged | None,
) -> tuple[list[list[str]], np.ndarray, np.ndarray]:
    """Words of each title (the first eleven); their parts, NO_WORDS last; norms before scaling."""
    words: list[list[str]] = []
    parts, norms = [], []
    for start in range(0, max(len(raw_titles), 1), _TITLES):
        some = slice(start, start + _TITLES)
        own = None if dense is None else dense[some]
        tokens = None if known is None else known.between(start, min(start + _TITLES, len(known)))
        found, offsets, matrix = parts_of(encoder, raw_titles[some], contexts[some], own, tokens)
        norms.append(np.linalg.norm(add_up_parts(matrix, offsets), axis=1))
        place = np.arange(len(matrix)) - np.repeat(offsets[:-1], np.diff(offsets))
        last = np.repeat(
            np.diff(offsets) - len(NO_WORDS), np.diff(offsets)
        )  # behind it the parts are no words
        kept = torch.from_numpy(matrix[(place < MOST_WORDS) | (place >= last)])
        parts.append(kept.half().numpy())  # 7 KB a title; NumPy takes nine times as long
        words += [own[: -len(NO_WORDS)][:MOST_WORDS] for own in found]
    return words, np.concatenate(parts), np.concatenate(norms)
