"""Nearest-title search, used by `guidespace similar` and the served model.

Titles are compared by similarity vectors, which combine meaning, words and context (how a title airs). A
title that is not in the guide has no context, so it is compared with vectors of titles without context.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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
from tasks.search.query import Query, ResolvedQuery
from tasks.text.titles import parse_title

COLUMNS = ["title", "show_key", "labels", "channels"]
# may be absent in older Model folders
OPTIONAL_COLUMNS = ["raw_title", "airings", "context", "programme_kinds"]
SIMILARITY_ARRAYS = "similarity", "similarity_alone"  # .npy files: vectors of titles with and without context
MAX_NEIGHBOURS = 1000  # per query
CANDIDATES, SPARE = 4, 20  # 4 k + 20 titles are retrieved for a list of k; more if many are editions


class SearchError(ExpectedError, ValueError):
    """A query that cannot be answered; the message states the reason and the remedy."""


@dataclass(frozen=True)
class Neighbour:
    """A title similar to the query."""

    title: str
    cosine: float
    categories: list[str]
    channels: list[str]
    editions: int = 0  # other editions of the show among the nearest titles
    kinds: list[str] = field(default_factory=list)  # film, series, news, sport, children, music, other


def no_match_message(title: str) -> str:
    """Returns the message for a title without known tokens."""
    why = "none of its words or letter sequences is in the guide. Try another spelling"
    return f"nothing is known of the title {title!r}: {why}"


class TitleSearch:
    """Finds the nearest titles of the guide for any title.

    Args:
        encoder: Encoder of queries.
        titles: COLUMNS and, if available, OPTIONAL_COLUMNS of each title; ``context`` are its context tokens.
        vectors_with_context: Similarity vectors of titles with context, float32 (titles, dim).
        vectors_without_context: Similarity vectors of titles without context, float32 (titles, dim).
        dense: Dense inputs of titles (tasks/encoder/bag.py), (titles, features).
        search: Settings of the index: exact or approximate.
    """

    def __init__(
        self,
        encoder: TitleEncoder,
        titles: pa.Table,
        vectors_with_context: np.ndarray,
        vectors_without_context: np.ndarray,
        dense: np.ndarray,
        search: SearchSettings = AUTO,
    ) -> None:
        self.encoder, self.titles, self.search = encoder, titles, search
        self.vectors_with_context = vectors_with_context
        self.vectors_without_context = vectors_without_context
        self.dense = dense
        self.columns = titles.select(COLUMNS).to_pydict()

    @staticmethod
    def open(folder: Path | str, search: SearchSettings = AUTO) -> "TitleSearch":
        """Opens a Model folder: files of the encoder, titles.parquet and similarity vectors.

        Older folders contain vectors.npy instead of similarity vectors.
        """
        folder, encoder = Path(folder), TitleEncoder.open(folder)
        file = pq.ParquetFile(folder / "titles.parquet")
        titles = file.read([name for name in COLUMNS + OPTIONAL_COLUMNS if name in file.schema_arrow.names])
        if (folder / "similarity.npy").exists():
            full, alone, dense = (open_array(folder, name) for name in (*SIMILARITY_ARRAYS, "dense"))
        else:
            full = alone = open_array(folder, "vectors")
            dense = np.zeros((len(titles), 0), dtype=np.float32)
        return TitleSearch(encoder, titles, full, alone, dense, search)

    def similar(self, query: Query | str, k: int = 10) -> list[Neighbour]:
        """Returns the k (1 to 1000) nearest titles of other shows, nearest first, with editions grouped.

        Raises:
            SearchError: k is out of range, no token of the title is known (word, n-gram or meaning), the
                guide does not have the channel, the hour is invalid, or the library for approximate search
                is not installed.
        """
        (neighbours,) = self.similar_many([Query(query) if isinstance(query, str) else query], k)
        if isinstance(neighbours, SearchError):
            raise neighbours
        return neighbours

    def similar_many(
        self, queries: Sequence[Query], k: int = 10, among: "TitleSearch | None" = None
    ) -> list[list[Neighbour] | SearchError]:
        """Answers many queries at once; an entry is a SearchError if ``similar`` would raise it.

        ``among`` restricts the neighbours to the titles of another search (see ``only``).
        """
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MAX_NEIGHBOURS:
            raise SearchError(f"k must be a whole number from 1 to {MAX_NEIGHBOURS}, got {k!r}")
        answers: dict[int, list[Neighbour] | SearchError] = {}
        resolved: dict[int, ResolvedQuery] = {}
        for position, query in enumerate(queries):
            answers[position] = SearchError(no_match_message(query.title))
            try:
                resolved[position] = self.look_up(query)
            except SearchError as error:
                answers[position] = error
        vectors = dict(zip(resolved, self.embed(list(resolved.values())), strict=True))
        for aired in (True, False):
            same_kind = [position for position, title in resolved.items() if title.aired == aired]
            positions = [position for position in same_kind if vectors[position].any()]
            if positions:
                shows = [parse_title(queries[position].title).show_key for position in positions]
                stacked = np.array([vectors[position] for position in positions])
                neighbours = (among or self)._nearest(aired, stacked, shows, k)
                answers |= zip(positions, neighbours, strict=True)
        return list(answers.values())

    def only(self, shows: Mapping[str, str]) -> "TitleSearch":
        """Returns a search restricted to some shows.

        ``shows`` maps show keys to titles; the title is embedded if the guide does not have the show.
        """
        rows = np.array([self._rows.get(show, -1) for show in shows], dtype=np.int64)
        indexed, new = np.flatnonzero(rows >= 0), np.flatnonzero(rows < 0)
        vectors = np.zeros((2, len(rows), self.vectors_with_context.shape[1]), dtype=np.float32)
        for selected, table in zip(
            vectors, (self.vectors_with_context, self.vectors_without_context), strict=True
        ):
            selected[indexed] = table[rows[indexed]]
        titles = list(shows.values())
        vectors[:, new] = self.embed([self.look_up(Query(titles[position])) for position in new])
        records = [
            {name: column[row] for name, column in self.columns.items()}
            if row >= 0
            else {"title": parse_title(title).display, "show_key": show, "labels": [], "channels": []}
            for row, (show, title) in zip(rows.tolist(), shows.items(), strict=True)
        ]
        table = pa.Table.from_pylist(records, self.titles.select(COLUMNS).schema)
        no_dense = np.zeros((len(rows), self.dense.shape[1]), dtype=np.float32)
        return TitleSearch(self.encoder, table, vectors[0], vectors[1], no_dense, self.search)

    def look_up(self, query: Query) -> ResolvedQuery:
        """Matches a query with the most aired title of its show in the guide.

        Raises:
            SearchError: The guide does not have the channel, or the hour is invalid.
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
                raise SearchError(f"the hour must be a whole number from 0 to 23, got {query.hour!r}")
            tokens.append(f"hour:{int(query.hour)}")
        raw = query.title if row is None else self._optional_value("raw_title", row) or query.title
        if row is not None and not tokens:
            tokens = self._optional_value("context", row) or []
        return ResolvedQuery(query, row, raw, tokens)

    def embed(self, queries: Sequence[ResolvedQuery]) -> Float32[np.ndarray, "queries dim"]:
        """Computes similarity vectors, with context where ``aired``; zero where no token is known."""
        vectors = np.zeros((len(queries), self.vectors_with_context.shape[1]), dtype=np.float32)
        remaining = []
        for position, query in enumerate(queries):
            if query.row is not None and query.query == Query(query.query.title):
                vectors[position] = self.vectors_with_context[query.row]
            else:
                remaining.append(position)
        if remaining:
            rest = [queries[position] for position in remaining]
            titles, dense = [query.query.title for query in rest], self.dense_of(rest)
            alone, full = self.encoder.embed_with_context(titles, [query.context for query in rest], dense)
            aired = np.array([[query.aired] for query in rest])
            vectors[remaining] = self.encoder.similarity(dense, np.where(aired, full, alone))
        return vectors

    def dense_of(self, queries: Sequence[ResolvedQuery]) -> Float32[np.ndarray, "queries features"]:
        """Returns dense inputs: those of the guide, or computed ones for new or described titles."""
        dense = np.zeros((len(queries), self.dense.shape[1]), dtype=np.float32)
        remaining = []
        for position, resolved in enumerate(queries):
            if resolved.row is not None and not resolved.query.description:
                dense[position] = self.dense[resolved.row]
            else:
                remaining.append(position)
        if remaining:
            typed = [queries[position].query for position in remaining]
            titles, texts = [query.title for query in typed], [query.description for query in typed]
            dense[remaining] = self.encoder.dense(titles, texts)
        return dense

    def recall_note(self, k: int = 10, query: Query | None = None) -> str:
        """Describes the recall of the approximate search, measured on 200 titles; empty if it is exact.

        ``query`` determines which index is measured; None stands for a title of the guide.
        """
        index = self._index(query is None or self.look_up(query).aired)
        if isinstance(index, Exact):
            return ""
        vectors = self.vectors_with_context if index is self._full_index else self.vectors_without_context
        recall, count = query_recall(index, np.array(vectors), k + 1), min(200, len(vectors))
        return f"approximate search: recall {recall:.3f} of the {k} nearest, measured on {count} titles"

    def _nearest(
        self, aired: bool, vectors: np.ndarray, shows: Sequence[str], k: int
    ) -> list[list[Neighbour]]:
        results: list[list[Neighbour]] = [[] for _ in shows]
        waiting, count = list(range(len(shows))), CANDIDATES * k + SPARE
        while len(waiting):
            ids, cosines = self._index(aired).nearest(vectors[waiting], count)
            for position, rows, values in zip(waiting, ids.tolist(), cosines.tolist(), strict=True):
                results[position] = self._to_neighbours(shows[position], rows, values, k)
            incomplete = [position for position in waiting if len(results[position]) < k]
            waiting, count = incomplete if count < len(self.vectors_with_context) else [], 4 * count
        return results

    def _to_neighbours(
        self, show: str, rows: Sequence[int], values: Sequence[float], k: int
    ) -> list[Neighbour]:
        names, shows, labels, channels = (self.columns[name] for name in COLUMNS)
        near = [
            (row, value) for row, value in zip(rows, values, strict=True) if row >= 0 and shows[row] != show
        ]
        neighbours = []
        for fold in fold_editions([names[row] for row, _ in near])[:k]:
            row, value = near[fold.first]
            kinds = self._optional_value("programme_kinds", row) or []
            details = labels[row], channels[row], len(fold.others), kinds
            neighbours.append(Neighbour(names[row], round(value, 4), *details))
        return neighbours

    def replace_indexes_(self, replace: Callable[[Index], Index]) -> None:
        """Replaces the indexes by others of the same titles."""
        self._full_index, self._alone_index = replace(self._full_index), replace(self._alone_index)

    def _index(self, aired: bool) -> Index:
        return self._full_index if aired else self._alone_index

    @cached_property
    def _full_index(self) -> Index:
        return self._open(self.vectors_with_context)

    @cached_property
    def _alone_index(self) -> Index:
        return self._open(self.vectors_without_context)

    def _open(self, vectors: np.ndarray) -> Index:
        try:
            return self.search.open(np.asarray(vectors))
        except IndexMissing as error:
            raise SearchError(str(error)) from error

    def _optional_value(self, name: str, row: int) -> Any:
        return self.titles[name][row].as_py() if name in self.titles.column_names else None

    @cached_property
    def _rows(self) -> dict[str, int]:
        count = len(self.titles)
        has_airings = "airings" in self.titles.column_names
        airings = np.array(self.titles["airings"].to_pylist() if has_airings else [0] * count, dtype=np.int64)
        order = np.argsort(-airings, kind="stable")[::-1]
        return {self.columns["show_key"][row]: int(row) for row in order}

    @cached_property
    def _channels(self) -> dict[str, list[str]]:
        has_context = "context" in self.titles.column_names
        contexts = self.titles["context"].to_pylist() if has_context else [[]] * len(self.titles)
        return channel_tokens(self.columns["channels"], contexts)
