"""Computes the recommendations of ``guidespace tonight`` and writes them as text and files.

Does not import PyTorch.
"""

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from flows.champion import find_champion
from storage.catalogue.likes import hash_viewer, read_likes
from storage.home.workspace import Workspace
from storage.json_file import write_json
from tasks.recommend import FactorisedLikes, Popularity
from tasks.tonight.calendar import render_calendar
from tasks.tonight.choose import Recommendation
from tasks.tonight.evening import TonightError, open_evening
from tasks.tonight.filters import HiddenCounts
from tasks.tonight.page import programme_marks, render_tonight
from tasks.tonight.people import DIRECTOR
from tasks.tonight.settings import TONIGHT, TonightSettings
from tasks.tonight.table import to_table

SUFFIXES = ".html", ".ics", ".json", ".parquet"
MAX_REPEATS = 4  # maximum number of further airings in a line


def list_tonight(
    home: str,
    viewer: str,
    begin: datetime.datetime,
    end: datetime.datetime,
    settings: TonightSettings = TONIGHT,
    model: str | None = None,
) -> tuple[list[Recommendation], HiddenCounts]:
    """Recommends programmes that start from ``begin`` (inclusive) to ``end`` (exclusive) to a viewer.

    The likes of other viewers are read only if the recommender uses them.

    Returns:
        The recommendations, best first, and how many programmes each filter hides.

    Raises:
        TonightError: The guide has no programme in the interval, or the viewer has no likes.
        HomeError: There is no guide or no champion.
    """
    folder = Workspace(home, create=False).home
    viewer_hash = hash_viewer(folder, viewer)
    uses_all_viewers = isinstance(settings.recommender, FactorisedLikes | Popularity)
    opinions, seen = read_likes(folder, None if uses_all_viewers else viewer_hash)
    if viewer_hash not in opinions["viewer"].to_pylist():
        advice = 'run `guidespace like "TITLE"` for some titles first, or `guidespace like --from FILE`'
        raise TonightError(f"{viewer!r} has no likes; {advice}")
    champion = find_champion(folder, model)
    evening = open_evening(folder, begin, end, opinions, seen, settings, champion=champion)
    return evening.explain(next(evening.evening.recommend([viewer_hash]))), evening.hidden


def tonight_lines(recommendations: Sequence[Recommendation], zone: datetime.tzinfo) -> Iterator[str]:
    """Formats recommendations as lines of text, with start times in a time zone."""
    width = min(48, max((len(item.programme.title) for item in recommendations), default=0))
    for recommendation in recommendations:
        programme = recommendation.programme
        category_text = ", ".join(programme.categories[:3])
        sub_title = programme.sub_title if any(map(str.isalpha, programme.sub_title)) else ""
        details = " · ".join(filter(None, (sub_title, category_text, *programme_marks(programme))))
        yield f"{_format_time(programme.start, zone)}  {programme.title:<{width}}  {programme.channel}"
        if details:
            yield f"       {details}"
        if recommendation.why:
            yield f"       {reason_line(recommendation)}"
        if recommendation.people:
            yield f"       {people_line(recommendation)}"
        if programme.also:
            airings = (
                f"{_format_time(airing.start, zone)} {airing.channel}"
                for airing in programme.also[:MAX_REPEATS]
            )
            yield f"       also {', '.join(airings)}"


def reason_line(recommendation: Recommendation) -> str:
    """Returns the liked titles that explain a recommendation: "because you like A (60%), B (40%)"."""
    liked_titles = [f"{reason.title} ({reason.share:.0%})" for reason in recommendation.why if reason.liked]
    return f"because you like {', '.join(liked_titles)}" if liked_titles else ""


def people_line(recommendation: Recommendation) -> str:
    """Returns the people of a programme who also appear in liked titles: "with Ann Actor, as in Vera"."""
    return "; ".join(
        f"{'directed by' if person.role == DIRECTOR else 'with'} {person.name}, as in {person.title}"
        for person in recommendation.people
    )


def recommendation_document(recommendation: Recommendation) -> dict[str, Any]:
    """Returns a recommendation as a JSON document (docs/tonight.md)."""
    document = asdict(recommendation)
    programme = document.pop("programme")
    del document["viewer"], programme["rows"]
    document["change"] = document.pop("counterfactual")
    for airing in (programme, *programme["also"]):
        airing["start"] = airing["start"].isoformat()
        airing["stop"] = airing["stop"] and airing["stop"].isoformat()
    return {**document, **programme}


def _format_time(moment: datetime.datetime, zone: datetime.tzinfo) -> str:
    return f"{moment.astimezone(zone):%H:%M}"


def write_files(
    files: Sequence[Path],
    recommendations: Sequence[Recommendation],
    *,
    viewer: str,
    begin: datetime.datetime,
    end: datetime.datetime,
    now: datetime.datetime,
    zone: str = "",
) -> None:
    """Writes recommendations to files: a page, a calendar, JSON or Parquet.

    Args:
        files: Paths of the files; the suffix determines the format.
        recommendations: The recommendations, best first.
        viewer: Name of the viewer, shown on the page.
        begin: Start of the interval, shown on the page.
        end: End of the interval, shown on the page.
        now: Creation time, which the calendar states.
        zone: Time zone in which the page shows times; '': the zone of the browser.

    Raises:
        TonightError: A file has an unknown suffix (then no file is written), or cannot be written.
    """
    if unknown_files := [file for file in files if file.suffix.lower() not in SUFFIXES]:
        problem = f"--out {unknown_files[0]}: the name ends in {unknown_files[0].suffix!r}"
        raise TonightError(f"{problem}; expected {', '.join(SUFFIXES)}")
    for file in files:
        suffix = file.suffix.lower()
        try:
            if suffix == ".parquet":
                pq.write_table(to_table([recommendations]), file)
            elif suffix == ".html":
                page = render_tonight(recommendations, viewer, begin, end, zone)
                file.write_text(page, encoding="utf-8")
            elif suffix == ".ics":
                file.write_bytes(render_calendar(recommendations, now).encode())
            else:
                write_json(
                    file, [recommendation_document(recommendation) for recommendation in recommendations]
                )
        except OSError as error:
            raise TonightError(f"--out {file} cannot be written: {error.strerror or error}") from error
