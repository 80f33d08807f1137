"""No feed from a private address, unless ``ingest.private_addresses`` allows it (against request forgery).

Who may start runs could otherwise have this machine ask what only it reaches: services on loopback, the
local network, the metadata of a cloud's machine. Over http(s) a name is resolved once, all its addresses
are checked and the connection goes to the checked one, also after a redirect; a name server that answers
otherwise a moment later changes nothing. Through a proxy (HTTPS_PROXY) it is the proxy that connects: what
this machine can resolve is checked before each request.

Other schemes connect by libraries of their own: the host is checked before. http(s) inside of another address
(``zip://*.xml::https://…``) would follow redirects unchecked: it is refused.
"""

import ipaddress
import re
import socket
from collections.abc import Iterable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import httpcore
import httpx

_WITH_HOSTS = {"ftp", "sftp", "ssh", "smb", "webhdfs", "hdfs", "dask"}  # of others it is a bucket, or nothing
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
ADVICE = "ingest.private_addresses=true allows it"


class PrivateAddress(Exception):
    """A feed's host has a private address; the message says so and names the setting."""


def is_private(address: str) -> bool:
    """Whether an IP address is not one of the public internet, also where IPv6 carries an IPv4 address."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        carried = found.ipv4_mapped or found.sixtofour
        if found in _NAT64:
            carried = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        found = carried or found
    return not found.is_global or found.is_multicast


def public_addresses(host: str, port: int | None = None) -> list[str]:
    """The addresses of a host, each checked.

    Raises:
        PrivateAddress: One of them is private.
        OSError: The name has none.
    """
    found = dict.fromkeys(
        str(about[4][0]) for about in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    )
    if any(map(is_private, found)):
        raise PrivateAddress(f"its host has a private address ({', '.join(found)}); {ADVICE}")
    return list(found)


def check_address(url: str) -> None:
    """Checks the hosts of a URL that fsspec will open; raises as ``public_addresses``."""
    for place, part in enumerate(re.split("::", url)):
        parts = urlsplit(part)
        if place and parts.scheme.lower() in ("http", "https"):
            raise PrivateAddress(f"http inside of another address is not checked; {ADVICE}, or give it alone")
        if parts.scheme.lower() in _WITH_HOSTS and parts.hostname:
            public_addresses(parts.hostname)


class _Checked(httpcore.SyncBackend):
    """Connects to the address that was checked."""

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
        raise AssertionError("a host without addresses")


class _CheckedTransport(httpx.HTTPTransport):
    def __init__(self) -> None:
        super().__init__()
        self._pool = httpcore.ConnectionPool(  # httpx has no argument for it
            ssl_context=httpx.create_ssl_context(), network_backend=_Checked()
        )


def _check_request(request: httpx.Request) -> None:
    with suppress(OSError):  # a name that the proxy alone knows
        public_addresses(request.url.host)


def public_client(**options: Any) -> httpx.Client:
    """A client of http(s) that connects to public addresses only; its requests raise PrivateAddress."""
    if getproxies().keys() & {"http", "https", "all"}:
        return httpx.Client(event_hooks={"request": [_check_request]}, **options)
    return httpx.Client(transport=_CheckedTransport(), **options)
