"""Gives programmes that have no episode number the number of other airings of the same episode.

An episode is identified by its show key (normalized title) and its sub-title. Sub-titles such as "Episode 4"
identify no episode. A number is copied if the airings of the episode, in this guide and in the guide of the
home, do not contradict each other: they must have one number per numbering system, and all numbers must mean
the same episode. No numbers are copied in two kinds of shows:

- Some of the numbers contain a season, and others do not.
- All airings with numbers have the same sub-title. Then the sub-title is part of the name of the show
  ("Original Sin").
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path

import pyarrow.parquet as pq

from storage.episodes.numbers import fold_sub_title, read_numbers
from tasks.enrich.titles import GuideTitles, read_rows
from tasks.text.titles import parse_title

NUMBERS = "episode_numbers", "episode_systems"  # columns of programmes.parquet
XMLTV, ONSCREEN = "xmltv_ns", "onscreen"  # numbering systems whose numbers are copied
Episode = tuple[int, str]  # (title index, normalized sub-title)
Numbers = Sequence[tuple[str, str]]  # (system, text) of each episode-num element


def find_numbers(guide: GuideTitles, home_guide: Path | None) -> dict[Episode, Numbers]:
    """Returns the numbers of the episodes that have airings with a number and airings without a number.

    Args:
        guide: Titles of the guide that lacks numbers.
        home_guide: Folder of a Guide whose airings are used as well; None to use only ``guide``.
    """
    file, columns = guide.folder / "programmes.parquet", ["title", "sub_title"]
    episodes = {
        (guide.title_of_raw[title], folded_sub_title)
        for title, sub_title, place in read_rows(file, [*columns, "number_place"])
        if place >= 0
        and (folded_sub_title := fold_sub_title(sub_title))
        and not guide.is_placeholder[guide.title_of_raw[title]]
    }
    return agreeing_numbers(episodes, _numbered_airings(guide, home_guide)) if episodes else {}


def agreeing_numbers(
    episodes: set[Episode], airings: Iterable[tuple[Episode, Numbers]]
) -> dict[Episode, Numbers]:
    """Returns the numbers of those ``episodes`` whose airings do not contradict each other.

    Args:
        episodes: Episodes for which numbers are needed.
        airings: The episode and the numbers of each airing that has a number and a sub-title.
    """
    titles = {title for title, _ in episodes}
    numbers_by_episode: dict[Episode, set[tuple[str, str]]] = {}
    has_season: dict[int, set[bool]] = {}  # by title, whether a number contains a season
    sub_titles: dict[int, set[str]] = {}
    for episode, numbers in airings:
        if episode[0] in titles:
            has_season.setdefault(episode[0], set()).update(
                key.startswith("s") for key in _normalized_numbers(numbers)
            )
            sub_titles.setdefault(episode[0], set()).add(episode[1])
            if episode in episodes:
                numbers_by_episode.setdefault(episode, set()).update(numbers)
    return {
        episode: sorted(numbers, reverse=True)  # xmltv_ns first
        for episode, numbers in numbers_by_episode.items()
        if numbers
        and len(has_season[episode[0]]) <= 1
        and len(sub_titles[episode[0]]) > 1
        and _is_consistent(numbers)
    }


def _is_consistent(numbers: set[tuple[str, str]]) -> bool:
    """Returns whether an episode has one number per numbering system, and all mean the same episode."""
    return len({system for system, _ in numbers}) == len(numbers) and len(_normalized_numbers(numbers)) <= 1


def _normalized_numbers(numbers: Iterable[tuple[str, str]]) -> set[str]:
    """Returns the normalized forms of numbers, such as s2e4; unreadable numbers are omitted."""
    return {_normalize_number(number) for number in numbers} - {""}


def has_number(texts: Sequence[str] | None, systems: Sequence[str | None] | None) -> bool:
    """Returns whether a programme has a readable episode number.

    ``texts`` and ``systems`` are the content and the attribute ``system`` of its episode-num elements.
    """
    pairs = zip(systems or (), texts or (), strict=True)
    return any(_normalize_number((system or "", text)) for system, text in pairs)


@lru_cache(maxsize=65_536)
def _normalize_number(number: tuple[str, str]) -> str:
    """Returns the normalized form of a number (system, text), such as s2e4, or "" if it is unreadable."""
    return read_numbers((number,)).key


def _numbered_airings(guide: GuideTitles, home_guide: Path | None) -> Iterator[tuple[Episode, Numbers]]:
    """Yields (episode, numbers) for each airing in both guides that has a number and a sub-title."""
    yield from _read_airings(guide.folder / "programmes.parquet", guide.title_of_raw.__getitem__)
    if (
        home_guide is None
        or NUMBERS[1] not in pq.read_schema(file := home_guide / "programmes.parquet").names
    ):
        return  # a Guide of an older version has no numbering systems
    title_index = {key: title for title, key in enumerate(guide.show_keys)}
    yield from _read_airings(
        file, cache(lambda raw_title: title_index.get(parse_title(raw_title).show_key, -1))
    )


def _read_airings(file: Path, title_index: Callable[[str], int]) -> Iterator[tuple[Episode, Numbers]]:
    """Yields (episode, numbers) for each airing in a programmes.parquet that has a number and a sub-title.

    ``title_index`` returns the index of a raw title; -1: the airing is skipped.
    """
    for raw_title, sub_title, texts, systems in read_rows(file, ["title", "sub_title", *NUMBERS]):
        if (
            texts
            and (folded_sub_title := fold_sub_title(sub_title))
            and (title := title_index(raw_title)) >= 0
        ):
            pairs = zip(((system or ONSCREEN).casefold() for system in systems), texts, strict=True)
            yield (title, folded_sub_title), [pair for pair in pairs if pair[0] in (XMLTV, ONSCREEN)]
