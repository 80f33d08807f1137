"""Requests to a Prefect server that other tests keep busy."""

import contextlib
import time
from collections.abc import Callable
from typing import Any

import httpx


def ask_until_answered(ask: Callable[[], httpx.Response], *passing: type[Exception]) -> httpx.Response:
    """The answer, asked for again while the server is busy (503 on SQLite), as Prefect's own clients do.

    Args:
        ask: Sends the request.
        passing: Errors after which it may be asked for again: what was asked changes nothing.
    """
    for _ in range(20):
        with contextlib.suppress(*passing):
            response = ask()
            if response.status_code != 503:
                return response
        time.sleep(0.5)
    return ask()


def post_until_answered(api: httpx.Client, path: str, content: object = None) -> Any:
    """Sends a POST request that must succeed; returns the answer, None if it is empty."""
    passing = [httpx.TimeoutException] if path.endswith("/filter") else []  # a filter only reads
    response = ask_until_answered(
        lambda: api.post(path, json=content if content is not None else {}), *passing
    )
    assert response.is_success, f"{path}: {response.status_code} {response.text}"
    return response.json() if response.content else None
