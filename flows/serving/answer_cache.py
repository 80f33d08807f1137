"""Caches serialized answers in memory, and evicts the answers that were least recently used.

The limit is in bytes, because an answer with 1,000 neighbours is a hundred times as large as an answer with
ten neighbours.
"""

import sys
from collections.abc import Hashable
from contextlib import suppress
from threading import Lock

from cachetools import LRUCache

from tasks.search.query import Query

MAX_BYTES = 48 << 20  # about 20,000 answers with ten neighbours
ENTRY_OVERHEAD = 500  # bytes per entry in addition to its strings


class AnswerCache:
    """Least-recently-used cache that maps (kind, query) to a serialized answer.

    The kind is an endpoint with its options (loaded_model.RequestKind).
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._entries: LRUCache[tuple[Hashable, Query], tuple[Query, bytes]]
        self._entries = LRUCache(max_bytes, _entry_bytes)
        self._lock = Lock()  # the event loop reads while the thread that computes answers writes

    def get(self, kind: Hashable, query: Query) -> bytes | None:
        """Returns the cached answer to a query, or None."""
        with self._lock:
            entry = self._entries.get((kind, query))
        return entry[1] if entry else None

    def put(self, kind: Hashable, query: Query, answer: bytes) -> None:
        """Stores an answer, and evicts entries until the size of the cache is within its limit."""
        with self._lock, suppress(ValueError):  # an entry larger than the limit is not stored
            self._entries[kind, query] = query, answer


def _entry_bytes(entry: tuple[Query, bytes]) -> int:
    query, answer = entry
    return ENTRY_OVERHEAD + sum(map(sys.getsizeof, (query.title, query.description, answer)))
