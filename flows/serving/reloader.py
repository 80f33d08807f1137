"""Loads the champion, and loads it again when the champion, the corrections of users or the guide change."""

import datetime
import gc
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from flows.champion import open_models, require_champion
from flows.serving.answer_cache import AnswerCache
from flows.serving.loaded_model import LoadedModel, RequestKind
from storage.home.corrections import CORRECTIONS, read_corrections
from storage.home.guides import current_guide
from storage.home.workspace import Workspace
from storage.home.zones import home_zone
from storage.tracking import Champion
from tasks.search.query import Query
from tasks.search.search import TitleSearch

POLL_SECONDS = 2.0  # pause between two checks for changes
EVENING_SECONDS = 600  # seconds after which programmes that have begun are removed from the evening's search


class Fingerprint(NamedTuple):
    """State of a home. A LoadedModel is out of date if a value of its fingerprint has changed."""

    champion: Champion
    corrections_mtime_ns: int
    guide_path: str
    time_slot: int  # current time in units of EVENING_SECONDS


class ModelReloader:
    """Holds the current LoadedModel, which ``watch`` replaces in a thread when it is out of date.

    Args:
        home: Folder of the home.
        model: Model to serve instead of the home's champion (see ``open_models``).
    """

    def __init__(self, home: str | Path, model: str | None = None) -> None:
        self._warnings: list[str] = []  # warnings of the last check for a new model
        self.models = open_models(home, model, self._warnings.append)
        self.home, self.name = self.models.home, self.models.name  # read from home.json only once
        self.reloads = self.failures = 0
        self._fingerprint = self._read_fingerprint()
        self.current = self._load(self._fingerprint.champion, None)
        self._stop_event, self._failure, self._is_warm = threading.Event(), "", False

    def answer(self, kind: RequestKind, queries: Sequence[Query]) -> list[tuple[Champion, bytes]]:
        """Returns (champion, answer) for each query: the model that answered, and the answer as JSON."""
        model = self.current
        return [(model.champion, answer) for answer in model.answer(kind, queries)]

    def cached_answers(self, kind: RequestKind, queries: Sequence[Query]) -> list[tuple[Champion, bytes]]:
        """Returns (champion, answer) for each query if all answers are cached, else an empty list."""
        model = self.current
        answers = [model.cached_answer(kind, query) for query in queries]
        return [(model.champion, answer) for answer in answers if answer] if None not in answers else []

    @property
    def is_stale(self) -> bool:
        """Whether the last check for a new model, or the last attempt to load it, failed."""
        return bool(self._failure)

    def watch(self) -> None:
        """Calls ``reload_if_stale`` every POLL_SECONDS until ``stop`` is called. Prints failures."""
        while not self._stop_event.is_set():
            self._warnings.clear()
            try:
                self.reload_if_stale()
                failure = "; ".join(self._warnings)
            except Exception as error:  # if MLflow is locked or the disk is full, the old model serves on
                failure = str(error) or repr(error)
            self.failures += bool(failure)
            if failure and failure != self._failure:
                print(f"guidespace serve: reload failed: {failure}", file=sys.stderr, flush=True)
            self._failure = failure
            self._stop_event.wait(POLL_SECONDS)

    def stop(self) -> None:
        """Makes ``watch`` return."""
        self._stop_event.set()

    def reload_if_stale(self) -> None:
        """Replaces ``current`` if it is out of date. The first call also warms up the model."""
        fingerprint = self._read_fingerprint()
        champion = fingerprint.champion
        is_stale = fingerprint != self._fingerprint
        if self._is_warm and not is_stale:
            return
        model = self._load(champion, self.current) if is_stale else self.current
        model.warm_up()
        if champion != self._fingerprint.champion:
            self.reloads += 1
            print(f"guidespace serve: now serving version {champion.version}", flush=True)
        self.current, self._fingerprint, self._is_warm = model, fingerprint, True
        gc.unfreeze()
        gc.collect()
        gc.freeze()  # otherwise, each collection would traverse all titles

    def _read_fingerprint(self) -> Fingerprint:
        champion = require_champion(self.models)
        file = self.home / CORRECTIONS
        corrections_mtime = file.stat().st_mtime_ns if file.exists() else 0
        guide = current_guide(Workspace(self.home, create=False))
        time_slot = int(_now_in_home_zone(self.home).timestamp() // EVENING_SECONDS)
        return Fingerprint(champion, corrections_mtime, guide.path if guide else "", time_slot)

    def _load(self, champion: Champion, previous: LoadedModel | None) -> LoadedModel:
        """Loads a model. Reuses the search and the cache of the previous LoadedModel if they are valid."""
        corrections, now = read_corrections(self.home), _now_in_home_zone(self.home)
        if previous is None or previous.champion != champion:
            return LoadedModel(self.home, champion, TitleSearch.open(champion.folder), corrections, now)
        cache = previous.cache if previous.corrections == corrections else AnswerCache()
        return LoadedModel(self.home, champion, previous.search, corrections, now, cache)


def _now_in_home_zone(home: Path) -> datetime.datetime:
    return datetime.datetime.now(home_zone(home))
