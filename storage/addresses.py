"""Removes secrets from URLs before they are stored, logged or compared; recognizes loopback hosts.

Providers use hundreds of names for secret query parameters. This module therefore lists the harmless ones
and removes everything else: user, password, fragment, path parameters (``;jsessionid=…``) and all other query
parameters. The redacted URL identifies a feed, because it stays the same if a token changes every night.
"""

import ipaddress
import re
import socket
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit, urlunsplit

HARMLESS_PARAMETERS = {  # names of query parameters that are kept; docs/feeds.md lists them
    "action", "begin", "category", "channel", "channels", "city", "compress", "compression", "country",
    "date", "day", "days", "encoding", "end", "epg", "feed", "format", "from", "genre", "group", "guide",
    "hours", "lang", "language", "languages", "limit", "lineup", "list", "locale", "month", "offset",
    "output", "page", "platform", "provider", "region", "start", "time_zone", "timezone", "to", "type",
    "tz", "version", "week", "xmltv", "year", "zone",
}  # fmt: skip
# A URL without secrets matches this pattern: it has no user, no fragment, no path parameters, and only query
# parameters in HARMLESS_PARAMETERS. The pattern has no flags, because a JSON schema does not permit any.
_HARMLESS_NAME_PATTERN = "|".join(sorted(HARMLESS_PARAMETERS))
SECRET_FREE_PATTERN = (
    rf"^(?:(?!.*://).*|[^?#;@]*(?:\?(?:(?:{_HARMLESS_NAME_PATTERN})=[\w.,:+~*|/ %-]{{0,64}}(?:&|$))*)?)$"
)
MIN_SECRET_LENGTH = 3  # characters; shorter texts also occur in messages by chance
_HARMLESS_VALUE = re.compile(r"[\w.,:+~*|/ -]{0,64}")
# fsspec chains URLs: zip://*.xml::https://…
_CHAIN_SEPARATOR = re.compile(r"::(?=[a-z][a-z0-9+.-]*://)", re.IGNORECASE)
_TOKEN_PARAMETER = re.compile(  # matches names of query parameters that contain tokens or times of expiry
    "token|secret|sig|pass|pwd|key|auth|cred|session|sid|jwt|hash|hmac|user|login|account|expir|policy"
    "|x-(amz|goog|ms|oss)-|^(e|s[a-z]{1,2})$",
    re.IGNORECASE,
)


def without_secrets(url: str) -> str:
    """Removes user, password, fragment and all but the harmless query parameters from a URL or other text."""
    redacted_url = "::".join(map(_redact_single_url, _CHAIN_SEPARATOR.split(url)))
    # The function calls itself, because https:////user:password@host has the password in its path.
    return redacted_url if redacted_url == url else without_secrets(redacted_url)


def is_loopback(host: str) -> bool:
    """Resolves a host name or an IP address and returns whether it is reachable from this machine only."""
    if is_loopback_address(host):
        return True
    try:
        addresses = {str(address[0]) for *_, address in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    return host != "" and all(map(is_loopback_address, addresses))  # "" means all interfaces


def is_loopback_address(host: str) -> bool:
    """Returns whether a host is ``localhost`` or a loopback address. Does not resolve other host names."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_valid_url(url: str) -> bool:
    """Returns whether a URL is valid: balanced brackets, a numeric port, and a host if it is an HTTP URL."""
    try:
        split_urls = [_split_url(single_url) for single_url in _CHAIN_SEPARATOR.split(url)]
        http_urls = (split_url for split_url in split_urls if split_url.scheme in ("http", "https"))
        return all((split_url.hostname or "").encode("idna") for split_url in http_urls)
    except ValueError:
        return False


def find_secrets(url: str) -> set[str]:
    """Returns the secrets of a URL, which ``without_secrets`` removes, to remove them from messages as well.

    Each secret is returned twice: as in the URL, and percent-decoded.
    """
    candidates: set[str] = set()
    for single_url in _CHAIN_SEPARATOR.split(url):
        credentials = single_url.partition("://")[2].rpartition("@")[0]
        candidates |= {credentials, *credentials.split(":")}
        for text in (*re.split(r"[?&;#/]", single_url), *re.split(r"[?&;#/]", unquote(single_url))):
            name, _, value = text.rstrip("=").partition("=")
            candidates.add(value or name)
    redacted_url = without_secrets(url)
    candidates |= {unquote(text) for text in candidates}
    return {text for text in candidates if len(text) >= MIN_SECRET_LENGTH and text not in redacted_url}


def differ_in_secrets_only(url: str, other_url: str) -> bool:
    """Returns whether two URLs, which are equal without their secrets, identify the same feed.

    The feed is the same if all query parameters that differ have names of tokens or of times of expiry.
    """
    parameters, other_parameters = (
        dict(parse_qsl(text.partition("?")[2].partition("#")[0])) for text in (url, other_url)
    )
    return all(
        parameters[name] == other_parameters[name] or _TOKEN_PARAMETER.search(name)
        for name in parameters.keys() & other_parameters.keys()
    )


def _redact_single_url(url: str) -> str:
    """Redacts a single URL of a chain of URLs."""
    try:
        split_url = _split_url(url)
    except ValueError:  # an invalid URL may have a password anywhere before the last @
        scheme, _, address = re.sub("[\t\r\n]", "", url).partition("://")  # urlsplit removes these characters
        return f"{scheme}://{re.split(r'[?#;]', address.rpartition('@')[2])[0]}"
    query = "&".join(filter(_is_harmless_parameter, split_url.query.split("&")))
    host, path = split_url.netloc, re.sub(r";[^/]*", "", split_url.path)
    if not host and path.startswith("//"):  # http:////user:password@host; Python 3.13 keeps it in the path
        host, slash, subpath = path[2:].partition("/")
        path = slash + subpath
    return urlunsplit((split_url.scheme, host.rpartition("@")[2], path, query, ""))


def _is_harmless_parameter(parameter: str) -> bool:
    """Returns whether a query parameter ``name=value`` may be shown, because it contains no secret."""
    name, _, value = parameter.partition("=")
    return name.lower() in HARMLESS_PARAMETERS and _HARMLESS_VALUE.fullmatch(unquote(value)) is not None


def _split_url(url: str) -> SplitResult:
    split_url = urlsplit(url)
    _ = split_url.port  # raises ValueError if it is not a number, as in http://user:pass/word@host
    return split_url
