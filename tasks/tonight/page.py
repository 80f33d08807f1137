"""Renders tonight.html: a timeline of the evening, the recommended programmes with reasons, and like buttons.

The page sends no data: viewers save their likes as a file for ``guidespace like --from``. The likes are also
in the fragment of the URL, so that a link to the page contains them.
"""

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tasks.pages import encode_data, render_page
from tasks.tonight.choose import Recommendation
from tasks.tonight.programmes import Airing, Programme

FOLDER = Path(__file__).parent


def render_tonight(
    recommendations: Sequence[Recommendation],
    viewer: str,
    begin: datetime.datetime,
    end: datetime.datetime,
    zone: str = "",
) -> str:
    """Returns tonight.html as text, to be written as UTF-8.

    Args:
        recommendations: List of one viewer, best first; may be empty.
        viewer: Name of the viewer on the page and in the file of likes; "" for an anonymous page.
        begin: Begin of the evening.
        end: End of the evening.
        zone: IANA name of the time zone of the page; "" for the zone of the browser.
    """
    heading = f"Tonight for {viewer}" if viewer else "Tonight"
    data = {
        "viewer": viewer,
        "begin": _to_minutes(begin),
        "end": _to_minutes(end),
        "zone": zone,
        "programmes": [_programme_data(recommendation) for recommendation in recommendations],
    }
    template, style, script = (FOLDER / f"tonight.{suffix}" for suffix in ("html", "css", "js"))
    return render_page(template, heading, style, encode_data(data), [script])


def programme_marks(programme: Programme) -> list[str]:
    """Returns the labels of a programme: new, premiere or repeat, and at most two age ratings."""
    states = {
        "premiere": programme.is_premiere,
        "new": programme.is_new and not programme.is_premiere,
        "repeat": programme.is_repeat,
    }
    return [name for name, is_shown in states.items() if is_shown] + list(programme.ratings[:2])


def _programme_data(recommendation: Recommendation) -> dict[str, Any]:
    """Returns the data of a recommended programme that tonight.js shows."""
    programme = recommendation.programme
    return {
        "rank": recommendation.rank,
        "title": programme.title,
        "subTitle": programme.sub_title,
        "episode": programme.episode,
        "description": programme.description,
        "categories": list(programme.categories),
        "marks": programme_marks(programme),
        "icon": recommendation.icon if recommendation.icon.startswith(("https://", "http://")) else "",
        "people": [[person.name, person.role, person.title] for person in recommendation.people],
        **_airing_data(programme),
        "also": [_airing_data(airing) for airing in programme.also],
        "why": [[reason.title, reason.share, reason.liked] for reason in recommendation.why],
        "change": recommendation.counterfactual,
    }


def _airing_data(airing: Airing) -> dict[str, Any]:
    """Returns the data of an airing that tonight.js shows."""
    stop = airing.stop and _to_minutes(airing.stop)
    return {"start": _to_minutes(airing.start), "stop": stop, "channel": airing.channel}


def _to_minutes(moment: datetime.datetime) -> int:
    """Converts a time to minutes since 1970-01-01 UTC."""
    return int(moment.timestamp()) // 60
