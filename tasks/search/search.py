"""Similar titles: the search behind `guidespace similar` and the served model.

Titles are compared by similarity vectors: what a title means beside how it airs. A title that the guide lacks
has no airings: what it means, beside what its words tell, is compared with the same of the guide's titles.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.arrays import open_array
from storage.errors import ExpectedError
from storage.shapes import Float32
from tasks.encoder.title_encoder import TitleEncoder
from tasks.neighbours.index import AUTO, Exact, Index, IndexMissing, SearchSettings, query_recall
from tasks.search.airing import UnknownChannel, channel_tokens, find_channel
from tasks.search.editions import fold_editions
from tasks.search.query import Asked, Query
from tasks.text.titles import parse_title

COLUMNS = ["title", "show_key", "labels", "channels"]
FURTHER = ["raw_title", "airings", "context"]  # that older Model folders may lack
SIMILARITY = "similarity", "similarity_alone"  # .npy: vectors of titles as they air, and of titles alone
MOST = 1000  # neighbours of one title
CANDIDATES, SPARE = 4, 20  # titles looked at for k lines: 4 k + 20, and more where too many are editions


class SearchError(ExpectedError, ValueError):
    """A search that cannot be answered; the message says why and what to do."""


@dataclass(frozen=True)
class Neighbour:
    """A title near the query."""

    title: str
    cosine: float
    categories: list[str]
    channels: list[str]
    editions: int = 0  # further editions of the show that are near the query, too


def nothing_known(title: str) -> str:
    """Message for a title without neighbours."""
    why = "none of its words or letter sequences is in the guide. Try another spelling"
    return f"nothing is known of the title {title!r}: {why}"


class TitleSearch:
    """Nearest titles of the guide, for any title.

    Args:
        encoder: Embeds queries.
        titles: title, show_key, labels, channels; and raw_title, airings, context (tokens of how it airs).
        full: Similarity vectors of titles as they air, float32 (titles, dim).
        alone: The same of titles alone.
        dense: Dense inputs of titles (tasks/encoder/bags.py), (titles, features).
        search: How nearest titles are found.
    """

    def __init__(
        self,
        encoder: TitleEncoder,
        titles: pa.Table,
        full: np.ndarray,
        alone: np.ndarray,
        dense: np.ndarray,
        search: SearchSettings = AUTO,
    ) -> None:
        self.encoder, self.titles, self.search = encoder, titles, search
        self.full, self.alone, self.dense = full, alone, dense
        self.columns = titles.select(COLUMNS).to_pydict()

    @staticmethod
    def open(folder: Path | str, search: SearchSettings = AUTO) -> "TitleSearch":
        """Opens a Model folder: the encoder's files, titles.parquet and similarity vectors, or vectors.npy
        alone, as older folders have it.
        """
        folder, encoder = Path(folder), TitleEncoder.open(folder)
        file = pq.ParquetFile(folder / "titles.parquet")
        titles = file.read([name for name in COLUMNS + FURTHER if name in file.schema_arrow.names])
        if (folder / "similarity.npy").exists():
            full, alone, dense = (open_array(folder, name) for name in (*SIMILARITY, "dense"))
        else:
            full = alone = open_array(folder, "vectors")
            dense = np.zeros((len(titles), 0), dtype=np.float32)
        return TitleSearch(encoder, titles, full, alone, dense, search)

    def similar(self, query: Query | str, k: int = 10) -> list[Neighbour]:
        """The k (1 to 1000) nearest titles, nearest first, without the same show; editions of one are folded.

        Raises:
            SearchError: k is out of range, nothing of the title is known (no word, no n-gram, no meaning),
                the guide lacks the channel, the hour is none, or an approximate search is requested and its
                library is not installed.
        """
        (found,) = self.similar_many([Query(query) if isinstance(query, str) else query], k)
        if isinstance(found, SearchError):
            raise found
        return found

    def similar_many(
        self, queries: Sequence[Query], k: int = 10, among: "TitleSearch | None" = None
    ) -> list[list[Neighbour] | SearchError]:
        """``similar`` for many at once; in place of neighbours the reason why there are none. They are looked
        for ``among`` the titles of another search (``only``), where it is given.
        """
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MOST:
            raise SearchError(f"k is {k!r}; it is a whole number from 1 to {MOST}")
        answers: dict[int, list[Neighbour] | SearchError] = {}
        asked: dict[int, Asked] = {}
        for place, query in enumerate(queries):
            answers[place] = SearchError(nothing_known(query.title))
            try:
                asked[place] = self.look_up(query)
            except SearchError as error:
                answers[place] = error
        vectors = dict(zip(asked, self.embed(list(asked.values())), strict=True))
        for aired in (True, False):
            places = [place for place, own in asked.items() if own.aired == aired and vectors[place].any()]
            if places:
                shows = [parse_title(queries[place].title).show_key for place in places]
                found = (among or self)._nearest(
                    aired, np.array([vectors[place] for place in places]), shows, k
                )
                answers |= zip(places, found, strict=True)
        return list(answers.values())

    def only(self, shows: Mapping[str, str]) -> "TitleSearch":
        """The search over some shows: show key to a title of it, by which it is embedded where the guide
        lacks it.
        """
        rows = np.array([self._rows.get(show, -1) for show in shows], dtype=np.int64)
        known, new = np.flatnonzero(rows >= 0), np.flatnonzero(rows < 0)
        vectors = np.zeros((2, len(rows), self.full.shape[1]), dtype=np.float32)
        for own, table in zip(vectors, (self.full, self.alone), strict=True):
            own[known] = table[rows[known]]
        titles = list(shows.values())
        vectors[:, new] = self.embed([self.look_up(Query(titles[place])) for place in new])
        about = [
            {name: own[row] for name, own in self.columns.items()}
            if row >= 0
            else {"title": parse_title(title).display, "show_key": show, "labels": [], "channels": []}
            for row, (show, title) in zip(rows.tolist(), shows.items(), strict=True)
        ]
        table = pa.Table.from_pylist(about, self.titles.select(COLUMNS).schema)
        nothing = np.zeros((len(rows), self.dense.shape[1]), dtype=np.float32)
        return TitleSearch(self.encoder, table, vectors[0], vectors[1], nothing, self.search)

    def look_up(self, query: Query) -> Asked:
        """What the guide has of a query: its title with most airings of that show, and how it airs.

        Raises:
            SearchError: The guide lacks the channel, or the hour is none.
        """
        row = self._rows.get(parse_title(query.title).show_key)
        tokens = []
        if query.channel:
            try:
                tokens += find_channel(self._channels, query.channel)
            except UnknownChannel as error:
                raise SearchError(str(error)) from error
        if query.hour is not None:
            if query.hour not in range(24):
                raise SearchError(f"the hour is {query.hour!r}; it is a whole number from 0 to 23")
            tokens.append(f"hour:{int(query.hour)}")
        raw = query.title if row is None else self._further("raw_title", row) or query.title
        if row is not None and not tokens:
            tokens = self._further("context", row) or []
        return Asked(query, row, raw, tokens)

    def embed(self, asked: Sequence[Asked]) -> Float32[np.ndarray, "queries dim"]:
        """Similarity vectors, zero where nothing is known: with how it airs, or alone, as ``aired`` says."""
        vectors = np.zeros((len(asked), self.full.shape[1]), dtype=np.float32)
        typed = []
        for place, own in enumerate(asked):
            if own.row is not None and own.query == Query(own.query.title):
                vectors[place] = self.full[own.row]
            else:
                typed.append(place)
        if typed:
            some = [asked[place] for place in typed]
            titles, dense = [own.query.title for own in some], self.dense_of(some)
            alone, full = self.encoder.embed_with_context(titles, [own.context for own in some], dense)
            aired = np.array([[own.aired] for own in some])
            vectors[typed] = self.encoder.similarity(dense, np.where(aired, full, alone))
        return vectors

    def dense_of(self, asked: Sequence[Asked]) -> Float32[np.ndarray, "queries features"]:
        """Dense inputs: of titles of the guide its own, unless the query describes them."""
        dense = np.zeros((len(asked), self.dense.shape[1]), dtype=np.float32)
        typed = []
        for place, own in enumerate(asked):
            if own.row is not None and not own.query.description:
                dense[place] = self.dense[own.row]
            else:
                typed.append(place)
        if typed:
            queries = [asked[place].query for place in typed]
            titles, texts = [query.title for query in queries], [query.description for query in queries]
            dense[typed] = self.encoder.dense(titles, texts)
        return dense

    def recall_note(self, k: int = 10, query: Query | None = None) -> str:
        """Recall of the approximate search that answers ``query`` (None: a title of the guide), measured on
        200 titles, as a sentence; empty where it is exact.
        """
        index = self._index(query is None or self.look_up(query).aired)
        if isinstance(index, Exact):
            return ""
        vectors = self.full if index is self._full_index else self.alone
        recall, count = query_recall(index, np.array(vectors), k + 1), min(200, len(vectors))
        return f"approximate search: recall {recall:.3f} of the {k} nearest, measured on {count} titles"

    def _nearest(
        self, aired: bool, vectors: np.ndarray, shows: Sequence[str], k: int
    ) -> list[list[Neighbour]]:
        found: list[list[Neighbour]] = [[] for _ in shows]
        waiting, count = list(range(len(shows))), CANDIDATES * k + SPARE
        while len(waiting):
            ids, cosines = self._index(aired).nearest(vectors[waiting], count)
            for place, rows, values in zip(waiting, ids.tolist(), cosines.tolist(), strict=True):
                found[place] = self._lines(shows[place], rows, values, k)
            fewer = [place for place in waiting if len(found[place]) < k]
            waiting, count = fewer if count < len(self.full) else [], 4 * count
        return found

    def _lines(self, show: str, rows: Sequence[int], values: Sequence[float], k: int) -> list[Neighbour]:
        names, shows, labels, channels = (self.columns[name] for name in COLUMNS)
        near = [
            (row, value) for row, value in zip(rows, values, strict=True) if row >= 0 and shows[row] != show
        ]
        found = []
        for fold in fold_editions([names[row] for row, _ in near])[:k]:
            row, value = near[fold.first]
            about = labels[row], channels[row], len(fold.others)
            found.append(Neighbour(names[row], round(value, 4), *about))
        return found

    def replace_indexes_(self, replace: Callable[[Index], Index]) -> None:
        """Finds nearest titles by other indexes of the same titles."""
        self._full_index, self._alone_index = replace(self._full_index), replace(self._alone_index)

    def _index(self, aired: bool) -> Index:
        return self._full_index if aired else self._alone_index

    @cached_property
    def _full_index(self) -> Index:
        return self._open(self.full)

    @cached_property
    def _alone_index(self) -> Index:
        return self._open(self.alone)

    def _open(self, vectors: np.ndarray) -> Index:
        try:
            return self.search.open(np.array(vectors))  # torch wants it writable
        except IndexMissing as error:
            raise SearchError(str(error)) from error

    def _further(self, name: str, row: int) -> Any:
        return self.titles[name][row].as_py() if name in self.titles.column_names else None

    @cached_property
    def _rows(self) -> dict[str, int]:
        count = len(self.titles)
        known = "airings" in self.titles.column_names
        airings = np.array(self.titles["airings"].to_pylist() if known else [0] * count, dtype=np.int64)
        order = np.argsort(-airings, kind="stable")[::-1]
        return {self.columns["show_key"][row]: int(row) for row in order}

    @cached_property
    def _channels(self) -> dict[str, list[str]]:
        known = "context" in self.titles.column_names
        contexts = self.titles["context"].to_pylist() if known else [[]] * len(self.titles)
        return channel_tokens(self.columns["channels"], contexts)
