"""Fetching a feed from elsewhere: timeouts, a few retries with jitter, never more than the cap, nothing that is unchanged.

http(s) by httpx, with ETag and Last-Modified; everything else (s3://, gs://, sftp://, memory:// …) by fsspec, whose
``ukey`` serves as the ETag.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import fsspec
import httpx

ATTEMPTS = 4
PIECE = 1 << 20
_AGAIN = {408, 425, 429, 500, 502, 503, 504}


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
        unreachable: The network or the server went wrong, each time it was tried.
        unchanged: The file is what it was; nothing was fetched.
        validators: What the server said of it now.
    """

    problem: str = ""
    unreachable: bool = False
    unchanged: bool = False
    validators: Validators = Validators()


def download(
    url: str,
    place: Path,
    size_cap_bytes: int,
    known: Validators | None = None,
    *,
    chance: random.Random | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> Answer:
    """Writes what a URL holds to a file, as sent.

    Args:
        url: http, https, or a scheme of fsspec's; user and password in it are used and never shown.
        place: File to write.
        size_cap_bytes: More than this is refused.
        known: What was said of the file when it was read last.
        chance: Where the jitter comes from.
        pause: Waits for seconds; another one in tests.
    """
    chance = chance or random.Random()
    fetch = _over_http if url.lower().startswith(("http://", "https://")) else _by_fsspec
    problem = ""
    for attempt in range(ATTEMPTS):
        if attempt:
            pause(2.0 ** (attempt - 1) * chance.uniform(0.5, 1.5))
        answer, passing = fetch(url, place, size_cap_bytes, known or Validators())
        if not passing:
            return answer
        problem = answer.problem
    return Answer(problem=f"{problem}, {ATTEMPTS} times", unreachable=True)


def _over_http(url: str, place: Path, cap: int, known: Validators) -> tuple[Answer, bool]:
    """One request; whether what went wrong may pass."""
    headers = {"Accept-Encoding": "identity"}
    if known.etag:
        headers["If-None-Match"] = known.etag
    if known.last_modified:
        headers["If-Modified-Since"] = known.last_modified
    try:
        with httpx.Client(timeout=httpx.Timeout(60.0, connect=10.0), follow_redirects=True, headers=headers) as client, client.stream("GET", url) as response:
            if response.status_code == 304:
                return Answer(unchanged=True, validators=known), False
            if response.status_code >= 400:
                return Answer(problem=f"the server answered {response.status_code} {response.reason_phrase}"), response.status_code in _AGAIN
            said = Validators(etag=response.headers.get("ETag"), last_modified=response.headers.get("Last-Modified"))
            return Answer(problem=_write(response.iter_raw(), place, cap), validators=said), False
    except httpx.TransportError as error:
        passing = not isinstance(error, httpx.UnsupportedProtocol)
        return Answer(problem=f"cannot be fetched ({type(error).__name__}: {str(error) or 'no answer'})"), passing
    except (httpx.InvalidURL, httpx.TooManyRedirects) as error:
        return Answer(problem=f"cannot be fetched ({error})"), False


def _by_fsspec(url: str, place: Path, cap: int, known: Validators) -> tuple[Answer, bool]:
    """One attempt; whether what went wrong may pass."""
    try:
        system, path = fsspec.core.url_to_fs(url)
        system.invalidate_cache()  # fsspec keeps listings for as long as a process lives
        said = Validators(etag=str(system.ukey(path)))
        if said == known:
            return Answer(unchanged=True, validators=known), False
        with system.open(path, "rb") as handle:
            return Answer(problem=_write(iter(lambda: handle.read(PIECE), b""), place, cap), validators=said), False
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        return Answer(problem=f"cannot be fetched ({type(error).__name__})"), False
    except (ImportError, ValueError) as error:  # no such scheme, or the package for it is missing
        return Answer(problem=f"cannot be fetched ({' '.join(str(error).split())[:200]})"), False
    except Exception as error:  # each store has kinds of its own; botocore's are no OSError
        return Answer(problem=f"cannot be fetched ({type(error).__name__}: {' '.join(str(error).split())[:200]})"), True


def _write(blocks: Iterable[bytes], place: Path, cap: int) -> str:
    """Streams a body to disk; stops at the cap."""
    size = 0
    with open(place, "wb") as handle:
        for block in blocks:
            size += len(block)
            if size > cap:
                return f"larger than {cap:,} bytes (ingest.size_cap_bytes)"
            handle.write(block)
    return ""
