"""Rejects feeds from private IP addresses unless ``ingest.private_addresses`` is set.

This prevents server-side request forgery: anyone who can start runs could otherwise read data that only this
machine can reach, such as services on loopback, the local network, or the metadata service of a cloud. For
http(s), a host name is resolved once, all addresses are checked, and the connection uses a checked address,
also after a redirect. This prevents DNS rebinding. A proxy (HTTPS_PROXY) makes connections itself; then the
host is checked before each request, unless this machine cannot resolve its name.

The libraries for other schemes resolve host names and make connections themselves. Therefore, the addresses
of the host are checked before the download, but the address of the connection is not. http(s) inside another
URL (``zip://*.xml::https://…``) is refused, because its redirects cannot be checked.
"""

import ipaddress
import re
import socket
from urllib.parse import urlsplit

_HOST_SCHEMES = {"ftp", "sftp", "ssh", "smb", "webhdfs", "hdfs", "dask"}  # schemes of URLs with a host name
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
ADVICE = "ingest.private_addresses=true allows it"


class PrivateAddress(Exception):
    """Error: the host of a feed has a private IP address. The message names the setting that permits it."""


def is_private(address: str) -> bool:
    """Returns whether an IP address, or the IPv4 address that is embedded in an IPv6 address, is private."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        embedded_address = ip.ipv4_mapped or ip.sixtofour
        if ip in _NAT64:
            embedded_address = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        ip = embedded_address or ip
    return not ip.is_global or ip.is_multicast


def resolve_public_addresses(host: str, port: int | None = None) -> list[str]:
    """Resolves a host name and returns its IP addresses if all of them are public.

    Raises:
        PrivateAddress: One of the addresses is private.
        OSError: The host name cannot be resolved.
    """
    addresses = dict.fromkeys(
        str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    )
    if any(map(is_private, addresses)):
        raise PrivateAddress(f"its host has a private address ({', '.join(addresses)}); {ADVICE}")
    return list(addresses)


def check_address(url: str) -> None:
    """Raises PrivateAddress if a host in a URL for fsspec has a private address.

    Raises:
        PrivateAddress: A host has a private address, or the URL contains another http URL.
        OSError: A host name cannot be resolved.
    """
    for number, inner_url in enumerate(re.split("::", url)):
        parts = urlsplit(inner_url)
        if number and parts.scheme.lower() in ("http", "https"):
            raise PrivateAddress(f"http inside another URL cannot be checked; use http alone, or {ADVICE}")
        if parts.scheme.lower() in _HOST_SCHEMES and parts.hostname:
            resolve_public_addresses(parts.hostname)
