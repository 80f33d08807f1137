"""Explains why neighbouring titles are similar, by the largest contributions to their cosine similarity.

The vector of a title is a sum of parts (tasks/search/parts.py): one per word, one for the meaning of the
title (its sentence vector), and one per kind of airing context, such as channel or hour. Therefore, the
cosine of two titles is a sum over pairs of parts. A reason is a pair of two words, or a pair of the same
kind, such as the channels of both titles. Pairs such as a word and a channel are omitted, because readers
would not understand them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from storage.arrays import Ragged
from storage.lazy import torch
from storage.shapes import Int
from tasks.compiled import compiled
from tasks.encoder.bag import widen
from tasks.encoder.title_encoder import TitleEncoder
from tasks.search.parts import FORM, NON_WORD_PARTS, add_up_parts, split_into_parts

NEIGHBOURS = 5  # number of explained neighbours per title
POSITIVE, NEGATIVE = 3, 1  # maximum numbers of reasons that increase, and that decrease, a cosine
MIN_SHARE = 0.02  # minimum absolute contribution of a reason to a cosine
MAX_WORDS = 11  # maximum number of compared words per title
PAIRS, OTHER_PARTS, FORM_INDEX = POSITIVE + NEGATIVE, len(NON_WORD_PARTS), NON_WORD_PARTS.index(FORM)
_BLOCK = 512  # titles per block; the parts of these titles and of their neighbours take 35 MB


@dataclass(frozen=True)
class Reasons:
    """Reasons why neighbouring titles are similar: pairs of parts that contribute most to the cosine.

    The parts of a title are its words, followed by NON_WORD_PARTS. Arrays are (titles, neighbours, PAIRS).
    """

    words: list[list[str]]  # words of each title
    left: np.ndarray  # uint8, number of the part of the title, from 1; 0 for a missing reason
    right: np.ndarray  # uint8, number of the part of the neighbour, from 1; 0 for a missing reason
    share: np.ndarray  # int8, contribution to the cosine in hundredths; positive ones first, descending


def find_reasons(
    encoder: TitleEncoder,
    raw_titles: Sequence[str],
    neighbours: Int[np.ndarray, "titles k"],
    contexts: Sequence[Sequence[str]] | None = None,
    features: np.ndarray | None = None,
    token_ids: Ragged | None = None,
) -> Reasons:
    """Finds the reasons why each title is similar to its first NEIGHBOURS neighbours.

    Args:
        encoder: Encoder that computed the vectors.
        raw_titles: Raw titles.
        neighbours: Indices of the nearest titles of each title, padded with -1.
        contexts: Context tokens of each title; None: titles have no context.
        features: Sentence features, float32 (titles, features); None: computed from the titles.
        token_ids: Token ids, as in ``TitleEncoder.embed_with_context``; None: they are looked up.
    """
    contexts = [()] * len(raw_titles) if contexts is None else contexts
    words, parts, norms = _compute_parts(encoder, raw_titles, contexts, features, token_ids)
    word_counts = np.array([len(title_words) for title_words in words], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(word_counts + OTHER_PARTS)])
    neighbours = neighbours[:, :NEIGHBOURS]
    shape = (*neighbours.shape, PAIRS)
    left, right, share = (np.zeros(shape, dtype=dtype) for dtype in (np.uint8, np.uint8, np.int8))
    for start in range(0, len(neighbours), _BLOCK):
        block = slice(start, start + _BLOCK)
        ids = neighbours[block]
        used_titles = np.union1d(np.arange(start, start + len(ids)), ids[ids >= 0])
        lengths = word_counts[used_titles] + OTHER_PARTS
        ends = np.cumsum(lengths)
        rows = np.repeat(offsets[used_titles] - ends + lengths, lengths) + np.arange(ends[-1])
        compiled(_find_pairs, fastmath=True)(
            widen(parts[rows]),
            ends - lengths,
            word_counts[used_titles],
            norms[used_titles],
            np.searchsorted(used_titles, np.arange(start, start + len(ids))),
            np.where(ids < 0, -1, np.searchsorted(used_titles, ids)),
            left[block],
            right[block],
            share[block],
        )
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
    """Writes the pairs with the largest contributions into ``left``, ``right`` and ``share``.

    A pair consists of two words, or of the same part of both titles, such as the channel (except FORM).

    Args:
        parts: Vectors of the parts of all titles, (parts, dim); the words of a title precede its other parts.
        begins: Index of the first part of each title.
        words: Number of words of each title.
        norms: Norm of the vector of each title.
        titles: Titles to explain.
        neighbours: Neighbours of ``titles``, (titles, neighbours), padded with -1.
        left, right, share: Fields of Reasons, which the function writes.
    """
    values, lefts, rights = np.empty(PAIRS, np.float32), np.empty(PAIRS, np.uint8), np.empty(PAIRS, np.uint8)
    for row, title in enumerate(titles):
        for column, neighbour in enumerate(neighbours[row]):
            if neighbour < 0 or norms[title] == 0:
                continue
            scale = max(norms[title] * norms[neighbour], np.float32(1e-12))
            values[:], lefts[:], rights[:] = 0, 0, 0
            for part in range(words[title] + OTHER_PARTS):
                other_part = part - words[title]  # negative for words
                first = 0 if other_part < 0 else words[neighbour] + other_part
                end = words[neighbour] if other_part < 0 else first + (other_part != FORM_INDEX)
                for j in range(first, end):
                    product = np.float32(0)
                    for axis in range(parts.shape[1]):
                        product += parts[begins[title] + part, axis] * parts[begins[neighbour] + j, axis]
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


def _compute_parts(
    encoder: TitleEncoder,
    raw_titles: Sequence[str],
    contexts: Sequence[Sequence[str]],
    features: np.ndarray | None,
    token_ids: Ragged | None,
) -> tuple[list[list[str]], np.ndarray, np.ndarray]:
    """Computes the parts of all titles in blocks.

    Returns:
        The first MAX_WORDS words of each title; the vectors of these words and of NON_WORD_PARTS, float16
        (parts, dim); and the norm of the vector of each title, including the words beyond MAX_WORDS.
    """
    words: list[list[str]] = []
    norms: list[np.ndarray] = []
    parts, count = np.empty((0, 0), dtype=np.float16), 0
    for start in range(0, max(len(raw_titles), 1), _BLOCK):
        block = slice(start, start + _BLOCK)
        block_features = None if features is None else features[block]
        ids = None if token_ids is None else token_ids.between(start, min(start + _BLOCK, len(token_ids)))
        part_names, offsets, matrix = split_into_parts(
            encoder, raw_titles[block], contexts[block], block_features, ids
        )
        norms.append(np.linalg.norm(add_up_parts(matrix, offsets), axis=1))
        lengths = np.diff(offsets)
        position_in_title = np.arange(len(matrix)) - np.repeat(offsets[:-1], lengths)
        is_other_part = position_in_title >= np.repeat(lengths - OTHER_PARTS, lengths)
        is_used = (position_in_title < MAX_WORDS) | is_other_part
        if start == 0:  # for the maximum number of parts; the system allocates only the used pages
            max_parts = len(raw_titles) * (MAX_WORDS + OTHER_PARTS)
            parts = np.empty((max_parts, matrix.shape[1]), dtype=np.float16)
        used_count = int(is_used.sum())
        # torch converts to float16 in a ninth of the time of NumPy
        parts[count : count + used_count] = torch.from_numpy(matrix[is_used]).half().numpy()
        count += used_count
        words += [title_parts[:-OTHER_PARTS][:MAX_WORDS] for title_parts in part_names]
    return words, parts[:count], np.concatenate(norms)
