"""Redacts URLs for storage, logs and the identity of feeds; checks whether hosts are loopback addresses.

Providers use hundreds of names for secret parameters, so harmless query parameters are listed here, and
everything else is removed: user, password, fragment, path parameters (``;jsessionid=…``) and other query
parameters. The redacted URL of a feed stays the same if its token changes every night.
"""

import ipaddress
import re
import socket
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit, urlunsplit

HARMLESS = {  # docs/feeds.md lists them
    "action", "begin", "category", "channel", "channels", "city", "compress", "compression", "country",
    "date", "day", "days", "encoding", "end", "epg", "feed", "format", "from", "genre", "group", "guide",
    "hours", "lang", "language", "languages", "limit", "lineup", "list", "locale", "month", "offset",
    "output", "page", "platform", "provider", "region", "start", "time_zone", "timezone", "to", "type",
    "tz", "version", "week", "xmltv", "year", "zone",
}  # fmt: skip
# Does not match URLs with a user, a fragment, path parameters or query parameters that are not in HARMLESS.
# It has no flags, because patterns of JSON schema have none.
WITHOUT_SECRETS = (
    rf"^(?:(?!.*://).*|[^?#;@]*(?:\?(?:(?:{'|'.join(sorted(HARMLESS))})=[\w.,:+~*|/ %-]{{0,64}}(?:&|$))*)?)$"
)
MIN_SECRET_LENGTH = 3  # characters; shorter texts occur in any message
_PLAIN_VALUE = re.compile(r"[\w.,:+~*|/ -]{0,64}")
_NEXT_IN_CHAIN = re.compile(r"::(?=[a-z][a-z0-9+.-]*://)", re.IGNORECASE)  # fsspec: zip://*.xml::https://…
_ROTATING = re.compile(  # names of query parameters with tokens or times of expiry
    "token|secret|sig|pass|pwd|key|auth|cred|session|sid|jwt|hash|hmac|user|login|account|expir|policy"
    "|x-(amz|goog|ms|oss)-|^(e|s[a-z]{1,2})$",
    re.IGNORECASE,
)


def without_secrets(url: str) -> str:
    """Removes user, password, fragment and all but the harmless query parameters from a URL or other text."""
    redacted = "::".join(map(_redact_part, _NEXT_IN_CHAIN.split(url)))
    # repeated, because https:////user:password@host has the password in its path
    return redacted if redacted == url else without_secrets(redacted)


def is_loopback(host: str) -> bool:
    """Whether a host name, which is resolved, or an address is reachable from this machine only."""
    if is_loopback_address(host):
        return True
    try:
        addresses = {str(address[0]) for *_, address in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    return host != "" and all(map(is_loopback_address, addresses))  # "" means all interfaces


def is_loopback_address(host: str) -> bool:
    """Whether a host is ``localhost`` or a loopback address. Does not resolve other names."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_valid_url(url: str) -> bool:
    """Whether the URL is valid: balanced brackets, a numeric port, a host for http."""
    try:
        parts = [_split(part) for part in _NEXT_IN_CHAIN.split(url)]
        return all((part.hostname or "").encode("idna") for part in parts if part.scheme in ("http", "https"))
    except ValueError:
        return False


def secrets_of(url: str) -> set[str]:
    """Returns the parts of a URL that ``without_secrets`` removes, raw and decoded, for masking messages."""
    parts: set[str] = set()
    for part in _NEXT_IN_CHAIN.split(url):
        user = part.partition("://")[2].rpartition("@")[0]
        parts |= {user, *user.split(":")}
        for text in (*re.split(r"[?&;#/]", part), *re.split(r"[?&;#/]", unquote(part))):
            name, _, value = text.rstrip("=").partition("=")
            parts.add(value or name)
    redacted = without_secrets(url)
    forms = parts | {unquote(text) for text in parts}
    return {form for form in forms if len(form) >= MIN_SECRET_LENGTH and form not in redacted}


def differ_in_secrets_only(url: str, other: str) -> bool:
    """Whether two URLs with the same redacted form differ in tokens only, and thus name the same feed."""
    left, right = (dict(parse_qsl(part.partition("?")[2].partition("#")[0])) for part in (url, other))
    return all(left[name] == right[name] or _ROTATING.search(name) for name in left.keys() & right.keys())


def _redact_part(url: str) -> str:
    try:
        parts = _split(url)
    except ValueError:  # an invalid URL may have a password anywhere before the last @
        scheme, _, rest = re.sub("[\t\r\n]", "", url).partition("://")  # as urlsplit reads it
        return f"{scheme}://{re.split(r'[?#;]', rest.rpartition('@')[2])[0]}"
    query = "&".join(filter(_is_harmless, parts.query.split("&")))
    host, path = parts.netloc, re.sub(r";[^/]*", "", parts.path)
    if not host and path.startswith("//"):  # http:////user:password@host; Python 3.13 keeps it in the path
        host, slash, rest = path[2:].partition("/")
        path = slash + rest
    return urlunsplit((parts.scheme, host.rpartition("@")[2], path, query, ""))


def _is_harmless(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name.lower() in HARMLESS and _PLAIN_VALUE.fullmatch(unquote(value)) is not None


def _split(url: str) -> SplitResult:
    parts = urlsplit(url)
    _ = parts.port  # raises ValueError if it is not a number, as in http://user:pass/word@host
    return parts
