"""A programme as the guide's text has it: strings only, so that any of them may be wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from xml.sax.saxutils import escape, quoteattr

from sample.schedule import Airing


@dataclass(kw_only=True)
class Record:
    """One ``<programme>``; what is None or empty is left out.

    Attributes:
        titles: (language attribute or None, text), usually one.
        sub_title: In the channel's language.
        episode_numbers: (system, text).
        airing: What it was made from.
    """

    airing: Airing
    channel: str | None
    start: str | None
    stop: str | None
    titles: list[tuple[str | None, str]]
    language: str
    sub_title: str = ""
    date: str = ""
    categories: list[str] = field(default_factory=list)
    episode_numbers: list[tuple[str, str]] = field(default_factory=list)

    def xml(self) -> str:
        """Its element on one line."""
        attributes = {"start": self.start, "stop": self.stop, "channel": self.channel}
        head = "".join(f" {name}={quoteattr(value)}" for name, value in attributes.items() if value is not None)
        body = [f"<title{'' if language is None else f' lang={quoteattr(language)}'}>{escape(text)}</title>" for language, text in self.titles]
        if self.sub_title:
            body.append(f'<sub-title lang="{self.language}">{escape(self.sub_title)}</sub-title>')
        if self.date:
            body.append(f"<date>{self.date}</date>")
        body += [f'<category lang="{self.language}">{escape(category)}</category>' for category in self.categories]
        body += [f'<episode-num system="{system}">{escape(text)}</episode-num>' for system, text in self.episode_numbers]
        return f"<programme{head}>{''.join(body)}</programme>\n"


def write_time(instant: datetime, offset_minutes: int | None) -> str:
    """An instant (UTC) in XMLTV's form in some local time; None leaves the offset out."""
    if offset_minutes is None:
        return instant.strftime("%Y%m%d%H%M%S")
    hours, minutes = divmod(abs(offset_minutes), 60)
    return (instant + timedelta(minutes=offset_minutes)).strftime("%Y%m%d%H%M%S") + f" {'-' if offset_minutes < 0 else '+'}{hours:02}{minutes:02}"


def clean_record(airing: Airing) -> Record:
    """An airing as a careful broadcaster would write it."""
    channel, listing = airing.channel, airing.listing
    return Record(
        airing=airing,
        channel=channel.id,
        start=write_time(airing.start, channel.offset_minutes),
        stop=write_time(airing.stop, channel.offset_minutes),
        titles=[(channel.says, listing.title)],
        language=channel.language,
        date=listing.year,
        categories=list(listing.categories),
    )
