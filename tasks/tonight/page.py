"""Renders tonight.html: a time line of the evening, the programmes with their reasons, and like buttons.

The page sends nothing: viewers save their choices as a file for ``guidespace like --from``. The URL fragment
contains the choices as well, so that a link opens the page with the same choices.
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
    """Renders the page, to be written as UTF-8.

    Args:
        recommendations: The list, best first; may be empty.
        viewer: Name of the viewer on the page and in the file of choices; "" for none.
        begin: Begin of the evening.
        end: End of the evening.
        zone: IANA name of the zone of the times; "": that of the browser.
    """
    heading = f"Tonight for {viewer}" if viewer else "Tonight"
    data = {
        "viewer": viewer,
        "begin": _minute(begin),
        "end": _minute(end),
        "zone": zone,
        "programmes": [_programme(recommendation) for recommendation in recommendations],
    }
    parts = (
        FOLDER / "tonight.html",
        heading,
        FOLDER / "tonight.css",
        encode_data(data),
        [FOLDER / "tonight.js"],
    )
    return render_page(*parts)


def programme_marks(programme: Programme) -> list[str]:
    """Returns what to show beside the categories: new, premiere or repeat, and the age ratings."""
    states = {
        "premiere": programme.is_premiere,
        "new": programme.is_new and not programme.is_premiere,
        "repeat": programme.is_repeat,
    }
    return [name for name, is_shown in states.items() if is_shown] + list(programme.ratings[:2])


def _programme(recommendation: Recommendation) -> dict[str, Any]:
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
        **_airing(programme),
        "also": [_airing(airing) for airing in programme.also],
        "why": [[why.title, why.share, why.liked] for why in recommendation.why],
        "change": recommendation.counterfactual,
    }


def _airing(airing: Airing) -> dict[str, Any]:
    stop = airing.stop and _minute(airing.stop)
    return {"start": _minute(airing.start), "stop": stop, "channel": airing.channel}


def _minute(moment: datetime.datetime) -> int:
    return int(moment.timestamp()) // 60
