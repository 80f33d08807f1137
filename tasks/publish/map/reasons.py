"""Why titles are near: the pairs of parts that weigh most in the cosine of a title and each of its nearest.

Parts are words, the meaning, and each kind of how a title airs (tasks/search/parts.py). Told are pairs of
words, and what is alike in the same part of both; a word beside a channel says nothing to a reader.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from storage.shapes import Int
from tasks.encoder.title_encoder import TitleEncoder
from tasks.search.parts import FORM, NO_WORDS, parts_of

NEIGHBOURS = 5  # of each title that are explained
TOGETHER, APART = 3, 1  # pairs shown of each: those that bring together, those that keep apart
SMALLEST = 0.02  # of a cosine; less is not shown
MOST_WORDS = 11  # of a title that are compared
_TITLES, _PAIRS = 4096, 1024  # at once: parts of 1,024 pairs take 40 MB


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
) -> Reasons:
    """Splits the cosine of each title and its five nearest (-1: none) by parts; ``contexts`` and ``dense`` as
    in ``parts_of``.
    """
    contexts = [()] * len(raw_titles) if contexts is None else contexts
    words, parts, norms = _all_parts(encoder, raw_titles, contexts, dense)
    counts = np.array([len(own) for own in words], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(counts + len(NO_WORDS))])
    neighbours = neighbours[:, :NEIGHBOURS]
    found = np.zeros((3, *neighbours.shape, TOGETHER + APART), dtype=np.int16)
    rows, places = np.nonzero((neighbours >= 0) & (norms[:, None] > 0))
    for start in range(0, len(rows), _PAIRS):
        row, place = rows[start : start + _PAIRS], places[start : start + _PAIRS]
        other = neighbours[row, place]
        table = _padded(parts, offsets, row) @ _padded(parts, offsets, other).transpose(0, 2, 1)
        table /= np.maximum(norms[row] * norms[other], 1e-12)[:, None, None]
        table *= _told(counts[row], counts[other], *table.shape[1:])
        flat = table.reshape(len(row), -1)
        order = np.argsort(flat, axis=1, kind="stable")
        chosen = np.column_stack([order[:, : -1 - TOGETHER : -1], order[:, :APART]])
        shares = np.take_along_axis(flat, chosen, axis=1)
        enough = np.column_stack([shares[:, :TOGETHER] >= SMALLEST, shares[:, TOGETHER:] <= -SMALLEST])
        left, right = np.divmod(chosen, table.shape[2])
        found[:, row, place] = enough * [left + 1, right + 1, np.rint(shares * 100).clip(-127, 127)]
    return Reasons(words, found[0].astype(np.uint8), found[1].astype(np.uint8), found[2].astype(np.int8))


def _told(words: np.ndarray, others: np.ndarray, parts: int, their_parts: int) -> np.ndarray:
    """Which pairs of parts are told, bool (pairs, parts, their parts): two words, or the same other part."""
    left = np.arange(parts) - words[:, None]  # below 0 a word, else a place in NO_WORDS
    right = np.arange(their_parts) - others[:, None]
    both_words = (left < 0)[:, :, None] & (right < 0)[:, None, :]
    return both_words | ((left[:, :, None] == right[:, None, :]) & (left != NO_WORDS.index(FORM))[:, :, None])


def _all_parts(
    encoder: TitleEncoder,
    raw_titles: Sequence[str],
    contexts: Sequence[Sequence[str]],
    dense: np.ndarray | None,
) -> tuple[list[list[str]], np.ndarray, np.ndarray]:
    """Words of each title (the first eleven); their parts, NO_WORDS last; norms before scaling."""
    words: list[list[str]] = []
    parts, norms = [], [np.zeros(0, dtype=np.float32)]
    for start in range(0, max(len(raw_titles), 1), _TITLES):
        some = slice(start, start + _TITLES)
        own = None if dense is None else dense[some]
        found, offsets, matrix = parts_of(encoder, raw_titles[some], contexts[some], own)
        if len(found):
            norms.append(np.linalg.norm(np.add.reduceat(matrix, offsets[:-1]), axis=1))
        place = np.arange(len(matrix)) - np.repeat(offsets[:-1], np.diff(offsets))
        last = np.repeat(
            np.diff(offsets) - len(NO_WORDS), np.diff(offsets)
        )  # behind it the parts are no words
        parts.append(matrix[(place < MOST_WORDS) | (place >= last)].astype(np.float16))  # 7 KB a title
        words += [own[: -len(NO_WORDS)][:MOST_WORDS] for own in found]
    return words, np.concatenate(parts), np.concatenate(norms)


def _padded(parts: np.ndarray, offsets: np.ndarray, rows: np.ndarray) -> np.ndarray:
    lengths = offsets[rows + 1] - offsets[rows]
    places = np.arange(lengths.max(initial=1))
    inside = places < lengths[:, None]
    found = parts[np.where(inside, offsets[rows, None] + places, 0)].astype(np.float32)
    found[~inside] = 0
    return found
