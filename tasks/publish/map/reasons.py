"""Reasons of neighbours: the pairs of parts with the largest contributions to the cosine.

Parts are words, the meaning, and the kinds of context (tasks/search/parts.py). Reasons are pairs of words and
pairs of the same other part; a pair of a word and a channel would be meaningless to readers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from storage.arrays import Ragged
from storage.shapes import Int
from tasks.compiled import compiled
from tasks.encoder.bag import widen
from tasks.encoder.title_encoder import TitleEncoder
from tasks.search.parts import FORM, NO_WORDS, add_up_parts, parts_of

NEIGHBOURS = 5  # number of explained neighbours per title
POSITIVE, NEGATIVE = 3, 1  # maximum pairs per neighbour that increase and that decrease the cosine
MIN_SHARE = 0.02  # minimum absolute contribution to a cosine
MAX_WORDS = 11  # maximum number of compared words per title
PAIRS, OTHER_PARTS, FORM_INDEX = POSITIVE + NEGATIVE, len(NO_WORDS), NO_WORDS.index(FORM)
_TITLES = 4096  # per block; their parts and those of their neighbours take 200 MB


@dataclass(frozen=True)
class Reasons:
    """Pairs of parts of neighbours; arrays are (titles, neighbours, PAIRS)."""

    words: list[list[str]]  # of each title, before the parts NO_WORDS
    left: np.ndarray  # uint8: part of the title, counted from 1; 0 for no pair
    right: np.ndarray  # uint8: part of the neighbour
    share: np.ndarray  # int8: contribution to the cosine in hundredths, descending, then a negative one


def find_reasons(
    encoder: TitleEncoder,
    raw_titles: Sequence[str],
    neighbours: Int[np.ndarray, "titles k"],
    contexts: Sequence[Sequence[str]] | None = None,
    dense: np.ndarray | None = None,
    token_ids: Ragged | None = None,
) -> Reasons:
    """Finds the pairs with the largest contributions for each title and its first NEIGHBOURS neighbours.

    Args:
        encoder: Encoder of the vectors.
        raw_titles: Raw titles.
        neighbours: Indices of neighbours, padded with -1.
        contexts, dense, token_ids: As in ``parts_of``.
    """
    contexts = [()] * len(raw_titles) if contexts is None else contexts
    words, parts, norms = _all_parts(encoder, raw_titles, contexts, dense, token_ids)
    counts = np.array([len(title_words) for title_words in words], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(counts + len(NO_WORDS))])
    neighbours = neighbours[:, :NEIGHBOURS]
    shape = (*neighbours.shape, PAIRS)
    left, right, share = (np.zeros(shape, dtype=dtype) for dtype in (np.uint8, np.uint8, np.int8))
    for start in range(0, len(neighbours), _TITLES):
        block = slice(start, start + _TITLES)
        near = neighbours[block]
        used = np.union1d(np.arange(start, start + len(near)), near[near >= 0])
        lengths = counts[used] + len(NO_WORDS)
        ends = np.cumsum(lengths)
        rows = np.repeat(offsets[used] - ends + lengths, lengths) + np.arange(ends[-1])
        inputs = widen(parts[rows]), ends - lengths, counts[used], norms[used]
        titles = np.searchsorted(used, np.arange(start, start + len(near)))
        near = np.where(near < 0, -1, np.searchsorted(used, near))
        outputs = left[block], right[block], share[block]
        compiled(_find_pairs, fastmath=True)(*inputs, titles, near, *outputs)
    return Reasons(words, left, right, share)


def _find_pairs(  # compiled by numba: a single function of arrays and numbers
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
    """Writes the largest pairs of two words, or of the same other part except FORM."""
    values, lefts, rights = np.empty(PAIRS, np.float32), np.empty(PAIRS, np.uint8), np.empty(PAIRS, np.uint8)
    for row, title in enumerate(titles):
        for column, other in enumerate(neighbours[row]):
            if other < 0 or norms[title] == 0:
                continue
            scale = max(norms[title] * norms[other], np.float32(1e-12))
            values[:], lefts[:], rights[:] = 0, 0, 0
            for part in range(words[title] + OTHER_PARTS):
                other_part = part - words[title]  # negative for words
                first = 0 if other_part < 0 else words[other] + other_part
                end = words[other] if other_part < 0 else first + (other_part != FORM_INDEX)
                for j in range(first, end):
                    product = np.float32(0)
                    for axis in range(parts.shape[1]):
                        product += parts[begins[title] + part, axis] * parts[begins[other] + j, axis]
                    value, rank = product / scale, PAIRS
                    if value <= -MIN_SHARE and value < values[POSITIVE]:
                        rank = POSITIVE
                    elif value >= MIN_SHARE and value > values[POSITIVE - 1]:
                        rank = POSITIVE - 1
                        while rank > 0 and value > values[rank - 1]:  # insertion sort
                            values[rank], lefts[rank] = values[rank - 1], lefts[rank - 1]
                            rights[rank] = rights[rank - 1]
                            rank -= 1
                    if rank < PAIRS:
                        values[rank], lefts[rank], rights[rank] = value, part + 1, j + 1
            left[row, column], right[row, column] = lefts, rights
            for rank in range(PAIRS):
                share[row, column, rank] = round(min(max(values[rank] * 100, -127), 127))


def _all_parts(
    encoder: TitleEncoder,
    raw_titles: Sequence[str],
    contexts: Sequence[Sequence[str]],
    dense: np.ndarray | None,
    token_ids: Ragged | None,
) -> tuple[list[list[str]], np.ndarray, np.ndarray]:
    """Returns the first MAX_WORDS words of each title, their parts and NO_WORDS, and norms of all parts."""
    words: list[list[str]] = []
    parts, norms = [], []
    for start in range(0, max(len(raw_titles), 1), _TITLES):
        block = slice(start, start + _TITLES)
        block_dense = None if dense is None else dense[block]
        ids = None if token_ids is None else token_ids.between(start, min(start + _TITLES, len(token_ids)))
        names, offsets, matrix = parts_of(encoder, raw_titles[block], contexts[block], block_dense, ids)
        norms.append(np.linalg.norm(add_up_parts(matrix, offsets), axis=1))
        lengths = np.diff(offsets)
        index = np.arange(len(matrix)) - np.repeat(offsets[:-1], lengths)
        is_used = (index < MAX_WORDS) | (index >= np.repeat(lengths - len(NO_WORDS), lengths))
        # half() of torch takes a ninth of the time of NumPy
        parts.append(torch.from_numpy(matrix[is_used]).half().numpy())
        words += [title_names[: -len(NO_WORDS)][:MAX_WORDS] for title_names in names]
    return words, np.concatenate(parts), np.concatenate(norms)
