"""Downloads a feed: bounded in time and size, retried with jitter; an unchanged one is not sent again.

http(s) by httpx, with ETag and Last-Modified; everything else (s3://, gs://, sftp://, memory:// …) by
fsspec, whose ``ukey`` serves as the ETag. Timeouts of the libraries are per operation, so a server that
sends a byte now and then, even of its headers, or a name server that does not answer, holds them for any
time. Each attempt therefore runs in a daemon thread, which is abandoned at the deadline: it writes nothing
more, and ends with its connection.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

import fsspec
import httpx
import tenacity

from storage.addresses import secrets_of, without_secrets
from tasks.ingest.guides import Guides, describe_file
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.feeds import Feed, FeedError, FeedUnreachable, is_url
from tasks.ingest.sources.headers import Headers, keep_secrets_to, request_headers
from tasks.ingest.sources.private import PrivateAddress, check_address, public_client

ATTEMPTS = 4
LONGEST_WAIT = 300.0  # seconds that a server may ask for (Retry-After); after more it is not asked again
Pause: TypeAlias = Callable[[float], None]
_PIECE = 1 << 20
# 2ⁿ seconds, times 0.5 to 1.5
_JITTERED = tenacity.wait_exponential(multiplier=0.5) + tenacity.wait_random_exponential()
_RETRIED = {408, 425, 429, 500, 502, 503, 504}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a download may take: ``seconds`` for all attempts and pauses, a least rate for http; and which
    headers it sends (``ingest.user_agent``, ``ingest.headers``).
    """

    size_cap_bytes: int
    seconds: float = 3600.0
    bytes_per_second: int = 1000
    rate_seconds: float = 60.0
    private_addresses: bool = True
    user_agent: str = ""
    headers: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: IngestSettings) -> "Limits":
        """Those of the settings."""
        return cls(
            size_cap_bytes=settings.size_cap_bytes,
            seconds=settings.download_seconds,
            bytes_per_second=settings.download_bytes_per_second,
            private_addresses=settings.private_addresses,
            user_agent=settings.user_agent,
            headers=settings.headers,
        )


@dataclass(frozen=True, kw_only=True)
class Validators:
    """A server's version of a file, to ask for newer ones only."""

    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The result of a download."""

    problem: str = ""  # empty on success
    unreachable: bool = False  # the network or the server failed: another attempt can help
    unchanged: bool = False
    validators: Validators = Validators()
    wait_seconds: float = 0.0  # what the server asks for before the next attempt


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """The feeds of a location; none where it is unchanged. ``validators`` is None for a local file."""

    feeds: Sequence[Feed] = ()
    passed_over: Sequence[str] = ()  # members of a zip that are no guides
    unchanged: bool = False
    validators: Validators | None = None


@contextmanager
def fetch(
    location: str, home: Path, limits: Limits, source: str = "", known: Validators | None = None
) -> Iterator[Fetched]:
    """The feeds of a resolved location; what is downloaded lies in the home and is removed after the block.

    Args:
        source: Empty is the location without secrets.
        known: From the last download.

    Raises:
        FeedError: It cannot be fetched or read, or is empty.
    """
    if not is_url(location):
        guides = describe_file(Path(location), source or location, limits.size_cap_bytes)
        yield Fetched(**guides._asdict())
        return
    source = source or without_secrets(location)
    file = home / "downloads" / f"{sha256(location.encode()).hexdigest()[:16]}.{os.getpid()}"
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        headers = request_headers(limits.user_agent, limits.headers, source)
        answer = download(location, file, limits, known, headers)
        if answer.problem:
            raise (FeedUnreachable if answer.unreachable else FeedError)(f"{source}: {answer.problem}")
        guides = Guides([]) if answer.unchanged else describe_file(file, source, limits.size_cap_bytes)
        yield Fetched(**guides._asdict(), unchanged=answer.unchanged, validators=answer.validators)
    finally:
        file.unlink(missing_ok=True)


def download(
    url: str,
    file: Path,
    limits: Limits,
    known: Validators | None = None,
    headers: Headers | None = None,
    *,
    pause: Pause = time.sleep,
) -> Answer:
    """Writes what a URL holds to a file, as sent.

    Args:
        url: http, https, or a scheme of fsspec; user and password in it are used and never shown.
        pause: Waits for seconds; replaced in tests.
    """
    deadline = time.monotonic() + limits.seconds
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_result(lambda each: each.unreachable and each.wait_seconds <= LONGEST_WAIT),
        wait=lambda state: max(_JITTERED(state), _answer(state).wait_seconds),
        stop=tenacity.stop_after_attempt(ATTEMPTS) | tenacity.stop_before_delay(limits.seconds),
        sleep=pause,
        retry_error_callback=_answer,
    )
    answer = retrying(_attempt, url, file, limits, known or Validators(), headers or Headers(), deadline)
    if answer.unreachable and retrying.statistics["attempt_number"] == ATTEMPTS:
        return replace(answer, problem=f"{answer.problem}, {ATTEMPTS} times")
    if answer.wait_seconds > LONGEST_WAIT:
        asks = f"and asks to wait {answer.wait_seconds:,.0f} seconds"
        most = f"more than {LONGEST_WAIT:,.0f} are not waited for"
        return replace(answer, problem=f"{answer.problem} {asks}; {most}")
    return answer


def _answer(state: tenacity.RetryCallState) -> Answer:
    assert state.outcome is not None
    return state.outcome.result()


def message_of(error: Exception, url: str, headers: Headers | None = None) -> str:
    """An error of a library in one short line; only its type where the text holds a secret of the request."""
    text = " ".join(str(error).split())
    secrets = secrets_of(url).union(headers.secret.values() if headers else ())
    hidden = not text or any(secret in text for secret in secrets)
    return type(error).__name__ if hidden else f"{type(error).__name__}: {text[:200]}"


def _attempt(
    url: str, file: Path, limits: Limits, known: Validators, headers: Headers, deadline: float
) -> Answer:
    """One attempt, in a thread that is abandoned at the deadline."""
    attempt = _over_http if url.lower().startswith(("http://", "https://")) else _by_fsspec
    body = _Body(file, limits)
    answer: Future[Answer] = Future()

    def run() -> None:
        try:
            answer.set_result(attempt(url, body, known, headers))
        except BaseException as error:  # raised below, in the thread that waits
            answer.set_exception(error)

    threading.Thread(target=run, name="fetch", daemon=True).start()
    done, _ = wait([answer], max(0.0, deadline - time.monotonic()))
    body.given_up = True
    if not done:
        problem = f"not fetched within {limits.seconds:,.0f} seconds (ingest.download_seconds)"
        return Answer(problem=problem, unreachable=True)
    return answer.result()


@dataclass
class _Body:
    """The file that a body is written to, until a limit is passed or the attempt is given up."""

    file: Path
    limits: Limits
    given_up: bool = False
    too_slow: bool = False

    def write(self, blocks: Iterable[bytes], *, rated: bool) -> str:
        """Streams blocks to disk; why it stopped before their end, as text."""
        size = since = 0
        begun = time.monotonic()
        with open(self.file, "wb") as handle:
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


def _over_http(url: str, body: _Body, known: Validators, headers: Headers) -> Answer:
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it would log the whole URL
    conditions = {"If-None-Match": known.etag, "If-Modified-Since": known.last_modified}
    sent = {name: value for name, value in conditions.items() if value}
    sent |= {"Accept-Encoding": "identity", **headers.plain}
    timeout = httpx.Timeout(60.0, connect=10.0)
    make = httpx.Client if body.limits.private_addresses else public_client
    try:
        with (
            make(timeout=timeout, follow_redirects=True, headers=sent) as client,
            _stream(client, url, headers) as response,
        ):
            status = f"the server answered {response.status_code} {response.reason_phrase}"
            if response.status_code == 304 and known == Validators():
                unasked = "although it was not asked whether the file has changed; expected the file"
                return Answer(problem=f"{status} {unasked}")
            if response.status_code == 304:
                return Answer(unchanged=True, validators=known)
            if response.status_code >= 400:
                wait, again = _retry_after(response.headers), response.status_code in _RETRIED
                return Answer(problem=status, unreachable=again, wait_seconds=wait)
            answered = response.headers
            validators = Validators(etag=answered.get("ETag"), last_modified=answered.get("Last-Modified"))
            problem = body.write(response.iter_raw(), rated=True)
            return Answer(problem=problem, unreachable=body.too_slow, validators=validators)
    except PrivateAddress as error:
        return Answer(problem=f"not fetched: {error}")
    except (httpx.TransportError, httpx.InvalidURL, httpx.TooManyRedirects) as error:
        again = isinstance(error, httpx.TransportError) and not isinstance(error, httpx.UnsupportedProtocol)
        return Answer(problem=f"cannot be fetched ({message_of(error, url, headers)})", unreachable=again)


def _stream(client: httpx.Client, url: str, headers: Headers) -> AbstractContextManager[httpx.Response]:
    keep_secrets_to(url, client, headers)
    return client.stream("GET", url)


def _retry_after(headers: httpx.Headers) -> float:
    """Seconds to wait, from a header of seconds or a date (against the server's own clock); 0 without it."""
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        wait = parsedate_to_datetime(text) - parsedate_to_datetime(headers.get("Date", ""))
    except (ValueError, TypeError):  # no date, or one with a zone and one without
        return 0.0
    return max(0.0, wait.total_seconds())


def _by_fsspec(url: str, body: _Body, known: Validators, headers: Headers) -> Answer:
    try:
        if not body.limits.private_addresses:
            check_address(url)
        inner = {"client_kwargs": {"headers": headers.plain}}  # of http inside of another address
        options = {name: inner for name in ("http", "https") if f"::{name}://" in url.lower()}
        system, path = fsspec.core.url_to_fs(url, **options)
        system.invalidate_cache()  # fsspec keeps listings for as long as a process lives
        validators = Validators(etag=str(system.ukey(path)))
        if validators == known:
            return Answer(unchanged=True, validators=known)
        with system.open(path, "rb") as handle:
            problem = body.write(iter(lambda: handle.read(_PIECE), b""), rated=False)
        return Answer(problem=problem, validators=validators)
    except PrivateAddress as error:
        return Answer(problem=f"not fetched: {error}")
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        return Answer(problem=f"cannot be fetched ({type(error).__name__})")
    except Exception as error:  # each store has exceptions of its own; botocore's are no OSError
        again = not isinstance(error, ImportError | ValueError)  # no such scheme, or its package is missing
        return Answer(problem=f"cannot be fetched ({message_of(error, url)})", unreachable=again)
