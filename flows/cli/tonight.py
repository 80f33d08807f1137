"""The command ``guidespace tonight``: a viewer's list, on a terminal and as files; without PyTorch."""

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from storage.catalogue.likes import hash_viewer, read_likes
from storage.home.workspace import Workspace
from storage.json_file import write_json
from tasks.recommend import FactorisedLikes, Popularity
from tasks.tonight.calendar import render_calendar
from tasks.tonight.choose import Recommendation
from tasks.tonight.evening import TonightError, open_evening
from tasks.tonight.page import render_tonight
from tasks.tonight.settings import TONIGHT, TonightSettings
from tasks.tonight.table import to_table

FORMS = ".html", ".ics", ".json", ".parquet"
ALSO = 4  # further airings named on a terminal


def list_tonight(
    home: str,
    viewer: str,
    begin: datetime.datetime,
    end: datetime.datetime,
    settings: TonightSettings = TONIGHT,
) -> list[Recommendation]:
    """The programmes from ``begin`` to before ``end`` for one viewer, best first.

    The likes of other viewers are read only if the recommender uses them.

    Raises:
        TonightError: The guide has no programme then, or nothing is known of the viewer.
        HomeError: There is no guide, or no model serves.
    """
    folder = Workspace(home, create=False).home
    code = hash_viewer(folder, viewer)
    uses_all_viewers = isinstance(settings.recommender, FactorisedLikes | Popularity)
    opinions, seen = read_likes(folder, None if uses_all_viewers else code)
    if code not in opinions["viewer"].to_pylist():
        like = 'run `guidespace like "TITLE"` for some titles first, or `guidespace like --from FILE`'
        raise TonightError(f"nothing is known of what {viewer!r} likes; {like}")
    evening = open_evening(folder, begin, end, opinions, seen, settings)
    return evening.add_counterfactuals(next(evening.recommend([code])))


def tonight_lines(found: Sequence[Recommendation], zone: datetime.tzinfo) -> Iterator[str]:
    """A list as text, times in a zone."""
    width = min(48, max((len(one.programme.title) for one in found), default=0))
    for one in found:
        programme = one.programme
        about = " · ".join(filter(None, (programme.sub_title, ", ".join(programme.categories[:3]))))
        yield f"{_time(programme.start, zone)}  {programme.title:<{width}}  {programme.channel}"
        if about:
            yield f"       {about}"
        if one.why:
            yield f"       {why_line(one)}"
        if programme.also:
            airings = (f"{_time(each.start, zone)} {each.channel}" for each in programme.also[:ALSO])
            yield f"       also {', '.join(airings)}"


def why_line(one: Recommendation) -> str:
    """Why, as a sentence."""
    liked = [f"{why.title} ({why.share:.0%})" for why in one.why if why.liked]
    return f"because you like {', '.join(liked)}" if liked else ""


def as_json(one: Recommendation) -> dict[str, Any]:
    """A recommendation as JSON: docs/tonight.md."""
    document = asdict(one)
    programme = document.pop("programme")
    del document["viewer"]
    document["change"] = document.pop("counterfactual")
    for airing in (programme, *programme["also"]):
        airing["start"] = airing["start"].isoformat()
        airing["stop"] = airing["stop"] and airing["stop"].isoformat()
    return {**document, **programme}


def _time(moment: datetime.datetime, zone: datetime.tzinfo) -> str:
    return f"{moment.astimezone(zone):%H:%M}"


def write_files(
    files: Sequence[Path],
    found: Sequence[Recommendation],
    viewer: str,
    begin: datetime.datetime,
    end: datetime.datetime,
    now: datetime.datetime,
) -> None:
    """Writes a list in the form that each file's name ends in; a TonightError, and no file, for any other."""
    if wrong := [file for file in files if file.suffix.lower() not in FORMS]:
        raise TonightError(
            f"--out {wrong[0]}: the name ends in {wrong[0].suffix!r}; expected {', '.join(FORMS)}"
        )
    for file in files:
        kind = file.suffix.lower()
        try:
            if kind == ".parquet":
                pq.write_table(to_table([found]), file)
            elif kind == ".html":
                file.write_text(render_tonight(found, viewer, begin, end), encoding="utf-8")
            elif kind == ".ics":
                file.write_bytes(render_calendar(found, now).encode())
            else:
                write_json(file, [as_json(one) for one in found])
        except OSError as error:
            raise TonightError(f"--out {file} cannot be written: {error.strerror or error}") from error
