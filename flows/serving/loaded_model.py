"""Answers queries with the champion, the corrections of users and the programmes of this evening.

A ``LoadedModel`` is immutable. Every ten minutes, and when the model, the corrections or the guide change,
reloader.py creates a new LoadedModel. Requests in progress finish with the old LoadedModel.
"""

import datetime
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic_core import to_json

from flows.serving.answer_cache import AnswerCache
from flows.serving.batcher import Unavailable
from flows.serving.neighbours import neighbour_documents
from storage.home.corrections import Correction
from storage.home.guides import current_guide
from storage.home.workspace import Workspace
from storage.installed import is_installed
from storage.tracking import Champion
from tasks.enrich.errors import EnrichError
from tasks.enrich.explain import decide_many
from tasks.enrich.model import CategoryModel
from tasks.enrich.name_predictor import NamePredictor
from tasks.enrich.vocabulary import GuideVocabulary
from tasks.neighbours.codes import with_codes
from tasks.search.query import Query
from tasks.search.search import SearchError, TitleSearch
from tasks.text.titles import parse_title


class RequestKind(NamedTuple):
    """Endpoint with its options. Queries of requests with equal kinds can be computed together."""

    endpoint: Literal["similar", "vectors", "categories"]
    k: int = 0  # number of neighbours; only for "similar"
    tonight: bool = False  # only titles of this evening; only for "similar"


@dataclass(frozen=True)
class EveningSearch:
    """Search over the titles of this evening, with the airings (broadcasts) of each show."""

    search: TitleSearch | None  # None if the guide has no programme for this evening
    airings: Mapping[str, list[dict[str, Any]]]  # airings as JSON, by show key
    reason: str = ""  # why there is no search


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """Immutable model of a home, with all data on which its answers depend."""

    home: Path
    champion: Champion
    search: TitleSearch
    corrections: Mapping[str, Correction]
    now: datetime.datetime  # time of loading
    cache: AnswerCache = field(default_factory=AnswerCache)

    def answer(self, kind: RequestKind, queries: Sequence[Query]) -> list[bytes]:
        """Returns the answer to each query as JSON (schema.py), from the cache if possible.

        Raises:
            Unavailable: The guide has no programmes of this evening, or the model stores no votes.
        """
        cached_answers = {query: self.cached_answer(kind, query) for query in queries}
        answers = {query: answer for query, answer in cached_answers.items() if answer is not None}
        if missing_queries := [query for query in cached_answers if query not in answers]:
            for query, answer in zip(missing_queries, self._compute(kind, missing_queries), strict=True):
                answers[query] = to_json(answer)
                self.cache.put(self._cache_kind(kind), query, answers[query])
        return [answers[query] for query in queries]

    def cached_answer(self, kind: RequestKind, query: Query) -> bytes | None:
        """Returns the cached answer to a query as JSON, or None if it is not cached."""
        return self.cache.get(self._cache_kind(kind), query)

    def _cache_kind(self, kind: RequestKind) -> tuple[RequestKind, datetime.datetime | None]:
        """Returns the kind for the cache key, with the time of loading if answers depend on the evening."""
        return kind, self.now if kind.tonight else None

    def _compute(self, kind: RequestKind, queries: Sequence[Query]) -> list[dict[str, Any]]:
        if kind.endpoint == "similar":
            return self._answer_similar(queries, kind.k, kind.tonight)
        return (
            self._answer_vectors(queries) if kind.endpoint == "vectors" else self._answer_categories(queries)
        )

    def _answer_similar(self, queries: Sequence[Query], k: int, tonight: bool) -> list[dict[str, Any]]:
        evening_search = self.evening.search if tonight else None
        if tonight and evening_search is None:
            raise Unavailable(self.evening.reason)
        answers: list[dict[str, Any]] = []
        for query, result in zip(queries, self.search.similar_many(queries, k, evening_search), strict=True):
            is_error = isinstance(result, SearchError)
            neighbours = None if is_error else neighbour_documents(self.corrections, result)
            if tonight:
                for neighbour in neighbours or ():
                    show_key = parse_title(neighbour["title"]).show_key
                    neighbour["airings"] = self.evening.airings[show_key]
            reason = str(result) if is_error else None
            answers.append({"title": query.title, "neighbours": neighbours, "reason": reason})
        return answers

    def _answer_vectors(self, queries: Sequence[Query]) -> list[dict[str, Any]]:
        answers = []
        for query in queries:
            try:
                resolved_query = self.search.look_up(query)
                vector, aired = self.search.embed([resolved_query])[0], resolved_query.has_context
                reason = None if vector.any() else f"nothing is known of the title {query.title!r}"
            except SearchError as error:
                vector, aired, reason = None, False, str(error)
            vector_values = None if vector is None or reason else vector.tolist()
            answers.append({"title": query.title, "vector": vector_values, "aired": aired, "reason": reason})
        return answers

    def _answer_categories(self, queries: Sequence[Query]) -> list[dict[str, Any]]:
        model, predictor = self.category_model
        titles = [query.title for query in queries]
        answers = []
        for title, result in zip(titles, decide_many(model, titles, predictor), strict=True):
            is_error = isinstance(result, SearchError)
            decision, reason = (None, str(result)) if is_error else (asdict(result), None)
            answers.append({"title": title, "decision": decision, "reason": reason})
        return answers

    @cached_property
    def category_model(self) -> tuple[CategoryModel, NamePredictor]:
        """The model that predicts categories, and the predictor that calibrates their confidence."""
        try:
            model = CategoryModel(self.champion.folder, self.corrections)
        except EnrichError as error:
            raise Unavailable(str(error)) from error
        model.encoder = self.search.encoder  # so that the encoder is not loaded twice
        return model, model.name_predictor(GuideVocabulary({}), 0)

    @cached_property
    def evening(self) -> EveningSearch:
        """The search over the titles that start this evening, after ``now``. Created at the first use."""
        from storage.catalogue.evening import upcoming_programmes  # imports DuckDB: not at module level
        from storage.catalogue.feeds import to_naive_utc
        from tasks.tonight.evening import evening_interval
        from tasks.tonight.programmes import group_programmes

        guide = current_guide(Workspace(self.home, create=False))
        if guide is None:
            return EveningSearch(
                None, {}, f"{self.home} has no guide; run `guidespace ingest --feed …` first"
            )
        evening_begin, evening_end = map(to_naive_utc, evening_interval(self.now, None, None, None))
        shows = group_programmes(upcoming_programmes(self.home / guide.path, evening_begin, evening_end))
        if not shows:
            interval_text = f"{evening_begin:%F %H:%M} to {evening_end:%F %H:%M} UTC"
            advice = "run `guidespace ingest --feed …` with a newer guide"
            return EveningSearch(None, {}, f"the guide has no programme from {interval_text}; {advice}")
        airings = {
            show.show_key: [
                {
                    "start": airing.start.isoformat(),
                    "stop": airing.stop and airing.stop.isoformat(),
                    "channel": airing.channel,
                }
                for programme in show.programmes
                for airing in (programme, *programme.also)
            ]
            for show in shows
        }
        titles = {show.show_key: show.programmes[0].title for show in shows}
        return EveningSearch(self.search.restrict_to(titles), airings)

    def warm_up(self) -> None:
        """Answers sample queries, so that the first requests do not wait until files are loaded.

        In a light installation, which is for machines with little memory, the sentence encoder (140 MB) is
        loaded only by the first request for a title that the guide lacks.
        """
        self.search.replace_indexes_(with_codes)
        titles = self.search.columns["title"][:1]
        unknown_titles = ["A Film that No Guide Has"] if is_installed("torch") else []
        self.answer(RequestKind("similar", 1), [*map(Query, [*titles, *unknown_titles])])
        with suppress(Unavailable):
            self.answer(RequestKind("categories"), [*map(Query, titles)])
        self.evening  # noqa: B018
