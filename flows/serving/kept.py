"""Answers that were given before, within a bound in bytes: one with k = 1000 is a hundred times another."""

import sys
from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock

from tasks.search.query import Query

MOST_BYTES = 48 << 20  # some 20,000 answers of ten neighbours
BESIDE = 500  # bytes that a key and a place take beside their texts


class Kept:
    """Answers by what was asked, those that were asked for last."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._left = most_bytes
        self._answers: OrderedDict[tuple[Hashable, Query], bytes] = OrderedDict()
        self._lock = Lock()  # the event loop looks while the thread that computes adds

    def find(self, kind: Hashable, query: Query) -> bytes | None:
        """The answer, if it is here."""
        key = kind, query
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
            return self._answers.get(key)

    def add(self, kind: Hashable, query: Query, answer: bytes) -> None:
        """Keeps an answer, and drops those that were asked for longest ago."""
        key = kind, query
        with self._lock:
            if key in self._answers:
                return
            self._answers[key] = answer
            self._left -= _size(query, answer)
            while self._left < 0:
                (_, query), answer = self._answers.popitem(last=False)
                self._left += _size(query, answer)


def _size(query: Query, answer: bytes) -> int:
    return BESIDE + sum(map(sys.getsizeof, (query.title, query.description, answer)))
