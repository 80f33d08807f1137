"""Copies episode numbers to programmes without one from other airings of the same episode.

An episode is identified by its show key (normalized title) and sub-title, unless the sub-title is one such as
"Episode 4". A number is copied if the airings of the episode, in this guide and in the guide of the home, do
not contradict each other: they must have one number per numbering system, and all numbers must mean the same
episode. Two kinds of shows are skipped:

- shows with numbers within seasons as well as continuous numbers
- shows whose airings with numbers all have the same sub-title, because it is part of the name of the show
  ("Original Sin")
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
    """Finds numbers for the episodes of a guide that have airings without a number.

    Args:
        guide: Titles of the guide.
        home_guide: Folder of a Guide whose airings are used as well; None to use only ``guide``.
    """
    file, columns = guide.folder / "programmes.parquet", ["title", "sub_title"]
    episodes = {
        (guide.title_of_raw[title], folded_sub_title)
        for title, sub_title, place in read_rows(file, [*columns, "number_place"])
        if place >= 0
        and (folded_sub_title := fold_sub_title(sub_title))
        and not guide.placeholder[guide.title_of_raw[title]]
    }
    return agreeing_numbers(episodes, _numbered_airings(guide, home_guide)) if episodes else {}


def agreeing_numbers(
    episodes: set[Episode], airings: Iterable[tuple[Episode, Numbers]]
) -> dict[Episode, Numbers]:
    """Returns the numbers of episodes whose airings have no contradictory numbers.

    Args:
        episodes: Episodes for which numbers are needed.
        airings: An episode and its numbers for each airing that has both.
    """
    titles = {title for title, _ in episodes}
    numbers_of: dict[Episode, set[tuple[str, str]]] = {}
    has_season: dict[int, set[bool]] = {}  # for each title, whether its numbers contain a season (or both)
    sub_titles: dict[int, set[str]] = {}
    for episode, numbers in airings:
        if episode[0] in titles:
            has_season.setdefault(episode[0], set()).update(key.startswith("s") for key in _keys(numbers))
            sub_titles.setdefault(episode[0], set()).add(episode[1])
            if episode in episodes:
                numbers_of.setdefault(episode, set()).update(numbers)
    return {
        episode: sorted(numbers, reverse=True)  # xmltv_ns first
        for episode, numbers in numbers_of.items()
        if numbers
        and len(has_season[episode[0]]) <= 1
        and len(sub_titles[episode[0]]) > 1
        and _is_consistent(numbers)
    }


def _is_consistent(numbers: set[tuple[str, str]]) -> bool:
    """Returns whether there is one number per numbering system, and all numbers mean the same episode."""
    return len({system for system, _ in numbers}) == len(numbers) and len(_keys(numbers)) <= 1


def _keys(numbers: Iterable[tuple[str, str]]) -> set[str]:
    """Returns the normalized keys of numbers, such as s2e4, without unreadable numbers."""
    return {_key(number) for number in numbers} - {""}


def has_number(texts: Sequence[str] | None, systems: Sequence[str | None] | None) -> bool:
    """Returns whether one of a programme's episode-num elements (texts, systems) is a readable number."""
    pairs = zip(systems or (), texts or (), strict=True)
    return any(_key((system or "", text)) for system, text in pairs)


@lru_cache(maxsize=65_536)
def _key(number: tuple[str, str]) -> str:
    """Returns the normalized key of a pair (system, text), such as s2e4, or "" if it is not readable."""
    return read_numbers((number,)).key


def _numbered_airings(guide: GuideTitles, home_guide: Path | None) -> Iterator[tuple[Episode, Numbers]]:
    """Yields (episode, numbers) for all airings of the guide's titles with a number and a sub-title."""
    yield from _read_airings(guide.folder / "programmes.parquet", guide.title_of_raw.__getitem__)
    if (
        home_guide is None
        or NUMBERS[1] not in pq.read_schema(file := home_guide / "programmes.parquet").names
    ):
        return  # the Guide has no numbering systems, because an older version wrote it
    title_of = {key: title for title, key in enumerate(guide.show_key)}
    yield from _read_airings(file, cache(lambda raw: title_of.get(parse_title(raw).show_key, -1)))


def _read_airings(file: Path, title_of: Callable[[str], int]) -> Iterator[tuple[Episode, Numbers]]:
    """Yields (episode, numbers) for the airings in a programmes.parquet with a number and a sub-title.

    ``title_of`` maps a raw title to its title index, or to -1 to skip the airing.
    """
    for raw, sub_title, texts, systems in read_rows(file, ["title", "sub_title", *NUMBERS]):
        if texts and (folded_sub_title := fold_sub_title(sub_title)) and (title := title_of(raw)) >= 0:
            pairs = zip(((system or ONSCREEN).casefold() for system in systems), texts, strict=True)
            yield (title, folded_sub_title), [pair for pair in pairs if pair[0] in (XMLTV, ONSCREEN)]
