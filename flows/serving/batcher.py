"""Computes the answers to concurrent requests in batches, on one thread.

A matrix product with eight query titles takes hardly longer than with one query title, because either reads
the vectors of all titles from memory. A single thread avoids lock contention and oversubscribed cores.
"""

import asyncio
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, NamedTuple, TypeVar

from starlette.exceptions import HTTPException

AnswerT = TypeVar("AnswerT")
MAX_BATCH = 256  # queries computed together
MAX_QUEUED = 1024  # queries that wait to be computed, about three seconds of work


class Unavailable(HTTPException):
    """Error: a request cannot be answered at present (status 503). The message says what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(503, message)


class Job(NamedTuple):
    """Queries of one request, and the future of their answers."""

    batch_key: Hashable  # jobs with equal keys can be computed together
    queries: Sequence[object]
    answers: asyncio.Future  # list with one answer per query


class RequestBatcher(Generic[AnswerT]):
    """Calls ``answer(batch_key, queries)`` in one thread, with the queries of several requests at once."""

    def __init__(self, answer: Callable[..., list[AnswerT]]) -> None:
        self._answer = answer
        self._thread = ThreadPoolExecutor(1, "answers")
        self._queue: list[Job] = []
        self._worker: asyncio.Task[None] | None = None

    async def submit(self, batch_key: Hashable, queries: Sequence[object]) -> list[AnswerT]:
        """Returns the answers to the queries of one request.

        Raises:
            Unavailable: More than MAX_QUEUED queries would be queued.
            Exception: Any exception that ``answer`` raises.
        """
        queued_count = sum(len(job.queries) for job in self._queue)
        if self._queue and queued_count + len(queries) > MAX_QUEUED:
            raise Unavailable(
                f"{queued_count:,} titles are queued; retry later, or send fewer titles at once"
            )
        job = Job(batch_key, queries, asyncio.get_running_loop().create_future())
        self._queue.append(job)
        if self._worker is None:
            self._worker = asyncio.create_task(self._process_queue())
        return await job.answers

    async def _process_queue(self) -> None:
        """Computes batches until the queue is empty."""
        while self._queue:
            jobs = self._next_batch()
            batch_key, queries = jobs[0].batch_key, [query for job in jobs for query in job.queries]
            loop = asyncio.get_running_loop()
            try:
                answers = await loop.run_in_executor(self._thread, self._answer, batch_key, queries)
            except Exception as error:
                for job in jobs:
                    if not job.answers.done():  # done if the client has disconnected
                        job.answers.set_exception(error)
                continue
            start = 0
            for job in jobs:
                if not job.answers.done():
                    job.answers.set_result(answers[start : start + len(job.queries)])
                start += len(job.queries)
        self._worker = None

    def _next_batch(self) -> list[Job]:
        """Removes the oldest job, and all jobs with the same key, from the queue, up to MAX_BATCH queries."""
        batch, remaining_jobs, count = [], [], 0
        for job in self._queue:
            fits_batch = not batch or (
                job.batch_key == batch[0].batch_key and count + len(job.queries) <= MAX_BATCH
            )
            (batch if fits_batch else remaining_jobs).append(job)
            count += len(job.queries) * fits_batch
        self._queue = remaining_jobs
        return batch
