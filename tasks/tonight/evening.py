"""Loads the programmes of an evening from the newest guide, and their vectors from the served model."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from storage.catalogue.evening import has_details, start_range, upcoming_programmes
from storage.catalogue.feeds import to_naive_utc
from storage.errors import ExpectedError
from storage.home.guides import current_guide
from storage.home.workspace import HomeError, Workspace
from storage.tracking import Champion, Registry
from tasks.tonight.choose import Evening, Recommendation, titles_to_rank
from tasks.tonight.filters import HiddenCounts, hide_programmes, included_kinds
from tasks.tonight.kinds import select_kinds
from tasks.tonight.people import add_credits, add_liked_people
from tasks.tonight.programmes import group_programmes
from tasks.tonight.settings import TonightSettings
from tasks.tonight.vectors import open_titles

EVENING_HOUR = 18  # hour at which an evening begins, in the time zone of the home
EVENING_LENGTH = datetime.timedelta(hours=6)
MIN_LENGTH = datetime.timedelta(hours=3)  # minimum length of the recommended interval
NIGHT_END_HOUR = 5  # hours before this one belong to the previous evening


class TonightError(ExpectedError, ValueError):
    """Error: no list can be computed. The message contains the reason and the remedy."""


def evening_interval(
    now: datetime.datetime,
    begin: datetime.datetime | None,
    end: datetime.datetime | None,
    hours: float | None,
) -> tuple[datetime.datetime, datetime.datetime]:
    """Returns begin and end of the interval of recommended programmes, by default the rest of the evening.

    Args:
        now: Current time in the zone of the home, which is also the zone of the result.
        begin: Begin of the interval; None: now, or EVENING_HOUR if that is later and ``hours`` is None.
        end: End of the interval; None: midnight, but at least MIN_LENGTH after the begin.
        hours: Length of the interval in hours, in place of ``end``.

    Raises:
        TonightError: The interval is empty.
    """
    evening_begin = (now - datetime.timedelta(hours=NIGHT_END_HOUR)).replace(
        hour=EVENING_HOUR, minute=0, second=0, microsecond=0
    )
    interval_begin = begin or (now if hours is not None else max(now, evening_begin))
    if hours is not None:
        interval_end = _add_elapsed(interval_begin, datetime.timedelta(hours=hours))
    else:
        interval_end = end or max(evening_begin + EVENING_LENGTH, _add_elapsed(interval_begin, MIN_LENGTH))
    if interval_begin >= interval_end:
        raise TonightError(
            f"--from {interval_begin.isoformat()} is not before --until {interval_end.isoformat()}"
        )
    return interval_begin, interval_end


def _add_elapsed(moment: datetime.datetime, elapsed: datetime.timedelta) -> datetime.datetime:
    """Adds elapsed time to a datetime, unlike ``+``, which adds clock time when clocks are changed."""
    return (moment.astimezone(datetime.UTC) + elapsed).astimezone(moment.tzinfo)


@dataclass(frozen=True)
class OpenEvening:
    """Evening with the folder of its guide, and the numbers of programmes that the settings hide."""

    evening: Evening
    guide: Path  # Guide folder
    hidden: HiddenCounts

    def explain(self, recommendations: Sequence[Recommendation]) -> list[Recommendation]:
        """Adds counterfactual sentences, credits and people of liked titles to the list of one viewer."""
        explained = add_credits(self.evening.add_counterfactuals(recommendations), self.guide)
        return add_liked_people(self.evening, explained, self.guide)


def open_evening(
    home: Path,
    begin: datetime.datetime,
    end: datetime.datetime,
    opinions: pa.Table,
    seen: pa.Table,
    settings: TonightSettings,
    champion: Champion | None = None,
) -> OpenEvening:
    """Loads the programmes that start from ``begin`` to ``end`` (exclusive), and the data to rank them.

    Args:
        home: Folder of the home.
        begin: Begin of the interval.
        end: End of the interval.
        opinions: Table of likes and dislikes of all viewers, from ``read_likes``.
        seen: Table of episodes that viewers have seen, from ``read_likes``.
        settings: Settings of the ranking.
        champion: Served model; None to look it up in the registry.

    Raises:
        TonightError: The guide has no programme in that interval, all are hidden, or the guide was made by a
            version without the data by which the settings hide programmes.
        HomeError: There is no guide or no champion model.
    """
    workspace, champion = Workspace(home, create=False), champion or find_champion(home)
    guide = current_guide(workspace)
    if guide is None:
        raise HomeError(f"{home} holds no guide; run `guidespace ingest --feed …` first")
    folder = workspace.folder(guide)
    if (settings.hide_repeats or settings.age is not None) and not has_details(folder):
        raise TonightError(
            "the guide was made by an older version, without repeats and age ratings; read its feeds "
            "again: `guidespace ingest --feed …`"
        )
    shows = group_programmes(
        upcoming_programmes(folder, to_naive_utc(begin), to_naive_utc(end)), included_kinds(settings)
    )
    if not shows:
        time_span = start_range(folder)
        content = (
            f"it has programmes from {time_span[0]:%F %H:%M} to {time_span[1]:%F %H:%M} UTC"
            if time_span
            else "it is empty"
        )
        raise TonightError(
            f"the guide has no programme from {begin_utc:%F %H:%M} to {end_utc:%F %H:%M} UTC; {content}. Read a "
            "newer guide (`guidespace ingest --feed …`), or name another time (--at, --from, --until)."
        )
    if settings.kinds:
        shows = select_kinds(shows, settings.kinds, champion.folder)
        if not shows:
            raise TonightError(
                f"no programme of this evening is of the requested kinds: {', '.join(settings.kinds)}"
            )
    shows, hidden = hide_programmes(shows, settings)
    if not shows:
        raise TonightError(f"nothing is left to recommend: {'; '.join(hidden.messages(settings))}")
    titles = open_titles(champion.folder, champion.digest, home, titles_to_rank(shows, opinions), opinions)
    return OpenEvening(Evening(shows, opinions, seen, titles, settings), folder, hidden)


def find_champion(home: Path) -> Champion:
    """Returns the champion (served model) of a home; raises HomeError if the home has none."""
    champion = Registry(home).champion()
    if champion is None:
        raise HomeError(f"{home} has no champion model yet; run `guidespace nightly --feed …` first")
    return champion
