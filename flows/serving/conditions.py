"""Evaluates headers of requests: whether a client accepts gzip, and whether its copy of a file is current."""

from email.utils import parsedate_to_datetime

from fastapi import Request


def accepts_gzip(accept_encoding: str) -> bool:
    """Returns whether the value of a header ``Accept-Encoding`` allows gzip."""
    qualities = {}  # quality of each content coding (RFC 9110); 0 forbids the coding
    for part in accept_encoding.lower().split(","):
        coding, _, parameter = part.partition(";")
        try:
            qualities[coding.strip()] = float(parameter.partition("=")[2] or 1)
        except ValueError:
            qualities[coding.strip()] = 0.0
    return qualities.get("gzip", qualities.get("*", 0.0)) > 0


def is_unmodified(request: Request, etag: str, modified_at: float) -> bool:
    """Returns whether the client already has the current version of a file.

    If-Modified-Since is used only if the request has no If-None-Match (RFC 9110, 13.2.2).

    Args:
        request: Request of the client.
        etag: ETag of the current version, in quotes.
        modified_at: Time of the last modification in seconds since 1970.
    """
    if client_etags := request.headers.get("If-None-Match"):
        return etag_matches(client_etags, etag)
    try:
        client_time = parsedate_to_datetime(request.headers.get("If-Modified-Since", ""))
        return int(modified_at) <= client_time.timestamp()
    except (ValueError, TypeError, OverflowError):
        return False


def etag_matches(if_none_match: str, etag: str) -> bool:
    """Returns whether If-None-Match contains ``etag``, by weak comparison (RFC 9110, 8.8.3.2), or ``*``."""
    client_etags = {text.strip().removeprefix("W/") for text in if_none_match.split(",")}
    return not client_etags.isdisjoint({"*", etag})
