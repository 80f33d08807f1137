"""Builds the HTTP headers of requests for feeds: User-Agent and the headers in ``ingest.headers``.

Prefect and MLflow store settings, so settings may contain only values of HARMLESS_HEADERS. The value of any
other header is read from an environment variable when the request is made, and is not sent after a redirect
to another host or from https to http.
"""

import importlib.metadata
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from tasks.ingest.sources.feeds import ENV_PREFIX, FeedError

if TYPE_CHECKING:
    import httpx

HARMLESS_HEADERS = "User-Agent", "Accept", "Accept-Language"  # headers whose values contain no secrets
_HARMLESS_NAMES = "|".join((*HARMLESS_HEADERS, *map(str.lower, HARMLESS_HEADERS)))
_ENTRY_BODY = (
    rf'(?:[^"\\ ]+=)?(?:(?:{_HARMLESS_NAMES}): [ !#-\[\]-~]+'
    rf"|[\w!#$%&'*+.^`|~-]+: (?:[A-Za-z]+ )?{ENV_PREFIX}[A-Za-z_][A-Za-z0-9_]*)"
)
# Regular expressions without flags, because a JSON schema cannot have flags. ENTRY_PATTERN matches an entry
# of ingest.headers: [PATTERN=]NAME: VALUE. CHANGE_PATTERN matches an element of the flow parameter
# ``changes``; if the element sets ingest.headers, all entries in it must match ENTRY_PATTERN.
ENTRY_PATTERN = rf"^(?:{_ENTRY_BODY})$"
CHANGE_PATTERN = (
    r"^(?:(?!\s*ingest\s*(?:=|\.\s*headers))[\s\S]*"
    rf'|\s*ingest\.headers\s*=\s*\[\s*(?:"{_ENTRY_BODY}"(?:\s*,\s*"{_ENTRY_BODY}")*)?\s*\]\s*)$'
)
_RESERVED_NAMES = {"accept-encoding", "connection", "content-length", "host", "if-modified-since"}
_RESERVED_NAMES |= {"if-none-match", "range", "te", "trailer", "transfer-encoding", "upgrade"}
_SECRET_VALUE = re.compile(rf"(|[A-Za-z]+ ){ENV_PREFIX}([A-Za-z_]\w*)")


@dataclass(frozen=True)
class Headers:
    """HTTP headers of a request by name. Values in ``secret`` are never shown in messages."""

    plain: dict[str, str] = field(default_factory=dict)
    secret: dict[str, str] = field(default_factory=dict, repr=False)


def check_headers(entries: Sequence[str]) -> None:
    """Raises ValueError for an invalid entry of ``ingest.headers``. Its message contains no header values."""
    for entry in entries:
        _, name, _ = _split_entry(entry)
        if name.lower() in _RESERVED_NAMES:
            raise ValueError(f"ingest.headers: {name} is set by GuideSpace; remove this entry")
        if not re.match(ENTRY_PATTERN, entry):
            header = name if ": " in entry else "(no name)"
            raise ValueError(
                f"ingest.headers: the entry for {header} is not as expected: [PATTERN=]NAME: VALUE for "
                f"{', '.join(HARMLESS_HEADERS)}, else [PATTERN=]NAME: env:VARIABLE, which is not stored"
            )


def request_headers(user_agent: str, entries: Sequence[str], source: str) -> Headers:
    """Returns the HTTP headers of requests for a feed.

    Args:
        user_agent: User-Agent; empty means ``default_user_agent``.
        entries: Entries of ``ingest.headers``. The last matching entry for a header is used.
        source: Name of the feed, which the patterns of the entries must match.

    Raises:
        FeedError: An environment variable is not set, or its value is invalid in a header.
    """
    plain_headers, secret_headers = {}, {}
    for entry in (f"User-Agent: {user_agent or default_user_agent()}", *entries):
        pattern, name, value = _split_entry(entry)
        if pattern and not fnmatchcase(source, pattern):
            continue
        name = name.lower()
        plain_headers.pop(name, None)
        secret_headers.pop(name, None)
        if not (reference := _SECRET_VALUE.fullmatch(value)):
            plain_headers[name] = value
            continue
        text = os.environ.get(reference[2], "").strip()
        if not text or not re.fullmatch("[ -~]+", text):
            problem = "contains characters that are invalid in a header" if text else "is not set, or empty"
            raise FeedError(
                f"{source}: the environment variable {reference[2]} of the header {name} {problem}"
            )
        secret_headers[name] = reference[1] + text
    return Headers(plain_headers, secret_headers)


def default_user_agent() -> str:
    """Returns the default User-Agent, ``GuideSpace/VERSION``."""
    try:
        return f"GuideSpace/{importlib.metadata.version('guidespace')}"
    except importlib.metadata.PackageNotFoundError:
        return "GuideSpace"


def send_secrets_only_to_host(url: str, client: "httpx.Client", headers: Headers) -> None:
    """Configures a client to send secret headers to the host of ``url`` only, even if it redirects."""
    import httpx  # takes .1 s: only commands that download import it

    feed_url = httpx.URL(url)
    origin = feed_url.scheme, feed_url.host, feed_url.port

    def add_secrets(request: httpx.Request) -> None:
        target = request.url
        is_same_origin = (target.scheme, target.host, target.port) == origin
        for name, value in headers.secret.items():
            if is_same_origin or (target.host == feed_url.host and target.scheme == "https"):
                request.headers[name] = value
            else:
                request.headers.pop(name, None)

    client.event_hooks["request"].append(add_secrets)


def retry_after_seconds(headers: Mapping[str, str]) -> float:
    """Returns the header Retry-After in seconds, 0 if it is absent.

    If the header contains a date, the result is the time from the header Date to this date.
    """
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        wait = parsedate_to_datetime(text) - parsedate_to_datetime(headers.get("Date", ""))
    except (ValueError, TypeError):  # not a date, or only one of both dates has a zone
        return 0.0
    return max(0.0, wait.total_seconds())


def _split_entry(entry: str) -> tuple[str, str, str]:
    """Splits an entry ``[PATTERN=]NAME: VALUE`` into pattern, name and value; absent parts are empty."""
    pattern_and_name, _, value = entry.partition(": ")
    pattern, _, name = pattern_and_name.rpartition("=")
    return pattern, name, value
