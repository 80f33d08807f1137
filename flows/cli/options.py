"""Defines options and arguments that several commands share."""

import datetime
from typing import Annotated, Any, Literal

from typer import BadParameter, Option

NO_VALUES: list[Any] = []
INSTANT = "an instant such as 2025-03-31T18:00+02:00"
YEARS = range(1900, 2200)  # far from the limits of datetime, which zones and intervals would exceed
FEEDS_HELP = (
    "XMLTV file, glob, folder, URL (http, s3 …), or env:NAME for a URL in a variable; plain or compressed"
)
SETTINGS_HELP = "change settings, such as ingest.download_seconds=600 or train.epochs=5"
MODEL_HELP = (
    "URL or file of a model (`serve`, `export`), env:NAME, or a model in MLflow "
    "[default: the home's champion]"
)

Home = Annotated[str, Option(envvar="GUIDESPACE_HOME", help="folder that holds everything a run writes")]
AsJson = Annotated[bool, Option("--json", help="print JSON, for other programs")]
Feeds = Annotated[list[str], Option("--feed", metavar="FEED ...", help=FEEDS_HELP)]
Set = Annotated[list[str], Option("--set", metavar="NAME=VALUE ...", help=SETTINGS_HELP)]
Preset = Annotated[Literal["smoke", "laptop", "gpu"], Option(help="settings to start from")]
ResultCount = Annotated[int, Option("-k", help="number of results")]
Model = Annotated[str | None, Option(envvar="GUIDESPACE_MODEL", metavar="MODEL", help=MODEL_HELP)]


def read_instant(text: str) -> datetime.datetime:
    """Parses an ISO 8601 instant; the result has a time zone only if the text has one.

    Raises:
        BadParameter: The text is not an instant, or its year is not in YEARS.
    """
    return _parse(text, INSTANT)


def read_date_or_instant(text: str) -> datetime.datetime:
    """Parses an ISO 8601 instant, or a date, which means the end of that day.

    Raises:
        BadParameter: The text is neither a date nor an instant, or its year is not in YEARS.
    """
    moment = _parse(text, f"YYYY-MM-DD, or {INSTANT}")
    if len(text) == len("2025-03-31"):
        # fold=1: if clocks are set back at midnight, as in Beirut, the last hour of the day occurs twice.
        moment = datetime.datetime.combine(moment, datetime.time.max.replace(fold=1))
    return moment


def _parse(text: str, expected: str) -> datetime.datetime:
    """Parses an ISO 8601 date or instant; ``expected`` is the part of the error message after "expected"."""
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise BadParameter(f"{text!r} is not a date; expected {expected}.") from error
    if moment.year not in YEARS:
        raise BadParameter(f"{text!r} is not in the years {YEARS[0]} to {YEARS[-1]}; expected {expected}.")
    return moment
