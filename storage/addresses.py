"""URLs without what is secret in them: what may be stored, logged and shown, and what a URL is known by.

Providers use hundreds of names for parameters that are secret, so the rule is the other way round: a
query parameter stays only if its name is on a list of harmless ones and its value is a plain word.
Everything else goes with its name: user, password, fragment, path parameters (``;jsessionid=…``),
signatures, expiry times. What is left is the same every night, whatever token or signature the URL has
that night.
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit, urlunsplit

HARMLESS = {  # docs/feeds.md lists them
    "action", "begin", "category", "channel", "channels", "city", "compress", "compression", "country",
    "date", "day", "days", "encoding", "end", "epg", "feed", "format", "from", "genre", "group", "guide",
    "hours", "lang", "language", "languages", "limit", "lineup", "list", "locale", "month", "offset",
    "output", "page", "platform", "provider", "region", "start", "time_zone", "timezone", "to", "type",
    "tz", "version", "week", "xmltv", "year", "zone",
}  # fmt: skip
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
    return "::".join(_one_without_secrets(part) for part in _NEXT_IN_CHAIN.split(url))


def is_sound(url: str) -> bool:
    """Whether the URL can be taken apart: brackets in pairs, a port that is a number, a host for http."""
    try:
        for parts in map(_split, _NEXT_IN_CHAIN.split(url)):
            if parts.scheme in ("http", "https") and not (parts.hostname or "").encode("idna"):
                return False
    except ValueError:
        return False
    return True


def secrets_of(url: str) -> set[str]:
    """The texts in a URL that ``without_secrets`` leaves out, as they are and decoded; for no message."""
    found: set[str] = set()
    for part in _NEXT_IN_CHAIN.split(url):
        user = part.partition("://")[2].rpartition("@")[0]
        for text in (*re.split(r"[?&;#/]", part), *re.split(r"[?&;#/]", unquote(part))):
            name, _, value = text.rstrip("=").partition("=")
            found.add(value or name)
        found |= {user, *user.split(":")}
    kept = without_secrets(url)
    return {
        form
        for text in found
        for form in (text, unquote(text))
        if len(form) >= SHORTEST_SECRET and form not in kept
    }


def differ_in_secrets_only(url: str, other: str) -> bool:
    """Whether two URLs with the same ``without_secrets`` are one feed: nothing that differs chooses."""
    ours, theirs = (dict(parse_qsl(part.partition("?")[2].partition("#")[0])) for part in (url, other))
    return all(ours[name] == theirs[name] or _ROTATING.search(name) for name in ours.keys() & theirs.keys())


def _one_without_secrets(url: str) -> str:
    try:
        parts = _split(url)
    except ValueError:  # what cannot be taken apart may have a password anywhere before the last @
        scheme, _, rest = url.partition("://")
        return f"{scheme}://{re.split(r'[?#;]', rest.rpartition('@')[2])[0]}"
    query = "&".join(parameter for parameter in parts.query.split("&") if _is_harmless(parameter))
    return urlunsplit(
        (parts.scheme, parts.netloc.rpartition("@")[2], re.sub(r";[^/]*", "", parts.path), query, "")
    )


def _is_harmless(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name.lower() in HARMLESS and _PLAIN_VALUE.fullmatch(unquote(value)) is not None


def _split(url: str) -> SplitResult:
    """The parts of a URL.

    Raises:
        ValueError: It is none.
    """
    parts = urlsplit(url)
    _ = parts.port  # raises where it is no number, as in http://user:pass/word@host
    return parts
