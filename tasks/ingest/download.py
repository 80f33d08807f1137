"""Fetching a feed over http(s): timeouts, a few retries with jitter, never more than the cap."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import httpx

ATTEMPTS = 4
_AGAIN = {408, 425, 429, 500, 502, 503, 504}


def download(
    url: str,
    place: Path,
    size_cap_bytes: int,
    *,
    chance: random.Random | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> str:
    """Writes what a URL answers to a file, as sent.

    Args:
        url: http or https; user and password in it are used and never shown.
        place: File to write.
        size_cap_bytes: More than this is refused.
        chance: Where the jitter comes from.
        pause: Waits for seconds; another one in tests.

    Returns:
        What went wrong, in words; empty when all went well.
    """
    chance = chance or random.Random()
    problem = ""
    with httpx.Client(timeout=httpx.Timeout(60.0, connect=10.0), follow_redirects=True, headers={"Accept-Encoding": "identity"}) as client:
        for attempt in range(ATTEMPTS):
            if attempt:
                pause(2.0 ** (attempt - 1) * chance.uniform(0.5, 1.5))
            try:
                with client.stream("GET", url) as response:
                    if response.status_code >= 400:
                        problem = f"the server answered {response.status_code} {response.reason_phrase}"
                        if response.status_code in _AGAIN:
                            continue
                        return problem
                    return _write(response, place, size_cap_bytes)
            except httpx.TransportError as error:
                problem = f"cannot be fetched ({type(error).__name__}: {str(error) or 'no answer'})"
            except (httpx.InvalidURL, httpx.TooManyRedirects, httpx.UnsupportedProtocol) as error:
                return f"cannot be fetched ({error})"
    return f"{problem}, {ATTEMPTS} times"


def _write(response: httpx.Response, place: Path, size_cap_bytes: int) -> str:
    """Streams a body to disk; stops at the cap."""
    size = 0
    with open(place, "wb") as handle:
        for block in response.iter_raw():
            size += len(block)
            if size > size_cap_bytes:
                return f"larger than {size_cap_bytes:,} bytes (ingest.size_cap_bytes)"
            handle.write(block)
    return ""
