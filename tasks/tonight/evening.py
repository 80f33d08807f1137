"""An evening of a home's newest guide, with the model that serves."""

import datetime
from pathlib import Path

import pyarrow as pa

from storage.catalogue.evening import coming_programmes, span
from storage.catalogue.feeds import utc
from storage.errors import ExpectedError
from storage.guides import current_guide
from storage.tracking import Champion, Registry
from storage.workspace import HomeError, Workspace
from tasks.tonight.choose import Evening, wanted
from tasks.tonight.programmes import fold_programmes
from tasks.tonight.settings import TonightSettings
from tasks.tonight.vectors import open_titles


class TonightError(ExpectedError, ValueError):
    """No list can be made; the message says why and what to do."""


def open_evening(
    home: Path,
    begin: datetime.datetime,
    end: datetime.datetime,
    opinions: pa.Table,
    seen: pa.Table,
    settings: TonightSettings,
) -> Evening:
    """The programmes that start from ``begin`` to before ``end``, and the viewers whose likes are given
    (``read_likes``).

    Raises:
        TonightError: The guide has no programme then.
        HomeError: There is no guide, or no model serves.
    """
    workspace, champion = Workspace(home, create=False), find_champion(home)
    guide = current_guide(workspace)
    if guide is None:
        raise HomeError(f"{home} holds no guide; run `guidespace ingest --feed …` first")
    place = workspace.folder(guide)
    shows = fold_programmes(coming_programmes(place, utc(begin), utc(end)))
    if not shows:
        known = span(place)
        has = (
            f"it has programmes from {known[0]:%F %H:%M} to {known[1]:%F %H:%M} UTC"
            if known
            else "it is empty"
        )
        advice = (
            "Read a newer one (`guidespace ingest --feed …`), or name another time (--at, --from, --until)"
        )
        hours = f"{utc(begin):%F %H:%M} to {utc(end):%F %H:%M} UTC"
        raise TonightError(f"the guide has no programme from {hours}; {has}. {advice}.")
    titles = open_titles(champion.folder, champion.digest, home, wanted(shows, opinions), opinions)
    return Evening(shows, opinions, seen, titles, settings)


def find_champion(home: Path) -> Champion:
    """The model that serves; a HomeError where none does."""
    champion = Registry(home).champion()
    if champion is None:
        raise HomeError(f"{home} has no champion model yet; run `guidespace nightly --feed …` first")
    return champion
