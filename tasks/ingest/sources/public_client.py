"""Defines an HTTP client that connects to public IP addresses only (see private.py).

Only downloads import this module, because it imports httpx, which takes .1 s.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any
from urllib.request import getproxies

import httpcore
import httpx

from tasks.ingest.sources.private import resolve_public_addresses


class _CheckedBackend(httpcore.SyncBackend):
    """Network backend of httpcore that connects only to public IP addresses."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        try:
            addresses = resolve_public_addresses(host, port)
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        for address in addresses[:-1]:
            with suppress(httpcore.ConnectError, httpcore.ConnectTimeout):
                return super().connect_tcp(address, port, timeout, local_address, socket_options)
        return super().connect_tcp(addresses[-1], port, timeout, local_address, socket_options)


class _CheckedTransport(httpx.HTTPTransport):
    """Transport of httpx that connects only to public IP addresses."""

    def __init__(self) -> None:
        super().__init__()
        self._pool = httpcore.ConnectionPool(  # httpx has no parameter for the backend
            ssl_context=httpx.create_ssl_context(), network_backend=_CheckedBackend()
        )


def _check_request(request: httpx.Request) -> None:
    """Raises PrivateAddress if the host of a request has a private address."""
    with suppress(OSError):  # a name that only the proxy can resolve is not checked
        resolve_public_addresses(request.url.host)


def create_public_client(**options: Any) -> httpx.Client:
    """Creates an httpx client whose requests raise PrivateAddress if the host has a private address."""
    if getproxies().keys() & {"http", "https", "all"}:
        return httpx.Client(event_hooks={"request": [_check_request]}, **options)
    return httpx.Client(transport=_CheckedTransport(), **options)
