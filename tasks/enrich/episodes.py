"""Episode numbers of programmes that have none: what all other airings of the same episode say.

An episode is a show key and a sub-title (its letters and digits; none that only counts, "Episode 4"). Its
airings in this guide and in the home's agree if they have one number in each system, and all of them mean the
same episode. Left alone are shows that are numbered in two ways, by season here and throughout there, and
those whose airings with numbers have one sub-title only: it is part of the name ("Dexter", "Original Sin").
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path

import pyarrow.parquet as pq

from storage.episodes.numbers import fold_sub_title, read_numbers
from tasks.enrich.titles import GuideTitles
from tasks.text.titles import parse_title

NUMBERS = "episode_numbers", "episode_systems"  # columns
XMLTV, ONSCREEN = "xmltv_ns", "onscreen"  # systems that are written
_BATCH = 8192
Episode = tuple[int, str]  # title and folded sub-title
Numbers = Sequence[tuple[str, str]]  # systems and texts


def find_numbers(guide: GuideTitles, home_guide: Path | None) -> dict[Episode, Numbers]:
    """Numbers of the guide's episodes of which some airings have none, and the others agree.

    Args:
        home_guide: Folder of a Guide whose airings are asked too.
    """
    file, columns = guide.folder / "programmes.parquet", ["title", "sub_title"]
    wanted = {
        (guide.of_raw[title], folded)
        for title, sub_title, place in _rows(file, [*columns, "number_place"])
        if place >= 0 and (folded := fold_sub_title(sub_title)) and not guide.placeholder[guide.of_raw[title]]
    }
    return agreed(wanted, _said(guide, home_guide)) if wanted else {}


def agreed(wanted: set[Episode], said: Iterable[tuple[Episode, Numbers]]) -> dict[Episode, Numbers]:
    """Numbers of those wanted episodes whose airings agree; ``said`` has an entry an airing with numbers."""
    titles = {title for title, _ in wanted}
    found: dict[Episode, set[tuple[str, str]]] = {}
    seasons: dict[int, set[bool]] = {}  # whether numbers of a title have one
    sub_titles: dict[int, set[str]] = {}
    for episode, numbers in said:
        if episode[0] in titles:
            seasons.setdefault(episode[0], set()).update(key.startswith("s") for key in _keys(numbers))
            sub_titles.setdefault(episode[0], set()).add(episode[1])
            if episode in wanted:
                found.setdefault(episode, set()).update(numbers)
    return {
        episode: sorted(numbers, reverse=True)  # xmltv_ns first
        for episode, numbers in found.items()
        if numbers and len(seasons[episode[0]]) <= 1 and len(sub_titles[episode[0]]) > 1 and _agree(numbers)
    }


def _agree(numbers: set[tuple[str, str]]) -> bool:
    return len({system for system, _ in numbers}) == len(numbers) and len(_keys(numbers)) <= 1


def _keys(numbers: Iterable[tuple[str, str]]) -> set[str]:
    return {_key(number) for number in numbers} - {""}


@lru_cache(maxsize=65_536)
def _key(number: tuple[str, str]) -> str:
    return read_numbers((number,)).key


def _said(guide: GuideTitles, home_guide: Path | None) -> Iterator[tuple[Episode, Numbers]]:
    """Airings of the guide's titles with numbers and a sub-title."""
    yield from _numbered(guide.folder / "programmes.parquet", guide.of_raw.__getitem__)
    if (
        home_guide is None
        or NUMBERS[1] not in pq.read_schema(file := home_guide / "programmes.parquet").names
    ):
        return  # an older version kept no systems: the next run writes them
    title_of = {key: title for title, key in enumerate(guide.show_key)}
    yield from _numbered(file, cache(lambda raw: title_of.get(parse_title(raw).show_key, -1)))


def _numbered(file: Path, title_of: Callable[[str], int]) -> Iterator[tuple[Episode, Numbers]]:
    """Airings in a guide of the titles that have a number."""
    for raw, sub_title, texts, systems in _rows(file, ["title", "sub_title", *NUMBERS]):
        if texts and (folded := fold_sub_title(sub_title)) and (title := title_of(raw)) >= 0:
            pairs = zip(((system or ONSCREEN).casefold() for system in systems), texts, strict=True)
            yield (title, folded), [pair for pair in pairs if pair[0] in (XMLTV, ONSCREEN)]


def _rows(file: Path, columns: Sequence[str]) -> Iterator[tuple]:
    for batch in pq.ParquetFile(file, pre_buffer=False).iter_batches(
        _BATCH, columns=columns, use_threads=False
    ):
        yield from zip(*(batch[name].to_pylist() for name in columns))
