"""Defines the commands for viewers: ``like``, ``forget`` and ``tonight``."""

import datetime
import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, BadParameter, Option

from flows.cli.options import NO_VALUES, AsJson, Home, Model, read_instant
from flows.cli.render import show
from flows.defaults import DEFAULT_HOME

DEFAULT_VIEWER = "me"
FILE_HELP = "a table (.csv, .parquet, .json), or an export of a player or of Trakt: docs/tonight.md"
AT_HELP = "instant instead of now, such as 2025-03-31T18:00+02:00 (by default in the viewer's time zone)"
OUT_HELP = "also write the list: .html (a page), .ics (a calendar), .json or .parquet; may be repeated"

Viewer = Annotated[str, Option(metavar="NAME", help="name of the viewer; only a salted hash is stored")]
Title = Annotated[str, Argument(metavar="TITLE", help="a title of the guide")]
Dislike = Annotated[bool, Option("--dislike", help="store a dislike instead")]
Seen = Annotated[bool, Option("--seen", help="the viewer has watched it; do not recommend repeats")]
LikesFile = Annotated[Path | None, Option("--from", metavar="FILE", help=FILE_HELP)]
ViewerName = Annotated[str, Argument(metavar="VIEWER", help="name of the viewer")]
NowInstant = Annotated[datetime.datetime | None, Option(parser=read_instant, metavar="INSTANT", help=AT_HELP)]
FirstStart = Annotated[
    datetime.datetime | None,
    Option("--from", parser=read_instant, metavar="INSTANT", help="earliest start of a programme"),
]
LastStart = Annotated[
    datetime.datetime | None,
    Option(parser=read_instant, metavar="INSTANT", help="list programmes that start before this instant"),
]
Hours = Annotated[
    float | None, Option(metavar="H", help="length in hours, from --from or from now", min=0.1, max=240)
]
RECOMMENDER_HELP = "how titles are scored: nearest_likes, factorisation or popularity"
Recommender = Annotated[str, Option(metavar="NAME", help=RECOMMENDER_HELP)]
ProgrammeCount = Annotated[int, Option("-k", help="number of programmes", min=1, max=100)]
INCLUDE_HELP = "also list placeholders, shopping or adult programmes; may be repeated"
IncludedKinds = Annotated[list[str], Option(metavar="KIND", help=INCLUDE_HELP)]
KIND_HELP = "list only this kind: film, series, news, sport, children, music or other; may be repeated"
OnlyKinds = Annotated[list[str], Option(metavar="KIND", help=KIND_HELP)]
HideRepeats = Annotated[bool, Option("--hide-repeats", help="hide repeats that are not marked as new")]
AGE_HELP = "hide programmes with a minimum age above N, and programmes with an unknown age rating"
Age = Annotated[int | None, Option(metavar="N", help=AGE_HELP, min=0, max=21)]
UNRATED_HELP = "together with --age: also hide programmes without an age rating"
HideUnrated = Annotated[bool, Option("--hide-unrated", help=UNRATED_HELP)]
Out = Annotated[list[Path], Option("--out", metavar="FILE", help=OUT_HELP)]


def like(
    title: Title = "",
    file: LikesFile = None,
    viewer: Viewer = DEFAULT_VIEWER,
    dislike: Dislike = False,
    seen: Seen = False,
    home: Home = DEFAULT_HOME,
    model: Model = None,
) -> None:
    """Store likes and dislikes of a viewer. For one title, or from a file."""
    if bool(title) == (file is not None):
        raise BadParameter("Name a title, or a file by --from.")
    from flows.cli.likes import import_likes, like_title

    now = datetime.datetime.now(datetime.UTC)
    if file is not None:
        print(import_likes(home, file, viewer, now))
    else:
        value = -1.0 if dislike else 1.0
        full_title = like_title(home, title, viewer, value, seen=seen, rated_at=now, model=model)
        print(f"{viewer} {'dislikes' if dislike else 'likes'} “{full_title}”")


def forget(viewer: ViewerName, home: Home = DEFAULT_HOME) -> None:
    """Delete the likes of a viewer and the lists made from them."""
    from flows.cli.likes import forget as forget_viewer

    count = forget_viewer(home, viewer)
    print(f"{count:,} like{'s' * (count != 1)} of {viewer} deleted")


def tonight(
    viewer: Viewer = DEFAULT_VIEWER,
    begin: FirstStart = None,
    until: LastStart = None,
    hours: Hours = None,
    at: NowInstant = None,
    k: ProgrammeCount = 10,
    recommender: Recommender = "nearest_likes",
    kind: OnlyKinds = NO_VALUES,
    hide_repeats: HideRepeats = False,
    age: Age = None,
    hide_unrated: HideUnrated = False,
    include: IncludedKinds = NO_VALUES,
    out: Out = NO_VALUES,
    home: Home = DEFAULT_HOME,
    model: Model = None,
    as_json: AsJson = False,
) -> None:
    """Recommend programmes of this evening, with reasons."""
    if until is not None and hours is not None:
        raise BadParameter("--until and --hours exclude each other; name one of them.")
    from flows.cli.tonight import list_tonight, recommendation_document, tonight_lines, write_files
    from storage.catalogue.likes import viewer_zone
    from storage.home.zones import home_zone, in_zone
    from tasks.kinds.kinds import KINDS
    from tasks.recommend import RECOMMENDERS
    from tasks.tonight.evening import evening_interval
    from tasks.tonight.exclusions import EXCLUSIONS
    from tasks.tonight.settings import TonightSettings

    if recommender not in RECOMMENDERS:
        raise BadParameter(f"--recommender is {recommender!r}; choose {', '.join(RECOMMENDERS)}.")
    if hide_unrated and age is None:
        raise BadParameter("--hide-unrated needs --age.")
    for option, names, choices in (("include", include, EXCLUSIONS), ("kind", kind, KINDS)):
        if unknown_names := set(names) - set(choices):
            raise BadParameter(f"--{option} is {unknown_names.pop()!r}; choose {', '.join(choices)}.")
    zone = viewer_zone(Path(home).expanduser(), viewer)
    page_zone = zone.key if zone != home_zone(home) else ""
    now = in_zone(at or datetime.datetime.now(zone), zone)
    begin, until = (moment and in_zone(moment, zone) for moment in (begin, until))
    begin, end = evening_interval(now, begin, until, hours)
    settings = TonightSettings(
        count=k,
        recommender=RECOMMENDERS[recommender],
        kinds=tuple(name for name in KINDS if name in kind),
        hide_repeats=hide_repeats,
        age=age,
        hide_unrated=hide_unrated,
        include=tuple(name for name in EXCLUSIONS if name in include),
    )
    recommendations, hidden_counts = list_tonight(home, viewer, begin, end, settings, model)
    for message in hidden_counts.messages(settings):
        print(f"note: {message}", file=sys.stderr)
    write_files(out, recommendations, viewer=viewer, begin=begin, end=end, now=now, zone=page_zone)
    documents = [recommendation_document(recommendation) for recommendation in recommendations]
    show(documents, as_json, tonight_lines(recommendations, zone))
