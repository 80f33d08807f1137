"""Finds the titles nearest to a title, for the command `guidespace similar` and for the served model.

Titles are compared by similarity vectors, which combine the meaning, the words and the *context* of a title:
the channels, hours and weekdays on which it airs. Each title of the guide has two vectors, one with and one
without context. A title that is not in the guide has no context, so it is compared with the vectors without
context. Shows are identified by their *show key*, a title without additions such as "(New)".
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
from tasks.neighbours.index import AUTO, Index, IndexMissing, SearchSettings, query_recall
from tasks.search.airing import UnknownChannel, channel_tokens, find_channel
from tasks.search.editions import group_editions
from tasks.search.query import Query, ResolvedQuery
from tasks.search.text_lists import TextLists
from tasks.text.titles import parse_title

COLUMNS = ["title", "show_key", "labels", "channels"]
OPTIONAL_COLUMNS = ["raw_title", "airings", "context", "programme_kinds"]  # absent in models of old versions
SIMILARITY_ARRAYS = "similarity", "similarity_alone"  # .npy files: vectors of titles with and without context
MAX_NEIGHBOURS = 1000  # maximum number of neighbours of a query
# For k titles, 4 k + 20 candidates are retrieved first, and more if many of them are editions of one show.
CANDIDATES_PER_NEIGHBOUR, EXTRA_CANDIDATES = 4, 20


class SearchError(ExpectedError, ValueError):
    """Error: a query cannot be answered. The message states the reason and the remedy."""


@dataclass(frozen=True)
class Neighbour:
    """Title of the guide that is similar to the query."""

    title: str
    cosine: float  # cosine similarity with the query, at most 1
    categories: list[str]
    channels: list[str]  # names of channels that air the title
    editions: int = 0  # number of other editions of the same show among the nearest titles
    kinds: list[str] = field(default_factory=list)  # kinds of programme: film, series, news, sport …


def no_match_message(title: str) -> str:
    """Returns the error message for a title for which the model has no vector."""
    reason = "none of its words or letter sequences is in the guide. Try another spelling"
    return f"nothing is known of the title {title!r}: {reason}"


class TitleSearch:
    """Finds the titles of the guide that are nearest to any title, by the cosine of similarity vectors.

    Args:
        encoder: Computes the vectors of queries.
        titles: One row per title of the guide, with COLUMNS and, if available, OPTIONAL_COLUMNS.
        vectors_with_context: Similarity vectors that include channels and hours, float32 (titles, dim).
        vectors_without_context: Similarity vectors of the text alone, float32 (titles, dim).
        features: Sentence and description vectors of titles (tasks/encoder/bag.py), (titles, features).
        search: Settings of the index: exact or approximate search.
    """

    def __init__(
        self,
        encoder: TitleEncoder,
        titles: pa.Table,
        vectors_with_context: np.ndarray,
        vectors_without_context: np.ndarray,
        features: np.ndarray,
        search: SearchSettings = AUTO,
    ) -> None:
        self.encoder, self.titles, self.search = encoder, titles, search
        self.vectors_with_context = vectors_with_context
        self.vectors_without_context, self.features = vectors_without_context, features
        self.columns: dict[str, Sequence[Any]] = titles.select(COLUMNS[:2]).to_pydict()
        self.columns |= {name: TextLists(titles[name]) for name in COLUMNS[2:]}
        has_kinds = "programme_kinds" in titles.column_names
        self._kinds = TextLists(titles["programme_kinds"]) if has_kinds else [[]] * len(titles)
        self._vectors = {True: vectors_with_context, False: vectors_without_context}
        self._indexes: dict[bool, Index] = {}  # by whether the vectors include context; built when needed

    @staticmethod
    def open(folder: Path | str, search: SearchSettings = AUTO) -> "TitleSearch":
        """Opens the folder of a model. Models of older versions have only one vector per title."""
        folder, encoder = Path(folder), TitleEncoder.open(folder)
        file = pq.ParquetFile(folder / "titles.parquet")
        titles = file.read([name for name in COLUMNS + OPTIONAL_COLUMNS if name in file.schema_arrow.names])
        if (folder / "similarity.npy").exists():
            with_context, without_context = (open_array(folder, name) for name in SIMILARITY_ARRAYS)
            features = open_array(folder, "dense")
        else:
            with_context = without_context = open_array(folder, "vectors")
            features = np.zeros((len(titles), 0), dtype=np.float32)
        return TitleSearch(encoder, titles, with_context, without_context, features, search)

    def similar(self, query: Query | str, k: int = 10) -> list[Neighbour]:
        """Returns the k (1 to 1000) nearest titles of other shows. The editions of a show are one entry.

        Raises:
            SearchError: k is out of range, the model has no vector for the title, the guide does not have
                the channel, the hour is invalid, or the library for approximate search is not installed.
        """
        (neighbours,) = self.similar_many([Query(query) if isinstance(query, str) else query], k)
        if isinstance(neighbours, SearchError):
            raise neighbours
        return neighbours

    def similar_many(
        self, queries: Sequence[Query], k: int = 10, among: "TitleSearch | None" = None
    ) -> list[list[Neighbour] | SearchError]:
        """Returns, for each query, the result of ``similar``, or the SearchError that would be raised.

        If ``among`` is a search that is restricted to some shows, only titles of these shows are returned.
        """
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MAX_NEIGHBOURS:
            raise SearchError(f"k must be a whole number from 1 to {MAX_NEIGHBOURS}, got {k!r}")
        answers: dict[int, list[Neighbour] | SearchError] = {}
        resolved_queries: dict[int, ResolvedQuery] = {}
        for position, query in enumerate(queries):
            answers[position] = SearchError(no_match_message(query.title))
            try:
                resolved_queries[position] = self.look_up(query)
            except SearchError as error:
                answers[position] = error
        vectors = dict(zip(resolved_queries, self.embed(list(resolved_queries.values())), strict=True))
        for with_context in (True, False):
            positions = [
                index for index, query in resolved_queries.items() if query.has_context == with_context
            ]
            if positions := [position for position in positions if vectors[position].any()]:
                shows = [parse_title(queries[position].title).show_key for position in positions]
                stacked_vectors = np.array([vectors[position] for position in positions])
                neighbours = (among or self)._nearest_neighbours(with_context, stacked_vectors, shows, k)
                answers |= zip(positions, neighbours, strict=True)
        return list(answers.values())

    def restrict_to(self, shows: Mapping[str, str]) -> "TitleSearch":
        """Returns a search that finds only the titles of some shows.

        ``shows`` maps show keys to titles. If the guide does not have a show, its title is encoded.
        """
        rows = np.array([self._row_by_show.get(show, -1) for show in shows], dtype=np.int64)
        in_guide, not_in_guide = np.flatnonzero(rows >= 0), np.flatnonzero(rows < 0)
        vectors = np.zeros((2, len(rows), self.vectors_with_context.shape[1]), dtype=np.float32)
        vectors[0, in_guide] = self.vectors_with_context[rows[in_guide]]
        vectors[1, in_guide] = self.vectors_without_context[rows[in_guide]]
        titles = list(shows.values())
        vectors[:, not_in_guide] = self.embed([self.look_up(Query(titles[row])) for row in not_in_guide])
        records = [
            {name: column[row] for name, column in self.columns.items()}
            if row >= 0
            else {"title": parse_title(title).display, "show_key": show, "labels": [], "channels": []}
            for row, (show, title) in zip(rows.tolist(), shows.items(), strict=True)
        ]
        table = pa.Table.from_pylist(records, self.titles.select(COLUMNS).schema)
        no_features = np.zeros((len(rows), self.features.shape[1]), dtype=np.float32)
        return TitleSearch(self.encoder, table, vectors[0], vectors[1], no_features, self.search)

    def look_up(self, query: Query) -> ResolvedQuery:
        """Matches a query with a title of the guide: of the titles of the show, the one that airs most often.

        Raises:
            SearchError: The guide does not have the channel, or the hour is invalid.
        """
        row = self._row_by_show.get(parse_title(query.title).show_key)
        tokens = []
        if query.channel:
            try:
                tokens += find_channel(self._channel_tokens, query.channel)
            except UnknownChannel as error:
                raise SearchError(str(error)) from error
        if query.hour is not None:
            if query.hour not in range(24):
                raise SearchError(f"the hour must be a whole number from 0 to 23, got {query.hour!r}")
            tokens.append(f"hour:{int(query.hour)}")
        raw_title = query.title if row is None else self._optional_value("raw_title", row) or query.title
        if row is not None and not tokens:
            tokens = self._optional_value("context", row) or []
        return ResolvedQuery(query, row, raw_title, tokens)

    def embed(self, queries: Sequence[ResolvedQuery]) -> Float32[np.ndarray, "queries dim"]:
        """Computes the similarity vector of each query; zero if the model has no vector for the title."""
        vectors = np.zeros((len(queries), self.vectors_with_context.shape[1]), dtype=np.float32)
        positions = []  # of the queries whose vectors are not stored
        for position, query in enumerate(queries):
            if query.row is not None and query.query == Query(query.query.title):
                vectors[position] = self.vectors_with_context[query.row]
            else:
                positions.append(position)
        if positions:
            queries = [queries[position] for position in positions]
            titles, contexts = [query.query.title for query in queries], [query.context for query in queries]
            features = self.query_features(queries)
            without_context, with_context = self.encoder.embed_with_context(titles, contexts, features)
            title_vectors = np.where(
                [[query.has_context] for query in queries], with_context, without_context
            )
            vectors[positions] = self.encoder.similarity(features, title_vectors)
        return vectors

    def query_features(self, queries: Sequence[ResolvedQuery]) -> Float32[np.ndarray, "queries features"]:
        """Returns the sentence and description vectors of queries; computes vectors that are not stored."""
        features = np.zeros((len(queries), self.features.shape[1]), dtype=np.float32)
        new_texts: dict[int, Query] = {}  # queries whose features are not stored, by position
        for position, resolved in enumerate(queries):
            if resolved.row is not None and not resolved.query.description:
                features[position] = self.features[resolved.row]
            else:
                new_texts[position] = resolved.query
        if new_texts:
            titles, descriptions = zip(*((text.title, text.description) for text in new_texts.values()))
            features[list(new_texts)] = self.encoder.sentence_features(titles, descriptions)
        return features

    def recall_note(self, k: int = 10, query: Query | None = None) -> str:
        """Returns a sentence on the recall of the approximate search, measured on 200 titles; "" if exact.

        The recall is that of the index in which ``query`` is searched; None: the index with context.
        """
        with_context = query is None or self.look_up(query).has_context
        index = self._index(with_context)
        if index.is_exact:
            return ""
        vectors = self._vectors[with_context]
        recall, count = query_recall(index, np.array(vectors), k + 1), min(200, len(vectors))
        return f"approximate search: recall {recall:.3f} of the {k} nearest, measured on {count} titles"

    def _nearest_neighbours(
        self, with_context: bool, vectors: np.ndarray, shows: Sequence[str], k: int
    ) -> list[list[Neighbour]]:
        """Returns k neighbours of each vector. Retrieves more candidates until each list has k neighbours."""
        results: list[list[Neighbour]] = [[] for _ in shows]
        incomplete, count = list(range(len(shows))), CANDIDATES_PER_NEIGHBOUR * k + EXTRA_CANDIDATES
        while incomplete:
            ids, cosines = self._index(with_context).nearest(vectors[incomplete], count)
            for position, rows, values in zip(incomplete, ids.tolist(), cosines.tolist(), strict=True):
                results[position] = self._group_candidates(shows[position], rows, values, k)
            too_short = [position for position in incomplete if len(results[position]) < k]
            incomplete, count = too_short if count < len(self.vectors_with_context) else [], 4 * count
        return results

    def _group_candidates(
        self, excluded_show: str, rows: Sequence[int], cosines: Sequence[float], k: int
    ) -> list[Neighbour]:
        """Groups candidates (rows, nearest first) by show; returns at most k, not ``excluded_show``."""
        names, shows, labels, channels = (self.columns[name] for name in COLUMNS)
        pairs = zip(rows, cosines, strict=True)
        candidates = [(row, cosine) for row, cosine in pairs if row >= 0 and shows[row] != excluded_show]
        return [
            Neighbour(
                title=names[row],
                cosine=round(cosine, 4),
                categories=labels[row],
                channels=channels[row],
                editions=len(group.others),
                kinds=self._kinds[row],
            )
            for group in group_editions([names[row] for row, _ in candidates])[:k]
            for row, cosine in [candidates[group.first]]
        ]

    def replace_indexes_(self, replace: Callable[[Index], Index]) -> None:
        """Replaces each of the two indexes by ``replace(index)``, an index of the same titles."""
        for with_context in (True, False):
            self._indexes[with_context] = replace(self._index(with_context))

    def _index(self, with_context: bool) -> Index:
        if with_context not in self._indexes:
            try:
                self._indexes[with_context] = self.search.open(np.asarray(self._vectors[with_context]))
            except IndexMissing as error:
                raise SearchError(str(error)) from error
        return self._indexes[with_context]

    def _optional_value(self, name: str, row: int) -> Any:
        return self.titles[name][row].as_py() if name in self.titles.column_names else None

    def _optional_column(self, name: str, default: Any) -> list[Any]:
        names = self.titles.column_names
        return self.titles[name].to_pylist() if name in names else [default] * len(self.titles)

    @cached_property
    def _row_by_show(self) -> dict[str, int]:
        """Maps the key of each show to the row of its title that airs most often."""
        order = np.argsort(np.negative(self._optional_column("airings", 0)), kind="stable")[::-1]
        return {self.columns["show_key"][row]: row for row in order.tolist()}

    @cached_property
    def _channel_tokens(self) -> dict[str, list[str]]:
        return channel_tokens(self.columns["channels"], self._optional_column("context", []))
