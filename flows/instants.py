"""Dates and instants as they are typed."""

import datetime

from typer import BadParameter


def read_instant(text: str) -> datetime.datetime:
    """A date (its end in UTC) or an ISO instant (UTC where it names no zone)."""
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        expected = "YYYY-MM-DD, or an instant such as 2025-03-31T18:00+02:00"
        raise BadParameter(f"{text!r} is not a date; expected {expected}.") from error
    if len(text) == len("2025-03-31"):
        moment = datetime.datetime.combine(moment, datetime.time.max)
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)


def read_moment(text: str) -> datetime.datetime:
    """An ISO instant with its zone; that of this machine where it names none."""
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise BadParameter(f"{text!r} is no instant; expected one such as 2025-03-31T18:00+02:00.") from error
    return moment if moment.tzinfo else moment.astimezone()
