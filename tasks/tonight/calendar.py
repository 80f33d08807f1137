"""Renders a list of recommendations as an iCalendar file with one event per programme.

References: Desruisseaux (ed.), *Internet Calendaring and Scheduling Core Object Specification (iCalendar)*,
RFC 5545, 2009: lines are folded at 75 octets (section 3.1), text is escaped (3.3.11), and events need
DTSTAMP, UID and DTSTART (3.6.1).
"""

import datetime
import hashlib
import re
from collections.abc import Iterator, Sequence

from tasks.tonight.choose import Recommendation

MAX_OCTETS = 75  # maximum length of a line without CR LF
# Control characters and lone surrogates, which are not allowed in text.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


def render_calendar(recommendations: Sequence[Recommendation], now: datetime.datetime) -> str:
    """Returns an iCalendar file as text with CR LF line endings; write it as UTF-8 with newline=""."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//GuideSpace//tonight//EN", "CALSCALE:GREGORIAN"]
    for recommendation in recommendations:
        lines += _render_event(recommendation, now)
    return "".join(f"{part}\r\n" for line in [*lines, "END:VCALENDAR"] for part in fold_line(line))


def fold_line(line: str) -> Iterator[str]:
    """Splits an iCalendar line into lines of at most 75 octets. Continuation lines begin with a space."""
    part, size = "", 0
    for letter in line:
        octets = len(letter.encode())
        if size + octets > MAX_OCTETS:
            yield part
            part, size = " ", 1
        part, size = part + letter, size + octets
    yield part


def escape_text(text: str) -> str:
    """Escapes text for an iCalendar property value of type TEXT."""
    text = _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return re.sub(r"([\\;,])", r"\\\1", text).replace("\n", "\\n")


def _render_event(recommendation: Recommendation, now: datetime.datetime) -> Iterator[str]:
    """Yields the lines of an iCalendar event (VEVENT) for a recommended programme."""
    programme = recommendation.programme
    identity = "\n".join((programme.title, programme.channel, programme.start.isoformat()))
    liked = [f"{why.title} ({why.share:.0%})" for why in recommendation.why if why.liked]
    reason = f"Because you like {', '.join(liked)}" if liked else ""
    description = "\n".join(filter(None, (programme.sub_title, programme.description, reason)))
    yield "BEGIN:VEVENT"
    yield f"UID:{hashlib.sha256(identity.encode('utf-8', 'replace')).hexdigest()[:32]}@guidespace"
    yield f"DTSTAMP:{_format_utc(now)}"
    yield f"DTSTART:{_format_utc(programme.start)}"
    if programme.stop is not None and programme.stop > programme.start:
        yield f"DTEND:{_format_utc(programme.stop)}"
    yield f"SUMMARY:{escape_text(programme.title)}"
    yield f"LOCATION:{escape_text(programme.channel)}"
    if description:
        yield f"DESCRIPTION:{escape_text(description)}"
    if programme.categories:
        yield f"CATEGORIES:{','.join(map(escape_text, programme.categories))}"
    yield "TRANSP:TRANSPARENT"  # the event does not mark the viewer as busy
    yield "END:VEVENT"


def _format_utc(moment: datetime.datetime) -> str:
    """Formats a time-zone aware datetime as an iCalendar date-time in UTC."""
    return f"{moment.astimezone(datetime.UTC):%Y%m%dT%H%M%SZ}"
