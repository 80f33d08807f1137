"""Titles like this one: the search that `guidespace similar` and the served model answer with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from storage.arrays import open_array
from tasks.augment.lexicon import Lexicon
from tasks.neighbours.index import AUTO, Exact, IndexMissing, SearchSettings, query_recall
from tasks.tokenize.titles import parse_title

MOST = 1000  # neighbours of one title


class SearchError(ValueError):
    """A search that cannot be answered; the message says why and what to do."""


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """A title near the one asked for."""

    title: str
    cosine: float
    categories: list[str]
    channels: list[str]


def nothing_known(title: str) -> str:
    """Why a title has no neighbours."""
    return f"nothing is known of the title {title!r}: none of its words or letter sequences is in the guide. Try another spelling"


class TitleSearch:
    """Nearest titles of the guide, for any title.

    Args:
        lexicon: Embeds what is asked for.
        vectors: float32 (titles, dim).
        columns: title, show_key, labels, channels: lists, one entry a title.
        search: How nearest titles are found.

    Raises:
        SearchError: An approximate search is asked for, and its library is not installed.
    """

    def __init__(self, lexicon: Lexicon, vectors: np.ndarray, columns: dict[str, list], search: SearchSettings = AUTO) -> None:
        self.lexicon, self.vectors, self.columns = lexicon, vectors, columns
        try:
            self.index = search.open(vectors)
        except IndexMissing as error:
            raise SearchError(str(error)) from error

    @staticmethod
    def open(folder: Path | str, search: SearchSettings = AUTO) -> TitleSearch:
        """Opens a Model folder: the lexicon, vectors.npy and titles.parquet; how nearest titles are found is ``search``."""
        columns = pq.read_table(Path(folder) / "titles.parquet", columns=["title", "show_key", "labels", "channels"]).to_pydict()
        return TitleSearch(Lexicon.open(folder), np.array(open_array(Path(folder), "vectors")), columns, search)

    def similar(self, title: str, k: int = 10) -> list[Neighbour]:
        """The nearest titles, the nearest first; the same show is left out.

        Args:
            title: As a guide would have it; the guide need not know it.
            k: How many, 1 to 1000.

        Raises:
            SearchError: k is out of range, or nothing of the title is known (no word, no n-gram).
        """
        found = self.similar_many([title], k)[0]
        if found is None:
            raise SearchError(nothing_known(title))
        return found

    def similar_many(self, titles: Sequence[str], k: int = 10) -> list[list[Neighbour] | None]:
        """``similar`` for many titles in one pass; None for a title of which nothing is known."""
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MOST:
            raise SearchError(f"k is {k!r}; it is a whole number from 1 to {MOST}")
        queries = self.lexicon.embed(titles)
        known = np.flatnonzero(queries.any(axis=1)) if len(titles) else np.zeros(0, dtype=np.int64)
        found: list[list[Neighbour] | None] = [None] * len(titles)
        if len(known):
            ids, cosines = self.index.nearest(queries[known], k + 1)
            for place, rows, values in zip(known.tolist(), ids, cosines, strict=True):
                found[place] = self._neighbours(parse_title(titles[place]).show_key, rows, values, k)
        return found

    def told_recall(self, k: int = 10) -> str:
        """What an approximate search misses, as a sentence, measured on 200 titles of the guide; empty where the search is exact."""
        if isinstance(self.index, Exact):
            return ""
        recall = query_recall(self.index, self.vectors, k + 1)
        return f"approximate search: recall {recall:.3f} of the {k} nearest, measured on {min(200, len(self.vectors))} titles"

    def _neighbours(self, show_key: str, rows: np.ndarray, cosines: np.ndarray, k: int) -> list[Neighbour]:
        return [
            Neighbour(title=self.columns["title"][row], cosine=round(float(cosine), 4), categories=self.columns["labels"][row], channels=self.columns["channels"][row])
            for row, cosine in zip(rows, cosines, strict=True)
            if row >= 0 and self.columns["show_key"][row] != show_key
        ][:k]
