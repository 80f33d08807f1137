"""The commands for viewers: ``like``, ``forget`` and ``tonight``; imports stand inside, as in commands.py."""

import datetime
from pathlib import Path
from typing import Annotated

from typer import Argument, BadParameter, Option

from flows.cli.commands import HOME, NONE, AsJson, Home, app, show
from flows.cli.instants import read_moment

ME = "me"

Viewer = Annotated[str, Option(metavar="NAME", help="whose; only a salted hash of it is kept")]
Title = Annotated[str, Argument(metavar="TITLE", help="a title of the guide")]
Dislike = Annotated[bool, Option("--dislike", help="the opposite")]
Seen = Annotated[bool, Option("--seen", help="watched before: its repeats are not recommended")]
FILE = "a table (.csv, .parquet, .json), or what a player or Trakt exports: docs/tonight.md"
File = Annotated[Path | None, Option("--from", metavar="FILE", help=FILE)]
Name = Annotated[str, Argument(metavar="VIEWER", help="whose likes are deleted")]
INSTANT = "ISO instant, such as 2025-03-31T18:00+02:00; without a zone: the home's"
At = Annotated[
    datetime.datetime | None, Option(parser=read_moment, metavar="INSTANT", help=f"now [{INSTANT}]")
]
Begin = Annotated[
    datetime.datetime | None, Option("--from", parser=read_moment, metavar="INSTANT", help="first start")
]
End = Annotated[
    datetime.datetime | None, Option(parser=read_moment, metavar="INSTANT", help="starts are before this")
]
Hours = Annotated[
    float | None, Option(metavar="H", help="so many from --from, else from now", min=0.1, max=240)
]
Count = Annotated[int, Option("-k", help="how many", min=1, max=100)]
OUT = "also write the list: .html (a page), .ics (a calendar), .json or .parquet; may be repeated"
Out = Annotated[list[Path], Option("--out", metavar="FILE", help=OUT)]


@app.command()
def like(
    title: Title = "",
    file: File = None,
    viewer: Viewer = ME,
    dislike: Dislike = False,
    seen: Seen = False,
    home: Home = HOME,
) -> None:
    """Note what a viewer likes, or dislikes. One title, or a file of them."""
    if bool(title) == (file is not None):
        raise BadParameter("Name a title, or a file by --from.")
    from flows.cli.likes import import_likes, like_title

    now = datetime.datetime.now(datetime.UTC)
    if file is not None:
        print(import_likes(home, file, viewer, now))
    else:
        found = like_title(home, title, viewer, -1.0 if dislike else 1.0, seen, now)
        print(f"{viewer} {'dislikes' if dislike else 'likes'} “{found}”")


@app.command()
def forget(viewer: Name, home: Home = HOME) -> None:
    """Delete all that is known of a viewer."""
    from flows.cli.likes import forget as forget_all

    found = forget_all(home, viewer)
    print(f"{found:,} like{'s' * (found != 1)} of {viewer} deleted")


@app.command()
def tonight(
    viewer: Viewer = ME,
    begin: Begin = None,
    until: End = None,
    hours: Hours = None,
    at: At = None,
    k: Count = 10,
    out: Out = NONE,
    home: Home = HOME,
    as_json: AsJson = False,
) -> None:
    """What a viewer may want to watch this evening, and why."""
    if until is not None and hours is not None:
        raise BadParameter("Give --until or --hours, not both.")
    from flows.cli.tonight import as_json as document
    from flows.cli.tonight import evening_of, list_tonight, tonight_lines, write_files
    from storage.home.zones import home_zone, in_zone
    from tasks.tonight.settings import TonightSettings

    zone = home_zone(home)
    now = in_zone(at or datetime.datetime.now(zone), zone)
    begin, until = (moment and in_zone(moment, zone) for moment in (begin, until))
    first, last = evening_of(now, begin, until, hours)
    found = list_tonight(home, viewer, first, last, TonightSettings(count=k))
    write_files(out, found, viewer, first, last, now)
    show([document(one) for one in found], as_json, tonight_lines(found, zone))
