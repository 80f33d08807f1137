"""Toy feeds, and a function that merges them."""

import datetime
import re
from pathlib import Path

import lxml.etree as etree

from tasks.enrich.source import Source
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.feeds import Feed
from tasks.merge.merge import Report, open_merger
from tasks.merge.settings import MergeSettings

NOW = datetime.datetime(2025, 3, 1, 12, tzinfo=datetime.UTC)


def programme(
    start: str, stop: str | None, title: str, channel: str = "one", more: str = "", zone: str = " +0000"
) -> str:
    """Returns a programme of 1 March 2025; times are ``HHMM``, or ``DDHHMM`` for another day."""
    times = [f"202503{time if len(time) == 6 else '01' + time}00{zone}" for time in (start, stop) if time]
    stop_text = f' stop="{times[1]}"' if stop else ""
    attributes = f'start="{times[0]}"{stop_text} channel="{channel}"'
    return f"<programme {attributes}><title>{title}</title>{more}</programme>"


def channel(id_: str, *names: str) -> str:
    return (
        f'<channel id="{id_}">{"".join(f"<display-name>{name}</display-name>" for name in names)}</channel>'
    )


def feed(*elements: str) -> bytes:
    return f"<tv>{''.join(elements)}</tv>".encode()


class Merger:
    """Merges feeds in a folder; ``table`` is the file of proposals."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.table = folder / "channels.csv"
        self.report: Report

    def __call__(
        self, *feeds: bytes, playlist: str | bytes = "", zones: tuple[str, ...] = (), now=NOW, **settings
    ) -> bytes:
        if playlist:
            file = self.folder / "list.m3u"
            file.write_bytes(playlist if isinstance(playlist, bytes) else playlist.encode())
            settings["playlist"] = str(file)
        sources = []
        for number, content in enumerate(feeds):
            file = self.folder / f"feed{number}.xml"
            file.write_bytes(content)
            described = Feed(source=f"feed{number}", file=file, content_digest="", bytes=len(content))
            zone = IngestSettings(zones=zones).zone(f"feed{number}")
            sources.append(Source(described, 1 << 30, zone, "UTC"))
        work = self.folder / "work"
        work.mkdir(exist_ok=True)
        merger = open_merger(sources, MergeSettings(**settings), work, now, self.table)
        self.report = merger.report
        return b"".join(merger.pieces())


def airings(guide: bytes, channel: str | None = None) -> list[tuple[str, str, str]]:
    """Returns (start, stop, title) of each programme of a channel; times are ``DDHHMM`` in UTC."""
    found = []
    for element in etree.fromstring(guide).iter("programme"):
        if channel in (None, element.get("channel")):
            times = [element.get(name) or "" for name in ("start", "stop")]
            found.append((*(time[6:12] for time in times), element.findtext("title") or ""))
    return found


def channels(guide: bytes) -> dict[str, list[str]]:
    """Returns the names of the channels by id."""
    tree = etree.fromstring(guide)
    return {
        element.get("id", ""): [name.text or "" for name in element.iter("display-name")]
        for element in tree.iter("channel")
    }


def untagged(guide: bytes) -> list[bytes]:
    return re.findall(rb"<programme.*?</programme>", guide, re.DOTALL)
