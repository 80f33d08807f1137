"""Evenings in a few lines: rows of coming programmes, and lists."""

import datetime
from typing import Any

import pyarrow as pa

from storage.catalogue.evening import DETAIL_TYPES
from storage.episodes.numbers import read_episode
from tasks.tonight.choose import Recommendation, RecommendationReason
from tasks.tonight.programmes import Airing, Programme

EVENING = datetime.datetime(2026, 1, 14, 18, tzinfo=datetime.UTC)


def at(clock: str) -> datetime.datetime:
    """Parses "20:15" of the evening, or "25:00" of the night after it."""
    hour, minute = map(int, clock.split(":"))
    return EVENING.replace(hour=0) + datetime.timedelta(hours=hour, minutes=minute)


def coming(*rows: tuple, days: int = 1) -> pa.Table:
    """Makes upcoming programmes: (start, stop, channel, title, sub-title, episode number, other columns)."""
    made = []
    for number, row in enumerate(rows):
        start, stop, channel, title, *_ = row
        sub_title, episode = (*row[4:6], "", "")[:2]
        columns: dict[str, Any] = row[6] if len(row) > 6 else {}
        about = {
            "start": at(start),
            "stop": stop and at(stop),
            "channel": f"{channel}.id",
            "channel_name": channel,
        }
        about |= {"title": title, "sub_title": sub_title, "categories": ["Crime"], "days": days}
        about |= dict.fromkeys(DETAIL_TYPES) | {"row": number} | columns
        about |= read_episode([("", episode)], title, sub_title)._asdict() | {"description": ""}
        made.append(
            about
            | {
                key: value and value.replace(tzinfo=None)
                for key, value in about.items()
                if key in ("start", "stop")
            }
        )
    return pa.Table.from_pylist(made)


def recommendation(rank: int = 1, **changes: object) -> Recommendation:
    """Makes a programme on a list."""
    about: dict[str, Any] = {"start": at("20:15"), "stop": at("21:45"), "channel": "One"}
    about |= {"title": f"Show {rank}", "categories": (), "regular": False}
    about |= dict.fromkeys(("sub_title", "episode", "description"), "") | changes
    extra = {name: about.pop(name) for name in ("credits", "icon", "people") if name in about}
    programme = Programme(**about)
    why = (
        RecommendationReason(title="Midsomer Murders", share=0.9, liked=True),
        RecommendationReason(title="Newsnight", share=0.1, liked=False),
    )
    return Recommendation(viewer="0" * 32, rank=rank, score=1.0, programme=programme, why=why, **extra)


LATER = Airing(start=at("21:15"), stop=at("22:45"), channel="One +1")
