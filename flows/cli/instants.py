"""Dates and instants as they are typed: without a zone where the text names none (storage/home/zones.py)."""

import datetime

from typer import BadParameter


def read_instant(text: str) -> datetime.datetime:
    """A date (its end) or an ISO instant."""
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        expected = "YYYY-MM-DD, or an instant such as 2025-03-31T18:00+02:00"
        raise BadParameter(f"{text!r} is not a date; expected {expected}.") from error
    if len(text) == len("2025-03-31"):  # fold: clocks may be set back at midnight, as in Beirut
        moment = datetime.datetime.combine(moment, datetime.time.max.replace(fold=1))
    return moment


def read_moment(text: str) -> datetime.datetime:
    """An ISO instant."""
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise BadParameter(f"{text!r} is no instant; expected one such as 2025-03-31T18:00+02:00.") from error
