"""URLs without secrets: what may be stored, logged and shown, and what identifies a feed; who reaches a host.

Providers use hundreds of names for secret parameters, so this is an allow list of query parameters with plain
values. User, password, fragment, path parameters (``;jsessionid=…``) and all else are removed, so the result
is the same every night, whatever the token of that night.
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
# What is stored as given: no URL with a user, a fragment, path parameters or other parameters than these. For
# JSON schema, whose patterns know no flags.
WITHOUT_SECRETS = (
    rf"^(?:(?!.*://).*|[^?#;@]*(?:\?(?:(?:{'|'.join(sorted(HARMLESS))})=[\w.,:+~*|/ %-]{{0,64}}(?:&|$))*)?)$"
)
SHORTEST_SECRET = 3  # characters; shorter ones are found in any message
_PLAIN_VALUE = re.compile(r"[\w.,:+~*|/ -]{0,64}")
_NEXT_IN_CHAIN = re.compile(r"::(?=[a-z][a-z0-9+.-]*://)", re.IGNORECASE)  # fsspec: zip://*.xml::https://…
_ROTATING = re.compile(
    "token|secret|sig|pass|pwd|key|auth|cred|session|sid|jwt|hash|hmac|user|login|account|expir|policy"
    "|x-(amz|goog|ms|oss)-|^(e|s[a-z]{1,2})$",
    re.IGNORECASE,
)


def without_secrets(url: str) -> str:
    """The URL without user, password, fragment and all query parameters but harmless ones; of any text."""
    left = "::".join(map(_one_without_secrets, _NEXT_IN_CHAIN.split(url)))
    return left if left == url else without_secrets(left)  # https:////user:password@host has them in its path


def is_loopback(host: str) -> bool:
    """Whether a host, which is a name or an address, is reached from this machine only. Resolves names."""
    if is_loopback_address(host):
        return True
    try:
        found = {str(address[0]) for *_, address in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    return host != "" and all(map(is_loopback_address, found))  # servers listen everywhere for ""


def is_loopback_address(host: str) -> bool:
    """Whether a host is ``localhost`` or an address of the loopback interface. Resolves no other name."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_sound(url: str) -> bool:
    """Whether the URL is valid: balanced brackets, a numeric port, a host for http."""
    try:
        parts = [_split(part) for part in _NEXT_IN_CHAIN.split(url)]
        return all((part.hostname or "").encode("idna") for part in parts if part.scheme in ("http", "https"))
    except ValueError:
        return False


def secrets_of(url: str) -> set[str]:
    """The texts of a URL that ``without_secrets`` leaves out, as they are and decoded: for no message."""
    found: set[str] = set()
    for part in _NEXT_IN_CHAIN.split(url):
        user = part.partition("://")[2].rpartition("@")[0]
        found |= {user, *user.split(":")}
        for text in (*re.split(r"[?&;#/]", part), *re.split(r"[?&;#/]", unquote(part))):
            name, _, value = text.rstrip("=").partition("=")
            found.add(value or name)
    kept = without_secrets(url)
    forms = found | {unquote(text) for text in found}
    return {form for form in forms if len(form) >= SHORTEST_SECRET and form not in kept}


def differ_in_secrets_only(url: str, other: str) -> bool:
    """Whether two URLs with the same ``without_secrets`` are one feed: they differ in tokens alone."""
    ours, theirs = (dict(parse_qsl(part.partition("?")[2].partition("#")[0])) for part in (url, other))
    return all(ours[name] == theirs[name] or _ROTATING.search(name) for name in ours.keys() & theirs.keys())


def _one_without_secrets(url: str) -> str:
    try:
        parts = _split(url)
    except ValueError:  # an invalid one may have a password anywhere before the last @
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
    _ = parts.port  # raises ValueError where it is no number, as in http://user:pass/word@host
    return parts
