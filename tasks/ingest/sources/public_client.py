"""HTTP client that connects to public IP addresses only (private.py); httpx is imported only to download."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any
from urllib.request import getproxies

import httpcore
import httpx

from tasks.ingest.sources.private import public_addresses


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
            addresses = public_addresses(host, port)
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        for last, address in enumerate(addresses, 1 - len(addresses)):
            try:
                return super().connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if not last:
                    raise
        raise AssertionError("host without addresses")


class _CheckedTransport(httpx.HTTPTransport):
    def __init__(self) -> None:
        super().__init__()
        self._pool = httpcore.ConnectionPool(  # httpx has no parameter for the backend
            ssl_context=httpx.create_ssl_context(), network_backend=_CheckedBackend()
        )


def _check_request(request: httpx.Request) -> None:
    with suppress(OSError):  # a name that only the proxy can resolve is not checked
        public_addresses(request.url.host)


def public_client(**options: Any) -> httpx.Client:
    """Creates an httpx client whose requests raise PrivateAddress if the host has a private address."""
    if getproxies().keys() & {"http", "https", "all"}:
        return httpx.Client(event_hooks={"request": [_check_request]}, **options)
    return httpx.Client(transport=_CheckedTransport(), **options)
