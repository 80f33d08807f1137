"""Loads the programmes of an evening from the current guide, and their vectors from the served model."""

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
from tasks.tonight.filters import HiddenCounts, hide_programmes, lifted_exclusions
from tasks.tonight.kinds import select_kinds
from tasks.tonight.people import add_credits, add_liked_people
from tasks.tonight.programmes import group_programmes
from tasks.tonight.settings import TonightSettings
from tasks.tonight.vectors import open_titles

EVENING_HOUR = 18  # hour of the day at which an evening begins
EVENING_LENGTH = datetime.timedelta(hours=6)
MIN_LENGTH = datetime.timedelta(hours=3)  # minimum length of the interval of recommended programmes
NIGHT_END_HOUR = 5  # before this hour of the day, the previous evening has not ended yet


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
        now: Current time in the zone of the home; the result is in this zone, too.
        begin: Begin of the interval. If it is None, the interval begins now, or at EVENING_HOUR if that is
            later and ``hours`` is None.
        end: End of the interval. If it is None, the interval ends at the midnight after its begin, but at
            least MIN_LENGTH after its begin.
        hours: Length of the interval in hours, which replaces ``end``.

    Raises:
        TonightError: The interval is empty.
    """
    evening_begin = ((begin or now) - datetime.timedelta(hours=NIGHT_END_HOUR)).replace(
        hour=EVENING_HOUR, minute=0, second=0, microsecond=0
    )
    interval_begin = begin or (now if hours is not None else max(now, evening_begin))
    if hours is not None:
        interval_end = _add_elapsed(interval_begin, datetime.timedelta(hours=hours))
    else:
        interval_end = end or max(evening_begin + EVENING_LENGTH, _add_elapsed(interval_begin, MIN_LENGTH))
    if interval_begin >= interval_end:
        raise TonightError(
            f"--from {interval_begin.isoformat()} is not before --until {interval_end.isoformat()}; "
            "name a later --until"
        )
    return interval_begin, interval_end


def _add_elapsed(moment: datetime.datetime, elapsed: datetime.timedelta) -> datetime.datetime:
    """Adds elapsed time to a datetime; if clocks are changed in between, the operator ``+`` is wrong."""
    return (moment.astimezone(datetime.UTC) + elapsed).astimezone(moment.tzinfo)


@dataclass(frozen=True)
class OpenEvening:
    """Evening with the folder of its guide, and the numbers of programmes that the settings hide."""

    evening: Evening
    guide: Path  # folder with the Parquet files of the Guide
    hidden: HiddenCounts

    def explain(self, recommendations: Sequence[Recommendation]) -> list[Recommendation]:
        """Adds counterfactuals, credits, and people of liked titles to the list of one viewer."""
        explained = add_credits(self.evening.add_counterfactuals(recommendations), self.guide)
        return add_liked_people(self.evening, explained, self.guide)


def open_evening(
    home: Path,
    begin: datetime.datetime,
    end: datetime.datetime,
    opinions: pa.Table,
    seen: pa.Table,
    settings: TonightSettings,
    *,
    champion: Champion | None = None,
) -> OpenEvening:
    """Loads the programmes that start from ``begin`` to ``end`` (exclusive), and the data to rank them.

    Args:
        home: Folder of the home.
        begin: Begin of the interval.
        end: End of the interval.
        opinions: Table of the likes and dislikes of viewers, from ``read_likes``.
        seen: Table of the episodes that viewers have seen, from ``read_likes``.
        settings: Settings of the ranking.
        champion: Served model; None to look it up in the registry.

    Raises:
        TonightError: The guide has no programme in the interval, the settings hide all programmes, or an
            older version has made the guide without the data by which the settings hide programmes.
        HomeError: There is no guide or no champion model.
    """
    workspace, champion = Workspace(home, create=False), champion or find_champion(home)
    guide = current_guide(workspace)
    if guide is None:
        raise HomeError(f"{home} has no guide; run `guidespace ingest --feed …` first")
    folder = workspace.folder(guide)
    if (settings.hide_repeats or settings.age is not None) and not has_details(folder):
        raise TonightError(
            "the guide was made by an older version, without repeats and age ratings; read its feeds "
            "again: `guidespace ingest --feed …`"
        )
    begin_utc, end_utc = to_naive_utc(begin), to_naive_utc(end)
    shows = group_programmes(upcoming_programmes(folder, begin_utc, end_utc), lifted_exclusions(settings))
    if not shows:
        content = "it is empty"
        if starts := start_range(folder):
            content = f"it has programmes from {starts[0]:%F %H:%M} to {starts[1]:%F %H:%M} UTC"
        raise TonightError(
            f"the guide has no programme from {begin_utc:%F %H:%M} to {end_utc:%F %H:%M} UTC; {content}. "
            "Read a newer guide (`guidespace ingest --feed …`), or name another time (--at, --from, --until)."
        )
    if settings.kinds:
        shows = select_kinds(shows, settings.kinds, champion.folder)
        if not shows:
            raise TonightError(
                f"no programme of this evening is of the requested kinds: {', '.join(settings.kinds)}; name "
                "other kinds (--kind)"
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
