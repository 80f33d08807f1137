"""The model that serves, opened, with what a person corrected and what airs this evening; and its answers.

A ``Space`` never changes. Where another model serves, the corrections or the guide change, or ten minutes
have passed, another one is made beside it, and one reference is replaced: requests that have begun end with
the one that they began with.
"""

import datetime
import gc
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic_core import to_json

from flows.cli.explain import neighbour_documents
from flows.serving.batches import Unavailable
from flows.serving.kept import Kept
from storage.home.corrections import CORRECTIONS, Correction, read_corrections
from storage.home.guides import current_guide
from storage.home.workspace import HomeError, Workspace
from storage.home.zones import home_zone
from storage.tracking import Champion, Registry
from tasks.enrich.errors import EnrichError
from tasks.enrich.explain import decide_many
from tasks.enrich.model import Ballot, CategoryModel
from tasks.enrich.vocabulary import GuideVocabulary
from tasks.neighbours.codes import with_codes
from tasks.search.query import Query
from tasks.search.search import SearchError, TitleSearch
from tasks.text.titles import parse_title

LOOKS_SECONDS = 2.0  # between two looks at what serves
EVENING = datetime.timedelta(minutes=10)  # after which it is read again, without what has begun


class Kind(NamedTuple):
    """What is asked of titles."""

    form: Literal["similar", "vectors", "categories"]
    k: int = 0
    tonight: bool = False


@dataclass(frozen=True)
class Coming:
    """A search over the titles of this evening, and the airings of each show; or why there is none."""

    search: TitleSearch | None
    airings: Mapping[str, list[dict[str, Any]]]
    reason: str = ""


class Seen(NamedTuple):
    """By what a Space is out of date."""

    model: tuple[str, str]  # version and digest
    corrected: int  # when corrections.json was written
    guide: str  # path of the current one
    slot: int  # of ten minutes


@dataclass(frozen=True, eq=False)
class Space:
    """A model, opened; see the module."""

    home: Path
    champion: Champion
    search: TitleSearch
    corrections: Mapping[str, Correction]
    now: datetime.datetime
    kept: Kept = field(default_factory=Kept)

    def answer(self, kind: Kind, queries: Sequence[Query]) -> list[bytes]:
        """Answers as JSON (schema.py); those that were given before are kept.

        Raises:
            Unavailable: The home has no programmes of this evening, or the model keeps no votes.
        """
        found = {query: self.find(kind, query) or b"" for query in queries}
        if new := [query for query, answer in found.items() if not answer]:
            for query, answer in zip(new, self._compute(kind, new), strict=True):
                found[query] = to_json(answer)
                self.kept.add(self._key(kind), query, found[query])
        return [found[query] for query in queries]

    def find(self, kind: Kind, query: Query) -> bytes | None:
        """The answer, if it was given before and is kept."""
        return self.kept.find(self._key(kind), query)

    def _key(self, kind: Kind) -> tuple[Kind, datetime.datetime | None]:
        """Answers on this evening are of this Space, others of all that share what is kept."""
        return kind, self.now if kind.tonight else None

    def _compute(self, kind: Kind, queries: Sequence[Query]) -> list[dict[str, Any]]:
        if kind.form == "similar":
            return self._similar(queries, kind.k, kind.tonight)
        return self._vectors(queries) if kind.form == "vectors" else self._categories(queries)

    def _similar(self, queries: Sequence[Query], k: int, tonight: bool) -> list[dict[str, Any]]:
        among = self.coming.search if tonight else None
        if tonight and among is None:
            raise Unavailable(self.coming.reason)
        answers: list[dict[str, Any]] = []
        for query, found in zip(queries, self.search.similar_many(queries, k, among), strict=True):
            failed = isinstance(found, SearchError)
            near = None if failed else neighbour_documents(self.corrections, found)
            if tonight:
                for one in near or ():
                    one["airings"] = self.coming.airings[parse_title(one["title"]).show_key]
            answers.append(
                {"title": query.title, "neighbours": near, "reason": str(found) if failed else None}
            )
        return answers

    def _vectors(self, queries: Sequence[Query]) -> list[dict[str, Any]]:
        answers = []
        for query in queries:
            try:
                asked = self.search.look_up(query)
                vector, aired = self.search.embed([asked])[0], asked.aired
                reason = None if vector.any() else f"nothing is known of the title {query.title!r}"
            except SearchError as error:
                vector, aired, reason = None, False, str(error)
            numbers = None if vector is None or reason else vector.tolist()
            answers.append({"title": query.title, "vector": numbers, "aired": aired, "reason": reason})
        return answers

    def _categories(self, queries: Sequence[Query]) -> list[dict[str, Any]]:
        model, ballot = self.categories
        answers = []
        for query, found in zip(
            queries, decide_many(model, [query.title for query in queries], ballot), strict=True
        ):
            failed = isinstance(found, SearchError)
            decision, reason = (None, str(found)) if failed else (asdict(found), None)
            answers.append({"title": query.title, "decision": decision, "reason": reason})
        return answers

    @cached_property
    def categories(self) -> tuple[CategoryModel, Ballot]:
        """What votes on categories."""
        try:
            model = CategoryModel(self.champion.folder, self.corrections)
        except EnrichError as error:
            raise Unavailable(str(error)) from error
        model.encoder = self.search.encoder  # opened once
        return model, model.ballot(GuideVocabulary({}), 0)

    @cached_property
    def coming(self) -> Coming:
        """The programmes that begin this evening, from ``now`` on."""
        from flows.cli.tonight import evening_of  # DuckDB: not before the first answer
        from storage.catalogue.evening import upcoming_programmes
        from storage.catalogue.feeds import utc
        from tasks.tonight.programmes import fold_programmes

        guide = current_guide(Workspace(self.home, create=False))
        if guide is None:
            return Coming(None, {}, f"{self.home} holds no guide; run `guidespace ingest --feed …` first")
        begin, end = map(utc, evening_of(self.now, None, None, None))
        shows = fold_programmes(upcoming_programmes(self.home / guide.path, begin, end))
        if not shows:
            hours = f"{begin:%F %H:%M} to {end:%F %H:%M} UTC"
            advice = "run `guidespace ingest --feed …` with a newer one"
            return Coming(None, {}, f"the guide has no programme from {hours}; {advice}")
        airings = {
            show.show_key: [
                {
                    "start": one.start.isoformat(),
                    "stop": one.stop and one.stop.isoformat(),
                    "channel": one.channel,
                }
                for programme in show.programmes
                for one in (programme, *programme.also)
            ]
            for show in shows
        }
        titles = {show.show_key: show.programmes[0].title for show in shows}
        return Coming(self.search.only(titles), airings)

    def prepare(self) -> None:
        """Computes what the first requests would wait for."""
        self.search.replace_indexes_(with_codes)
        titles = self.search.columns["title"][:1]
        self.answer(Kind("similar", 1), [*map(Query, titles), Query("A Film that No Guide Has")])
        with suppress(Unavailable):
            self.answer(Kind("categories"), [*map(Query, titles)])
        self.coming  # noqa: B018


class Served:
    """The Space that answers, and a thread that replaces it."""

    def __init__(self, home: Path, name: str | None = None) -> None:
        self.registry = Registry(home, name=name)
        self.home, self.name = self.registry.home, self.registry.name  # read from home.json: once
        self.reloads = self.failures = 0
        self._seen, champion = self._look()
        self.space = self._open(champion)
        self._ended, self._failure, self._is_prepared = threading.Event(), "", False

    def answer(self, kind: Kind, queries: Sequence[Query]) -> list[tuple[Champion, bytes]]:
        """Answers (``Space.answer``), each with the model that gave it."""
        space = self.space
        return [(space.champion, answer) for answer in space.answer(kind, queries)]

    def kept(self, kind: Kind, queries: Sequence[Query]) -> list[tuple[Champion, bytes]]:
        """Answers that were given before; none where one of them was not."""
        space = self.space
        found = [space.find(kind, query) for query in queries]
        return [(space.champion, answer) for answer in found if answer] if None not in found else []

    @property
    def is_stale(self) -> bool:
        """Whether the last look-up or load of what should serve failed."""
        return bool(self._failure)

    def watch(self) -> None:
        """Looks for another model, corrections or guide until ``end``; a failure is reported and retried."""
        while not self._ended.is_set():
            try:
                self.look()
                self._failure = ""
            except Exception as error:  # what serves goes on: MLflow's database may be locked, a disk full
                self.failures += 1
                if (failure := str(error) or repr(error)) != self._failure:
                    self._failure = failure
                    print(f"guidespace serve: not reloaded: {failure}", file=sys.stderr, flush=True)
            self._ended.wait(LOOKS_SECONDS)

    def end(self) -> None:
        """Ends ``watch``."""
        self._ended.set()

    def look(self) -> None:
        """Replaces the Space if it is out of date; prepares the first one."""
        seen, champion = self._look()
        if seen == self._seen and self._is_prepared:
            return
        space = self.space if seen == self._seen else self._open(champion)
        space.prepare()
        if seen.model != self._seen.model:
            self.reloads += 1
            print(f"guidespace serve: version {champion.version} serves now", flush=True)
        self.space, self._seen, self._is_prepared = space, seen, True
        gc.unfreeze()
        gc.collect()
        gc.freeze()  # a collection would go through all titles, which stay

    def _look(self) -> tuple[Seen, Champion]:
        champion = self.registry.champion()
        if champion is None:
            advice = "run `guidespace nightly --feed …` first"
            raise HomeError(f"{self.name} in {self.registry.in_shell} has no champion; {advice}")
        file = self.home / CORRECTIONS
        corrected = file.stat().st_mtime_ns if file.exists() else 0
        guide = current_guide(Workspace(self.home, create=False))
        path = guide.path if guide else ""
        slot = int(_now(self.home).timestamp() // EVENING.total_seconds())
        return Seen((champion.version, champion.digest), corrected, path, slot), champion

    def _open(self, champion: Champion) -> Space:
        """A Space; with the opened search and the kept answers of the present one where they still hold."""
        before: Space | None = getattr(self, "space", None)
        corrections = read_corrections(self.home)
        if before is None or before.champion != champion:
            return Space(self.home, champion, TitleSearch.open(champion.folder), corrections, _now(self.home))
        kept = before.kept if before.corrections == corrections else Kept()
        return Space(self.home, champion, before.search, corrections, _now(self.home), kept)


def _now(home: Path) -> datetime.datetime:
    return datetime.datetime.now(home_zone(home))
