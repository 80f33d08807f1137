"""Requests that arrive while others are computed are computed together, on one thread.

A product with the vectors of eight titles takes hardly longer than with one, since both read all titles from
memory, and one thread of PyTorch at a time neither waits for the others nor oversubscribes the cores.
"""

import asyncio
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, NamedTuple, TypeVar

import torch

T = TypeVar("T")
MOST_AT_ONCE = 256  # questions computed together
MAX_WAITING = 1024  # questions that wait to be computed, some three seconds of work


class Unavailable(Exception):
    """Why a request cannot be answered at present; the message says what to do."""


class Job(NamedTuple):
    """Questions of one request."""

    kind: Hashable
    questions: Sequence[object]
    answered: asyncio.Future


class Batches(Generic[T]):
    """``answer(kind, questions)`` called for many requests of one kind at a time, in a thread of its own."""

    def __init__(self, answer: Callable[..., list[T]]) -> None:
        self._answer = answer
        self._thread = ThreadPoolExecutor(1, "answers", torch.set_num_threads, (1,))
        self._waiting: list[Job] = []
        self._work: asyncio.Task[None] | None = None

    async def ask(self, kind: Hashable, questions: Sequence[object]) -> list[T]:
        """Answers to the questions of one request.

        Raises:
            Unavailable: More than MAX_WAITING questions would wait.
            Exception: What ``answer`` raises where it fails.
        """
        waiting = sum(len(job.questions) for job in self._waiting)
        if self._waiting and waiting + len(questions) > MAX_WAITING:
            raise Unavailable(f"{waiting:,} titles wait already; ask again later, or fewer at once")
        job = Job(kind, questions, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        if self._work is None:
            self._work = asyncio.create_task(self._empty())
        return await job.answered

    async def _empty(self) -> None:
        while self._waiting:
            jobs = self._take()
            kind, questions = jobs[0].kind, [question for job in jobs for question in job.questions]
            loop = asyncio.get_running_loop()
            try:
                answers = await loop.run_in_executor(self._thread, self._answer, kind, questions)
            except Exception as error:
                for job in jobs:
                    if not job.answered.done():  # the client may have gone
                        job.answered.set_exception(error)
                continue
            start = 0
            for job in jobs:
                if not job.answered.done():
                    job.answered.set_result(answers[start : start + len(job.questions)])
                start += len(job.questions)
        self._work = None

    def _take(self) -> list[Job]:
        """The first that waits, and others of its kind; at most MOST_AT_ONCE questions but those of one."""
        taken, left, count = [], [], 0
        for job in self._waiting:
            fits = not taken or (job.kind == taken[0].kind and count + len(job.questions) <= MOST_AT_ONCE)
            (taken if fits else left).append(job)
            count += len(job.questions) * fits
        self._waiting = left
        return taken
