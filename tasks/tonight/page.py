"""The page tonight.html: the evening as a time line, each programme with its reasons, and likes to hand back.

A choice on it stays on it: the viewer saves them as a file for ``guidespace like --from``, and the address
holds them, so that a link opens the page with the same choices.
"""

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tasks.pages import encode_data, render_page
from tasks.tonight.choose import Recommendation
from tasks.tonight.programmes import Airing

HERE = Path(__file__).parent


def render_tonight(
    found: Sequence[Recommendation], viewer: str, begin: datetime.datetime, end: datetime.datetime
) -> str:
    """Renders the page, to be written as UTF-8.

    Args:
        found: The list, best first; none gives a page that says so.
        viewer: How the page names the viewer, which likes handed back are then of; "" for nobody.
        begin: Of the evening.
        end: Of the evening.
    """
    heading = f"Tonight for {viewer}" if viewer else "Tonight"
    data = {
        "viewer": viewer,
        "begin": _minute(begin),
        "end": _minute(end),
        "programmes": [_programme(one) for one in found],
    }
    parts = HERE / "tonight.html", heading, HERE / "tonight.css", encode_data(data), [HERE / "tonight.js"]
    return render_page(*parts)


def _programme(one: Recommendation) -> dict[str, Any]:
    programme = one.programme
    return {
        "rank": one.rank,
        "title": programme.title,
        "subTitle": programme.sub_title,
        "episode": programme.episode,
        "description": programme.description,
        "categories": list(programme.categories),
        **_airing(programme),
        "also": [_airing(airing) for airing in programme.also],
        "why": [[why.title, why.share, why.liked] for why in one.why],
        "change": one.change,
    }


def _airing(airing: Airing) -> dict[str, Any]:
    stop = airing.stop and _minute(airing.stop)
    return {"start": _minute(airing.start), "stop": stop, "channel": airing.channel}


def _minute(moment: datetime.datetime) -> int:
    return int(moment.timestamp()) // 60
