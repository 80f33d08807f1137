"""Batches of concurrent requests and the answer cache of ``guidespace serve``."""

import asyncio
import threading
from typing import Any

from flows.serving.answer_cache import AnswerCache
from flows.serving.batcher import MAX_QUEUED, RequestBatcher, Unavailable
from flows.serving.loaded_model import RequestKind
from tasks.search.query import Query


def test_queued_requests_are_computed_together() -> None:
    seen: list[tuple[str, list[int]]] = []
    go_on = threading.Event()

    def answer(kind: str, questions: list[int]) -> list[str]:
        seen.append((kind, questions))
        go_on.wait(10)
        if kind == "wrong":
            raise ValueError("wrong")
        return [f"{kind}{question}" for question in questions]

    async def ask() -> list[Any]:
        batcher = RequestBatcher(answer)
        first = asyncio.create_task(batcher.submit("a", [0]))
        while not seen:
            await asyncio.sleep(0.01)
        others = [("a", [1, 2]), ("b", [3]), ("a", [4]), ("wrong", [5])]
        asked = [asyncio.create_task(batcher.submit(*other)) for other in others]
        asked[2].cancel()  # a client that has gone
        await asyncio.sleep(0.01)
        go_on.set()
        return [await first, *await asyncio.gather(*asked, return_exceptions=True)]

    first, both, other, gone, failed = asyncio.run(ask())
    assert (first, both, other) == (["a0"], ["a1", "a2"], ["b3"])
    assert isinstance(gone, asyncio.CancelledError) and str(failed) == "wrong"
    assert [kind for kind, _ in seen] == ["a", "a", "b", "wrong"] and seen[1][1][:2] == [1, 2]


def test_titles_beyond_the_limit_are_refused() -> None:
    size = 256

    go_on = threading.Event()

    def answer(kind: str, questions: list[int]) -> list[int]:
        go_on.wait(10)
        return questions

    async def ask() -> list[Any]:
        batcher = RequestBatcher(answer)
        first = asyncio.create_task(batcher.submit("a", [0]))
        await asyncio.sleep(0.01)
        count = MAX_QUEUED // size
        others = [asyncio.create_task(batcher.submit("a", [place] * size)) for place in range(count + 1)]
        await asyncio.sleep(0.01)
        assert [task.done() for task in others] == [False] * count + [True]
        go_on.set()
        return [await first, *await asyncio.gather(*others, return_exceptions=True)]

    first, *others, refused = asyncio.run(ask())
    assert first == [0] and others == [[place] * size for place in range(MAX_QUEUED // size)]
    assert isinstance(refused, Unavailable) and "1,024 titles are queued" in str(refused)


def test_the_cache_evicts_the_least_recently_used_answers_beyond_its_bytes() -> None:
    cache, kind = AnswerCache(10_000), RequestKind("similar", 10)
    for name in "abc":
        cache.put(kind, Query(name), b"." * 2_000)
    assert cache.get(kind, Query("a")) == b"." * 2_000
    cache.put(kind, Query("d"), b"." * 2_000)
    assert [bool(cache.get(kind, Query(name))) for name in "abcd"] == [True, False, True, True]
    assert not cache.get(kind, Query("a", hour=20)) and not cache.get(RequestKind("vectors"), Query("a"))
    cache.put(kind, Query("e", description="." * 9_000), b".")
    assert [bool(cache.get(kind, Query(name))) for name in "abcd"] == [False] * 4
    cache.put(kind, Query("large"), b"." * 10_000)
    cache.put(kind, Query("f"), b".")
    assert cache.get(kind, Query("f")) == b"." and not cache.get(kind, Query("large"))
