"""Which episode a programme is, as far as a guide or a media library says it: ``s2e4``, ``e4`` or nothing."""

import re
from collections.abc import Iterable

# xmltv_ns counts from 0: "1.3.0/2", " . 3 . "; parts of it may be missing.
_XMLTV = re.compile(r"\s*(\d*)\s*(?:/\s*\d*)?\s*\.\s*(\d*)\s*(?:/\s*\d*)?\s*(?:\.[\d\s/]*)?")
_SEASON = r"(?:s|season|series|staffel|saison|temporada|stagione|seizoen|sæson|sesong|säsong)"
_EPISODE = r"(?:e|ep|eps|episode|episodio|épisode|folge|afl|aflevering|avsnitt|afsnit|puntata|odc)"
_BOTH = re.compile(
    rf"\b{_SEASON}\.?\s*(\d{{1,4}})\s*[-–,.:/]?\s*{_EPISODE}[.#]?\s*(\d{{1,5}})\b", re.IGNORECASE
)
_CROSS = re.compile(r"\b(\d{1,3})x(\d{1,4})\b")
_ONE = re.compile(rf"\b{_EPISODE}(?![^\W\d])[.#]?\s*(\d{{1,5}})\b", re.IGNORECASE)
_BARE = re.compile(r"\s*\(?#?(\d{1,5})(?:\s*/\s*\d{1,5})?\)?\s*")
_LETTERS = re.compile(r"[\W_]+")


def episode_key(numbers: Iterable[str], *texts: str | None) -> str:
    """The episode that numbers as a guide has them (of any system) say, else the texts beside them (title,
    sub-title); empty if none does.
    """
    numbers = list(numbers)
    for number in numbers:
        if (found := _XMLTV.fullmatch(number)) and found[2]:
            return name_episode(int(found[1]) + 1 if found[1] else None, int(found[2]) + 1)
    for text in (*numbers, *filter(None, texts)):
        if found := _BOTH.search(text) or _CROSS.search(text):
            return name_episode(int(found[1]), int(found[2]))
    for text in (*numbers, *filter(None, texts)):
        if found := _ONE.search(text):
            return name_episode(None, int(found[1]))
    bare = (found for number in numbers if (found := _BARE.fullmatch(number)))
    return next((name_episode(None, int(found[1])) for found in bare), "")


def name_episode(season: int | None, episode: int) -> str:
    """``s2e4``, or ``e4`` where no season is known."""
    return f"e{episode}" if season is None else f"s{season}e{episode}"


def fold_sub_title(sub_title: str | None) -> str:
    """A sub-title's letters and digits, case-folded; empty where it only counts: "Episode 4"."""
    text = sub_title or ""
    counts = _ONE.fullmatch(text.strip()) or _BOTH.fullmatch(text.strip()) or _BARE.fullmatch(text)
    return "" if counts else _LETTERS.sub("", text.casefold())
