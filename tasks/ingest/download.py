"""Fetching a feed from elsewhere: bounded in time and size, retried with jitter, nothing that is unchanged.

http(s) by httpx, with ETag and Last-Modified; everything else (s3://, gs://, sftp://, memory:// …) by fsspec, whose
``ukey`` serves as the ETag.

Timeouts of the libraries are for one operation each, so a server that sends a byte now and then, even of
its headers, or a name server that does not answer, holds them for as long as it likes. Each attempt
therefore runs in a thread of its own, which is given up when the time is over: it writes nothing more,
and ends with its connection or with the process.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from pathlib import Path

import fsspec
import httpx

from storage.addresses import secrets_of

ATTEMPTS = 4
PIECE = 1 << 20
LONGEST_WAIT = 300.0  # seconds that a server may ask for (Retry-After); after more it is not asked again
_AGAIN = {408, 425, 429, 500, 502, 503, 504}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a fetch may take.

    Attributes:
        size_cap_bytes: More than this is refused.
        seconds: For all attempts and the pauses between them.
        bytes_per_second: The least rate of an http body.
        rate_seconds: Over how long the rate is taken.
    """

    size_cap_bytes: int
    seconds: float = 3600.0
    bytes_per_second: int = 1000
    rate_seconds: float = 60.0


@dataclass(frozen=True, kw_only=True)
class Validators:
    """What a server said of a file, to ask whether it is still so."""

    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came of asking for a file.

    Attributes:
        problem: What went wrong, in words; empty when all went well.
        unreachable: The network or the server went wrong: another attempt can help.
        unchanged: The file is what it was; nothing was fetched.
        validators: What the server said of it now.
        wait_seconds: How long the server asks to wait before it.
    """

    problem: str = ""
    unreachable: bool = False
    unchanged: bool = False
    validators: Validators = Validators()
    wait_seconds: float = 0.0


def download(
    url: str,
    place: Path,
    limits: Limits,
    known: Validators | None = None,
    *,
    chance: random.Random | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> Answer:
    """Writes what a URL holds to a file, as sent.

    Args:
        url: http, https, or a scheme of fsspec's; user and password in it are used and never shown.
        place: File to write.
        limits: Of size, time and rate.
        known: What was said of the file when it was read last.
        chance: Where the jitter comes from.
        pause: Waits for seconds; another one in tests.
    """
    chance = chance or random.Random()
    ends = time.monotonic() + limits.seconds
    answer = Answer()
    for attempt in range(ATTEMPTS):
        if attempt:
            wait = max(2.0 ** (attempt - 1) * chance.uniform(0.5, 1.5), answer.wait_seconds)
            if wait > LONGEST_WAIT:
                asks = f"asks to wait {wait:,.0f} seconds; more than {LONGEST_WAIT:,.0f} are not waited for"
                return replace(answer, problem=f"{answer.problem} and {asks}")
            if time.monotonic() + wait > ends:
                return answer
            pause(wait)
        answer = _bounded(url, place, limits, known or Validators(), ends)
        if not answer.unreachable:
            return answer
    return replace(answer, problem=f"{answer.problem}, {ATTEMPTS} times")


def message_of(error: Exception, url: str) -> str:
    """An error of a library in one short line; only its kind where it holds something secret of the URL."""
    text = " ".join(str(error).split())
    hidden = not text or any(secret in text for secret in secrets_of(url))
    return type(error).__name__ if hidden else f"{type(error).__name__}: {text[:200]}"


def _bounded(url: str, place: Path, limits: Limits, known: Validators, ends: float) -> Answer:
    """One attempt, in a thread that is given up at the end of the time."""
    fetch = _over_http if url.lower().startswith(("http://", "https://")) else _by_fsspec
    body = _Body(place, limits)
    answers: list[Answer | BaseException] = []

    def run() -> None:
        try:
            answers.append(fetch(url, body, known))
        except BaseException as error:  # raised below, in the thread that waits
            answers.append(error)

    thread = threading.Thread(target=run, name="fetch", daemon=True)
    thread.start()
    thread.join(max(0.0, ends - time.monotonic()))
    body.given_up = True
    if not answers:
        problem = f"not fetched within {limits.seconds:,.0f} seconds (ingest.download_seconds)"
        return Answer(problem=problem, unreachable=True)
    if isinstance(answers[0], BaseException):
        raise answers[0]
    return answers[0]


def _over_http(url: str, body: _Body, known: Validators) -> Answer:
    """One request."""
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it would log the whole URL
    headers = {"Accept-Encoding": "identity"}
    if known.etag:
        headers["If-None-Match"] = known.etag
    if known.last_modified:
        headers["If-Modified-Since"] = known.last_modified
    timeout = httpx.Timeout(60.0, connect=10.0)
    try:
        with (
            httpx.Client(timeout=timeout, follow_redirects=True, headers=headers) as client,
            client.stream("GET", url) as response,
        ):
            said = f"the server answered {response.status_code} {response.reason_phrase}"
            if response.status_code == 304:
                if known == Validators():
                    unasked = "although it was not asked whether the file has changed; expected the file"
                    return Answer(problem=f"{said} {unasked}")
                return Answer(unchanged=True, validators=known)
            if response.status_code >= 400:
                return Answer(
                    problem=said,
                    unreachable=response.status_code in _AGAIN,
                    wait_seconds=_retry_after(response.headers),
                )
            validators = Validators(
                etag=response.headers.get("ETag"), last_modified=response.headers.get("Last-Modified")
            )
            problem = body.write(response.iter_raw(), rated=True)
            return Answer(problem=problem, unreachable=body.too_slow, validators=validators)
    except (httpx.TransportError, httpx.InvalidURL, httpx.TooManyRedirects) as error:
        unreachable = isinstance(error, httpx.TransportError) and not isinstance(
            error, httpx.UnsupportedProtocol
        )
        return Answer(problem=f"cannot be fetched ({message_of(error, url)})", unreachable=unreachable)


def _retry_after(headers: httpx.Headers) -> float:
    """Seconds to wait, by a header of seconds or a date (against the server's own clock); 0 without it."""
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        return max(
            0.0,
            (parsedate_to_datetime(text) - parsedate_to_datetime(headers.get("Date", ""))).total_seconds(),
        )
    except (ValueError, TypeError):  # no date, or one with a zone and one without
        return 0.0


def _by_fsspec(url: str, body: _Body, known: Validators) -> Answer:
    """One attempt."""
    try:
        system, path = fsspec.core.url_to_fs(url)
        system.invalidate_cache()  # fsspec keeps listings for as long as a process lives
        said = Validators(etag=str(system.ukey(path)))
        if said == known:
            return Answer(unchanged=True, validators=known)
        with system.open(path, "rb") as handle:
            return Answer(
                problem=body.write(iter(lambda: handle.read(PIECE), b""), rated=False), validators=said
            )
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        return Answer(problem=f"cannot be fetched ({type(error).__name__})")
    except (ImportError, ValueError) as error:  # no such scheme, or the package for it is missing
        return Answer(problem=f"cannot be fetched ({message_of(error, url)})")
    except Exception as error:  # each store has kinds of its own; botocore's are no OSError
        return Answer(problem=f"cannot be fetched ({message_of(error, url)})", unreachable=True)


class _Body:
    """The file that a body is written to, until the limits or whoever waits for it say stop."""

    def __init__(self, place: Path, limits: Limits) -> None:
        self.place = place
        self.limits = limits
        self.given_up = False
        self.too_slow = False

    def write(self, blocks: Iterable[bytes], *, rated: bool) -> str:
        """Streams blocks to disk; why it stopped before their end, in words."""
        size = since = 0
        begun = time.monotonic()
        with open(self.place, "wb") as handle:
            for block in blocks:
                size += len(block)
                passed = time.monotonic() - begun
                if self.given_up:
                    return "given up"
                if size > self.limits.size_cap_bytes:
                    return f"larger than {self.limits.size_cap_bytes:,} bytes (ingest.size_cap_bytes)"
                if rated and passed >= self.limits.rate_seconds:
                    rate = (size - since) / passed
                    self.too_slow = rate < self.limits.bytes_per_second
                    if self.too_slow:
                        least = f"{self.limits.bytes_per_second:,} (ingest.download_bytes_per_second)"
                        return f"sent at {rate:,.0f} bytes a second, less than {least}"
                    since, begun = size, begun + passed
                handle.write(block)
        return ""
