"""Why the map's titles are near each other: for each title and its nearest, the word pairs that weigh most in the cosine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.augment.lexicon import Lexicon
from tasks.neighbours.explain import parts_of

NEIGHBOURS = 5  # of each title that are explained
TOGETHER, APART = 2, 1  # pairs told of each: those that bring together, those that keep apart
SMALLEST = 0.02  # of a cosine; less is not worth telling
MOST_PARTS = 12  # words (and the form) of a title that are looked at
_TITLES, _PAIRS = 4096, 4096  # at once


@dataclass(frozen=True)
class Reasons:
    """Word pairs of neighbours.

    Attributes:
        words: Of each title; the part after the last is its form (length, shape, what was glued to it).
        left: uint8, shape (titles, neighbours, 3): part of the title, counted from 1; 0 where there is nothing to tell.
        right: uint8, likewise, of the neighbour.
        share: int8, likewise: hundredths of a cosine that the pair adds, falling; negative ones keep apart.
    """

    words: list[list[str]]
    left: np.ndarray
    right: np.ndarray
    share: np.ndarray


def find_reasons(lexicon: Lexicon, raw_titles: Sequence[str], neighbours: np.ndarray) -> Reasons:
    """Takes the cosine of each title and its nearest apart, by words.

    Args:
        lexicon: That embedded the titles.
        raw_titles: As they were embedded.
        neighbours: Integers, shape (titles, k), nearest first, -1 where there is none; the first five are explained.
    """
    words, parts, norms = _all_parts(lexicon, raw_titles)
    offsets = np.concatenate([[0], np.cumsum([len(own) + 1 for own in words])]).astype(np.int64)
    neighbours = neighbours[:, :NEIGHBOURS]
    shape = (*neighbours.shape, TOGETHER + APART)
    left, right, share = np.zeros(shape, dtype=np.uint8), np.zeros(shape, dtype=np.uint8), np.zeros(shape, dtype=np.int8)
    rows, places = np.nonzero((neighbours >= 0) & (norms[:, None] > 0))
    for start in range(0, len(rows), _PAIRS):
        some = slice(start, start + _PAIRS)
        one, other = rows[some], neighbours[rows[some], places[some]]
        table = np.einsum("npd,nqd->npq", _padded(parts, offsets, one), _padded(parts, offsets, other))
        table /= np.maximum(norms[one] * norms[other], 1e-12)[:, None, None]
        flat = table.reshape(len(one), -1)
        order = np.argsort(flat, axis=1, kind="stable")
        chosen = np.column_stack([order[:, : -1 - TOGETHER : -1], order[:, :APART]])
        shares = np.take_along_axis(flat, chosen, axis=1)
        told = np.column_stack([shares[:, :TOGETHER] >= SMALLEST, shares[:, TOGETHER:] <= -SMALLEST])
        target = rows[some], places[some]
        left[target] = np.where(told, chosen // table.shape[2] + 1, 0)
        right[target] = np.where(told, chosen % table.shape[2] + 1, 0)
        share[target] = np.where(told, np.rint(shares * 100).clip(-127, 127), 0)
    return Reasons(words, left, right, share)


def _all_parts(lexicon: Lexicon, raw_titles: Sequence[str]) -> tuple[list[list[str]], np.ndarray, np.ndarray]:
    """Words of each title (the first eleven), parts one after the other with the form last, and each title's norm before it is brought to one."""
    words: list[list[str]] = []
    parts: list[np.ndarray] = []
    norms: list[np.ndarray] = []
    for start in range(0, len(raw_titles), _TITLES):
        found, offsets, matrix = parts_of(lexicon, raw_titles[start : start + _TITLES])
        norms.append(np.linalg.norm(np.add.reduceat(matrix, offsets[:-1]), axis=1))
        kept = [np.r_[offsets[i] : offsets[i] + min(len(own), MOST_PARTS) - 1, offsets[i + 1] - 1] for i, own in enumerate(found)]
        parts.append(matrix[np.concatenate(kept)])
        words += [own[:-1][: MOST_PARTS - 1] for own in found]
    if not parts:
        return [], np.zeros((0, lexicon.dim), dtype=np.float32), np.zeros(0, dtype=np.float32)
    return words, np.concatenate(parts), np.concatenate(norms)


def _padded(parts: np.ndarray, offsets: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Parts of some titles, float32 (titles, most parts of any, dim); missing ones are zero."""
    lengths = offsets[rows + 1] - offsets[rows]
    places = np.arange(lengths.max(initial=1))
    inside = places < lengths[:, None]
    found = parts[np.where(inside, offsets[rows, None] + places, 0)]
    found[~inside] = 0
    return found
