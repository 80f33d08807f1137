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
# Control characters and lone surrogates, which an iCalendar text must not contain.
_FORBIDDEN_CHARACTERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


def render_calendar(recommendations: Sequence[Recommendation], now: datetime.datetime) -> str:
    """Returns the text of an iCalendar file with CR LF line endings, to be written as UTF-8 with newline="".

    Args:
        recommendations: Recommended programmes, one event per programme.
        now: Instant that the events state as their creation time.
    """
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//GuideSpace//tonight//EN", "CALSCALE:GREGORIAN"]
    for recommendation in recommendations:
        lines += _render_event(recommendation, now)
    return "".join(f"{part}\r\n" for line in [*lines, "END:VCALENDAR"] for part in fold_line(line))


def fold_line(line: str) -> Iterator[str]:
    """Splits an iCalendar line into lines of at most 75 octets. Continuation lines begin with a space."""
    folded_line, size = "", 0
    for character in line:
        octets = len(character.encode())
        if size + octets > MAX_OCTETS:
            yield folded_line
            folded_line, size = " ", 1
        folded_line, size = folded_line + character, size + octets
    yield folded_line


def escape_text(text: str) -> str:
    """Escapes text for an iCalendar property value of type TEXT; removes forbidden characters."""
    text = _FORBIDDEN_CHARACTERS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return re.sub(r"([\\;,])", r"\\\1", text).replace("\n", "\\n")


def _render_event(recommendation: Recommendation, now: datetime.datetime) -> Iterator[str]:
    """Yields the lines of an iCalendar event (VEVENT) for a recommended programme."""
    programme = recommendation.programme
    identity = "\n".join((programme.title, programme.channel, programme.start.isoformat()))
    liked_titles = [f"{reason.title} ({reason.share:.0%})" for reason in recommendation.why if reason.liked]
    explanation = f"Because you like {', '.join(liked_titles)}" if liked_titles else ""
    description = "\n".join(filter(None, (programme.sub_title, programme.description, explanation)))
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
    """Formats a datetime with a time zone as an iCalendar date-time in UTC."""
    return f"{moment.astimezone(datetime.UTC):%Y%m%dT%H%M%SZ}"
