"""Requests of ``guidespace serve`` that are computed together, and answers that are kept."""

import asyncio
import threading
from typing import Any

from flows.serving.batches import MAX_WAITING, Batches, Unavailable
from flows.serving.kept import Kept
from flows.serving.space import Kind
from tasks.search.query import Query


def test_requests_that_wait_are_answered_together_each_its_own() -> None:
    seen: list[tuple[str, list[int]]] = []
    go_on = threading.Event()

    def answer(kind: str, questions: list[int]) -> list[str]:
        seen.append((kind, questions))
        go_on.wait(10)
        if kind == "wrong":
            raise ValueError("wrong")
        return [f"{kind}{question}" for question in questions]

    async def ask() -> list[Any]:
        batches = Batches(answer)
        first = asyncio.create_task(batches.ask("a", [0]))
        while not seen:
            await asyncio.sleep(0.01)
        others = [("a", [1, 2]), ("b", [3]), ("a", [4]), ("wrong", [5])]
        asked = [asyncio.create_task(batches.ask(*other)) for other in others]
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
        batches = Batches(answer)
        first = asyncio.create_task(batches.ask("a", [0]))
        await asyncio.sleep(0.01)
        count = MAX_WAITING // size
        others = [asyncio.create_task(batches.ask("a", [place] * size)) for place in range(count + 1)]
        await asyncio.sleep(0.01)
        assert [task.done() for task in others] == [False] * count + [True]
        go_on.set()
        return [await first, *await asyncio.gather(*others, return_exceptions=True)]

    first, *others, refused = asyncio.run(ask())
    assert first == [0] and others == [[place] * size for place in range(MAX_WAITING // size)]
    assert isinstance(refused, Unavailable) and "1,024 titles wait already" in str(refused)


def test_answers_are_kept_within_a_bound_in_bytes_those_asked_for_last() -> None:
    kept, kind = Kept(10_000), Kind("similar", 10)
    for name in "abc":
        kept.add(kind, Query(name), b"." * 2_000)
    assert kept.find(kind, Query("a")) == b"." * 2_000
    kept.add(kind, Query("a"), b"given again by another thread")
    kept.add(kind, Query("d"), b"." * 2_000)
    assert [bool(kept.find(kind, Query(name))) for name in "abcd"] == [True, False, True, True]
    assert not kept.find(kind, Query("a", hour=20)) and not kept.find(Kind("vectors"), Query("a"))
    kept.add(kind, Query("e", description="." * 9_000), b".")
    assert [bool(kept.find(kind, Query(name))) for name in "abcd"] == [False] * 4
    kept.add(kind, Query("large"), b"." * 10_000)  # larger than the bound
    kept.add(kind, Query("f"), b".")
    assert kept.find(kind, Query("f")) == b"." and not kept.find(kind, Query("large"))
