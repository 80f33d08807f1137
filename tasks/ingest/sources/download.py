"""Downloads feeds with limits on time and size, retries with jitter, and conditional requests.

httpx downloads http(s) URLs with ETag and Last-Modified. fsspec downloads all other schemes (s3://, gs://,
sftp://, memory:// …), and its ``ukey`` is used as the ETag. The timeouts of both libraries limit single
operations, so a slow server could block a download without limit. Therefore, each attempt runs in a daemon
thread. At the deadline, the thread is abandoned: it stops writing, and ends when its connection ends.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import tenacity

from storage.addresses import find_secrets, without_secrets
from tasks.ingest.guides import Guides, list_file_guides
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.feeds import Feed, FeedError, FeedUnreachable, is_url
from tasks.ingest.sources.headers import (
    Headers,
    request_headers,
    retry_after_seconds,
    send_secrets_only_to_host,
)
from tasks.ingest.sources.private import PrivateAddress, check_address

MAX_ATTEMPTS = 4  # maximum number of attempts of a download
MAX_WAIT_SECONDS = 300.0  # the download fails if the server's Retry-After is longer
_READ_BYTES = 1 << 20
RATE_SECONDS = 60.0  # interval over which the rate of an http download is measured
# Pause before retry n: 2ⁿ seconds times a random factor from 0.5 to 1.5.
_PAUSE_BEFORE_RETRY = tenacity.wait_exponential(multiplier=0.5) + tenacity.wait_random_exponential()
_RETRIED_STATUSES = {408, 425, 429, 500, 502, 503, 504}


@dataclass(frozen=True, kw_only=True)
class Validators:
    """ETag and Last-Modified of a file on a server, for conditional requests."""

    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, kw_only=True)
class DownloadResult:
    """Result of a download to a file."""

    problem: str = ""  # why the download failed; empty on success
    unreachable: bool = False  # whether the network or the server failed, so that a retry can help
    unchanged: bool = False  # whether the file has not changed since the last download and was not sent
    validators: Validators = Validators()
    digest: str = ""  # response header Repr-Digest (RFC 9530)
    wait_seconds: float = 0.0  # response header Retry-After


@dataclass(frozen=True, kw_only=True)
class FetchResult:
    """Result of fetching a path or URL: the feeds in a local file or a downloaded file."""

    feeds: Sequence[Feed] = ()  # empty if the file at the URL is unchanged
    skipped: Sequence[str] = ()  # members of a zip that are not guides
    unchanged: bool = False  # whether the file at the URL has not changed since the last download
    validators: Validators | None = None  # None for a local file


@contextmanager
def fetch(
    location: str,
    home: Path,
    settings: IngestSettings,
    source: str = "",
    validators: Validators | None = None,
) -> Iterator[FetchResult]:
    """Lists the feeds in a local file or at a URL. A downloaded file is removed after the ``with`` block.

    Args:
        location: Absolute path or URL.
        home: Path of the home folder.
        settings: Settings for importing feeds.
        source: Name of the feed in messages; empty means the location without secrets.
        validators: ETag and Last-Modified of the last download.

    Raises:
        FeedError: The location cannot be fetched or read, or is empty.
    """
    if not is_url(location):
        guides = list_file_guides(Path(location), source or location, settings.size_cap_bytes)
        yield FetchResult(**guides._asdict())
        return
    source = source or without_secrets(location)
    file = home / "downloads" / f"{sha256(location.encode()).hexdigest()[:16]}.{os.getpid()}"
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        headers = request_headers(settings.user_agent, settings.headers, source)
        result = download(location, file, settings, validators, headers)
        if result.problem:
            raise (FeedUnreachable if result.unreachable else FeedError)(f"{source}: {result.problem}")
        guides = Guides([]) if result.unchanged else list_file_guides(file, source, settings.size_cap_bytes)
        yield FetchResult(**guides._asdict(), unchanged=result.unchanged, validators=result.validators)
    finally:
        file.unlink(missing_ok=True)


def download(
    url: str,
    file: Path,
    settings: IngestSettings,
    validators: Validators | None = None,
    headers: Headers | None = None,
    *,
    attempts: int = MAX_ATTEMPTS,
    pause: Callable[[float], None] = time.sleep,
) -> DownloadResult:
    """Downloads a URL to a file without decompressing it. Retries if the network or the server fails.

    Args:
        url: URL with the scheme http, https, or one of fsspec; messages never contain user and password.
        file: File to write.
        settings: Settings for importing feeds.
        validators: ETag and Last-Modified of the last download.
        headers: Additional request headers.
        attempts: Maximum number of attempts.
        pause: Function that sleeps for a number of seconds; tests replace it.
    """
    deadline = time.monotonic() + settings.download_seconds
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_result(
            lambda result: result.unreachable and result.wait_seconds <= MAX_WAIT_SECONDS
        ),
        wait=lambda state: max(_PAUSE_BEFORE_RETRY(state), _result_of(state).wait_seconds),
        stop=tenacity.stop_after_attempt(attempts) | tenacity.stop_before_delay(settings.download_seconds),
        sleep=pause,
        retry_error_callback=_result_of,
    )
    result = retrying(
        _download_once, url, file, settings, validators or Validators(), headers or Headers(), deadline
    )
    if result.unreachable and 1 < attempts == retrying.statistics["attempt_number"]:
        return replace(result, problem=f"{result.problem}, {attempts} times")
    if result.wait_seconds > MAX_WAIT_SECONDS:
        retry_after = f"Retry-After is {result.wait_seconds:,.0f} seconds (limit: {MAX_WAIT_SECONDS:,.0f})"
        return replace(result, problem=f"{result.problem}; {retry_after}")
    return result


def _result_of(state: tenacity.RetryCallState) -> DownloadResult:
    assert state.outcome is not None
    return state.outcome.result()


def describe_error(error: Exception, url: str, headers: Headers | None = None) -> str:
    """Formats an exception of a library as one line; only its type if the message contains a secret."""
    text = " ".join(str(error).split())
    secrets = find_secrets(url).union(headers.secret.values() if headers else ())
    is_hidden = not text or any(secret in text for secret in secrets)
    return type(error).__name__ if is_hidden else f"{type(error).__name__}: {text[:200]}"


def _download_once(
    url: str, file: Path, settings: IngestSettings, validators: Validators, headers: Headers, deadline: float
) -> DownloadResult:
    """Downloads a URL once, in a thread that is abandoned at the deadline (in ``time.monotonic`` seconds)."""
    download_url = _download_http if url.lower().startswith(("http://", "https://")) else _download_fsspec
    body = _BodyWriter(file, settings)
    result: Future[DownloadResult] = Future()

    def run() -> None:
        try:
            result.set_result(download_url(url, body, validators, headers))
        except BaseException as error:  # raised below, in the waiting thread
            result.set_exception(error)

    threading.Thread(target=run, name="fetch", daemon=True).start()
    finished, _ = wait([result], max(0.0, deadline - time.monotonic()))
    body.is_cancelled = True
    if not finished:
        problem = f"not fetched within {settings.download_seconds:,.0f} seconds (ingest.download_seconds)"
        return DownloadResult(problem=problem, unreachable=True)
    return result.result()


@dataclass
class _BodyWriter:
    """Writes the body of a response to a file until a limit is exceeded or the attempt is cancelled."""

    file: Path
    settings: IngestSettings
    is_cancelled: bool = False  # set by another thread at the deadline
    is_too_slow: bool = False  # set if the rate is below ingest.download_bytes_per_second

    def write(self, blocks: Iterable[bytes], *, check_rate: bool, content_length: str = "") -> str:
        """Writes blocks to the file. Returns why it stopped early; empty if all blocks were written."""
        size = measured_size = 0
        measured_at = time.monotonic()
        minimum_rate, size_cap = self.settings.download_bytes_per_second, self.settings.size_cap_bytes
        too_large_message = f"larger than {size_cap:,} bytes (ingest.size_cap_bytes)"
        if content_length.isdecimal() and int(content_length) > size_cap:
            return too_large_message
        with open(self.file, "wb") as handle:
            for block in blocks:
                size += len(block)
                seconds = time.monotonic() - measured_at
                if self.is_cancelled:
                    return "cancelled"
                if size > size_cap:
                    return too_large_message
                if check_rate and seconds >= RATE_SECONDS:
                    rate = (size - measured_size) / seconds
                    self.is_too_slow = rate < minimum_rate
                    if self.is_too_slow:
                        rate_limit = f"{minimum_rate:,} (ingest.download_bytes_per_second)"
                        return f"sent at {rate:,.0f} bytes/s, less than {rate_limit}"
                    measured_size, measured_at = size, measured_at + seconds
                handle.write(block)
        return ""


def _download_http(url: str, body: _BodyWriter, validators: Validators, headers: Headers) -> DownloadResult:
    import httpx  # the import, with public_client, takes .1 s

    from tasks.ingest.sources.public_client import create_public_client

    logging.getLogger("httpx").setLevel(logging.WARNING)  # at INFO, httpx logs URLs with secrets
    conditions = {"If-None-Match": validators.etag, "If-Modified-Since": validators.last_modified}
    request_fields = {name: value for name, value in conditions.items() if value}
    request_fields |= {"Accept-Encoding": "identity", **headers.plain}
    timeout = httpx.Timeout(60.0, connect=10.0)
    make_client = httpx.Client if body.settings.private_addresses else create_public_client
    try:
        with ExitStack() as stack:
            client = make_client(timeout=timeout, follow_redirects=True, headers=request_fields)
            stack.enter_context(client)
            send_secrets_only_to_host(url, client, headers)
            response = stack.enter_context(client.stream("GET", url))
            status = f"the server answered {response.status_code} {response.reason_phrase}"
            if response.status_code == 304 and validators == Validators():
                return DownloadResult(problem=f"{status} to an unconditional request; expected the file")
            if response.status_code == 304:
                return DownloadResult(unchanged=True, validators=validators)
            if response.status_code >= 400:
                return DownloadResult(
                    problem=status,
                    unreachable=response.status_code in _RETRIED_STATUSES,
                    wait_seconds=retry_after_seconds(response.headers),
                )
            response_fields = response.headers
            new_validators = Validators(
                etag=response_fields.get("ETag"), last_modified=response_fields.get("Last-Modified")
            )
            content_length = response_fields.get("Content-Length", "")
            problem = body.write(response.iter_raw(), check_rate=True, content_length=content_length)
            return DownloadResult(
                problem=problem,
                unreachable=body.is_too_slow,
                validators=new_validators,
                digest=response_fields.get("Repr-Digest", ""),
            )
    except PrivateAddress as error:
        return DownloadResult(problem=f"not fetched: {error}")
    except (httpx.TransportError, httpx.InvalidURL, httpx.TooManyRedirects) as error:
        is_transient = isinstance(error, httpx.TransportError) and not isinstance(
            error, httpx.UnsupportedProtocol
        )
        return DownloadResult(
            problem=f"cannot be fetched ({describe_error(error, url, headers)})", unreachable=is_transient
        )


def _download_fsspec(url: str, body: _BodyWriter, validators: Validators, headers: Headers) -> DownloadResult:
    import fsspec

    try:
        if not body.settings.private_addresses:
            check_address(url)
        http_options = {"client_kwargs": {"headers": headers.plain}}  # for http inside another URL
        options = {name: http_options for name in ("http", "https") if f"::{name}://" in url.lower()}
        file_system, path = fsspec.core.url_to_fs(url, **options)
        file_system.invalidate_cache()  # fsspec caches listings as long as the process runs
        new_validators = Validators(etag=str(file_system.ukey(path)))
        if new_validators == validators:
            return DownloadResult(unchanged=True, validators=validators)
        with file_system.open(path, "rb") as handle:
            problem = body.write(iter(lambda: handle.read(_READ_BYTES), b""), check_rate=False)
        return DownloadResult(problem=problem, validators=new_validators)
    except PrivateAddress as error:
        return DownloadResult(problem=f"not fetched: {error}")
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        return DownloadResult(problem=f"cannot be fetched ({type(error).__name__})")
    except Exception as error:  # stores raise their own exceptions; exceptions of botocore are not OSErrors
        is_transient = not isinstance(error, ImportError | ValueError)  # unknown scheme or missing package
        return DownloadResult(
            problem=f"cannot be fetched ({describe_error(error, url)})", unreachable=is_transient
        )
