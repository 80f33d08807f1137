"""Reads the episode number of a programme from its ``episode-num`` elements, else its title and sub-title.

Of the systems of elements, xmltv_ns ("1.3.0/2", counted from 0) has priority, then ``season`` combined with
``episode``, then text for viewers ("S2 E4", "2. Staffel, Folge 7"; grammar.py). Other systems hold
ids (tmdb, dd_progid, …): only a complete "S2E4" in them is a number. Years, dates, program ids
(EP012345670004) and 0 are not episode numbers.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from storage.episodes.grammar import KINDS, grammar

XMLTV, PAIR = "xmltv_ns", ("season", "episode")  # names of systems
ONSCREEN = frozenset(("", "onscreen", "on_screen", "common", "sxxexx"))
_FIELD = r"\s*(?:-\d+|(\d*))\s*(?:/\s*(?:-\d+|(\d*))\s*)?"
_XMLTV = re.compile(rf"{_FIELD}(?:\.{_FIELD}(?:\.{_FIELD})?)?")
_DATE = re.compile(
    r"(?<!\d)(?:(?:19|20)\d\d([./-])[01]?\d\1[0-3]?\d|[0-3]?\d([./-])[0-3]?\d\2(?:19|20)?\d\d)(?!\d)"
)
_DAY = re.compile(r"\s*(?:(?:19|20)\d\d\.\d\d?\.\d\d?|\d\d?\.\d\d?\.(?:19|20)\d\d)\s*")
_YEARS = range(1900, 2100)
_PLAIN = re.compile(r"\s*(?:s|e|ep)?\s*(\d{1,8})(?:\s*/\s*(\d{1,5}))?\s*", re.IGNORECASE)
_SXXEXX = re.compile(
    r"\s*(?:s(?P<season>\d{1,8}) ?)?e(?P<episode>\d{1,6})(?:/(?P<episodes>\d{1,5}))?\s*", re.IGNORECASE
)
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-|\bep\d{6}", re.IGNORECASE)
_BARE = re.compile(r"\s*\(?(?:[#＃]|(?!(?:19|20)\d\d\D*$))(\d{1,5})\)?\.?\s*")
_NUMBER_AT_START = re.compile(r"\s*(?:e(\d{1,5})(?= *(?:$|[-–:)]))|(\d{1,4})\)(?=\s|$))", re.IGNORECASE)
_NUMBER_AT_END = re.compile(r"(?<=\S)\s*(?:\((?!(?:19|20)\d\d\b)(\d{1,5})(?:\)|$)|[#＃](\d{1,5}))\s*$")
_DIGIT = re.compile(r"\d")
_LATIN = re.compile("[a-zA-Z\u00c0-\u024f]")
_DIGITS = re.compile(r"\d(?:.*\d)?", re.DOTALL)
_LETTERS = re.compile(r"[\W_]+")
_MAX_WORD_LENGTH = 24  # characters; a word and the text between it and its number are no longer
_MAX_NUMBER = 2**31 - 2  # 1 is added to it, and the sum must fit into an INTEGER


class EpisodeNumber(NamedTuple):
    """Season, episode and part, counted from 1, and the total number of each; None if unknown."""

    season: int | None = None
    seasons: int | None = None
    episode: int | None = None
    episodes: int | None = None
    part: int | None = None
    parts: int | None = None

    @property
    def key(self) -> str:
        """``s2e4``, ``e4``, ``p2``, or ``s2e4p1`` of an episode in parts; empty if only a season is known."""
        part = f"p{self.part}" if self.part and (self.part > 1 or (self.parts or 0) > 1) else ""
        season = "" if self.season is None else f"s{self.season}"
        return part if self.episode is None else f"{season}e{self.episode}{part}"

    def keys(self, sub_title: str | None) -> tuple[str, str]:
        """Returns two identities of an episode within a show: key and folded sub-title; empty if unknown.

        If only a part is known, the sub-title identifies the episode better, and the key is empty.
        """
        folded = fold_sub_title(sub_title)
        return ("" if self.episode is None and folded else self.key), folded


NOTHING = EpisodeNumber()


def read_episode(
    numbers: Iterable[tuple[str | None, str]], title: str | None = None, sub_title: str | None = None
) -> EpisodeNumber:
    """Returns the number in ``episode-num`` elements (system, text), completed by title and sub-title."""
    texts = (title, True), (sub_title, False)
    return complete(
        read_numbers(tuple(numbers)), *(read_text(text or "", is_title) for text, is_title in texts)
    )


def complete(number: EpisodeNumber, title: EpisodeNumber, sub_title: EpisodeNumber) -> EpisodeNumber:
    """Returns the number; if it has no episode, merges the title's number, then the sub-title's."""
    for other in (title, sub_title):
        if number.episode is None:
            number = merge([number, other])
    return number


def read_numbers(numbers: tuple[tuple[str | None, str], ...]) -> EpisodeNumber:
    """Combines all ``episode-num`` elements (system, text) of a programme to one episode number."""
    xmltv, pair, onscreen = [], dict[str, int](), []
    for system, text in numbers:
        system = (system or "").strip().casefold().replace("-", "_")
        if (number := _read_xmltv(text, system)) is not None:
            xmltv.append(number)
        elif system in PAIR and (plain := _PLAIN.fullmatch(text)):
            pair |= {system: int(plain[1])} | ({f"{system}s": int(plain[2])} if plain[2] else {})
        elif (
            system in ONSCREEN
            or system in (XMLTV, *PAIR)
            or ((full := _SXXEXX.fullmatch(text)) and full["season"])
        ):
            onscreen.append(_read_onscreen(text))
    return merge([*xmltv, *([_number(pair)] if pair else ()), *onscreen] or [NOTHING])


def read_text(text: str, is_title: bool) -> EpisodeNumber:
    """Returns the number that a title or sub-title contains among other words."""
    return _number(_read_text(text, is_title)[0])


@lru_cache(maxsize=65_536)
def fold_sub_title(sub_title: str | None) -> str:
    """Returns the letters and digits of a sub-title without its number, case-folded; "Episode 4": empty."""
    text = sub_title or ""
    for begin, end in sorted(_read_text(text, is_title=False)[1], reverse=True):
        text = f"{text[:begin]} {text[end:]}"
    return _LETTERS.sub("", text.casefold())


def merge(readings: Sequence[EpisodeNumber]) -> EpisodeNumber:
    """Returns the first reading with an episode, completed from readings that do not contradict it."""
    if len(readings) == 1:
        return readings[0]
    merged, *others = sorted(readings, key=lambda reading: reading.episode is None)
    for other in others:
        if all(None in pair or pair[0] == pair[1] for pair in zip(merged[:3:2], other[:3:2], strict=True)):
            merged = EpisodeNumber(*(b if a is None else a for a, b in zip(merged, other, strict=True)))
    return merged


def _read_xmltv(text: str, system: str) -> EpisodeNumber | None:
    """Parses three fields between dots, or fewer if the system is xmltv_ns; None for other texts."""
    fields = _XMLTV.fullmatch(text)
    if fields is None or not _DIGIT.search(text) or _DAY.fullmatch(text):
        return None
    if system != XMLTV and (system not in ONSCREEN or text.count(".") != 2):
        return None
    values = [int(value) if value else None for value in fields.groups()]
    values = [None if value is None or value > _MAX_NUMBER else value for value in values]
    return EpisodeNumber(
        *(value if index % 2 or value is None else value + 1 for index, value in enumerate(values))
    )


def _read_onscreen(text: str) -> EpisodeNumber:
    if full := _SXXEXX.fullmatch(text):  # the usual form; five times as fast as searching for words
        return _number({name: int(value) for name, value in full.groupdict().items() if value})
    if _ID.search(text):
        return NOTHING
    text = _DATE.sub(_blank, text)
    values, _ = _read_words(text, strict=False)
    if "episode" not in values:
        if bare := _BARE.fullmatch(text):
            values["episode"] = int(bare[1])
        elif fraction := grammar().fraction.search(text):
            values |= {"episode": int(fraction["number"]), "episodes": int(fraction["total"])}
    return _number(values)


def _read_text(text: str, is_title: bool) -> tuple[dict[str, int], list[tuple[int, int]]]:
    """Returns the values of the number in a title or sub-title, and the spans of season and episode."""
    if not _DIGIT.search(text):
        return {}, []
    text = _DATE.sub(_blank, text)
    values, spans = _read_words(text, strict=True)
    if not values.get("episode"):
        if (fraction := grammar().fraction.search(text)) and _stands_alone(fraction, is_title):
            values |= {"episode": int(fraction["number"]), "episodes": int(fraction["total"])}
            spans.append(fraction.span())
        elif (
            other := _NUMBER_AT_END.search(text)
            if is_title
            else _NUMBER_AT_START.match(text) or _BARE.fullmatch(text)
        ):
            values["episode"] = int(next(filter(None, other.groups())))
            spans.append(other.span())
    return values, spans


def _blank(date: re.Match[str]) -> str:
    return "\x00" * len(date[0])


def _stands_alone(fraction: re.Match[str], is_title: bool) -> bool:
    """Whether "4/6" is in brackets or the whole sub-title, and not a sports season such as "(24/25)"."""
    number, total = int(fraction["number"]), int(fraction["total"])
    if not 0 < number <= total or number in _YEARS or (number in range(17, 40) and total == number + 1):
        return False
    before, behind = fraction.string[: fraction.start()].rstrip(), fraction.string[fraction.end() :].strip()
    return before.endswith(("(", "[")) or not (is_title or before or behind)


def _read_words(text: str, strict: bool) -> tuple[dict[str, int], list[tuple[int, int]]]:
    """Returns values by kind and their spans: season and episode written together, else the first of each.

    Args:
        text: An element, a title or a sub-title.
        strict: The text may contain other words: weak words need a total, and years are not numbers.
    """
    rules, values, spans = grammar(), dict[str, int](), []
    if (digits := _DIGITS.search(text)) is None:
        return values, spans
    begin, end = max(0, digits.start() - _MAX_WORD_LENGTH), digits.end() + _MAX_WORD_LENGTH
    for pattern in rules.together if strict else (*rules.together, rules.cross):
        if both := pattern.search(text, begin, end):
            values |= {"season": int(both[1]), "episode": int(both[2])}
            spans.append(both.span())
            break
    for word, number, total, span in _pairs(text, begin, end):
        kind, short = rules.kinds[word], len(word) <= 3
        if (strict and word in rules.weak and total is None) or (kind == "season" and total is not None):
            continue
        if (
            number in _YEARS
            and short == (kind != "season")
            and (kind == "season" or strict or " " in text[slice(*span)])
        ):
            continue
        if kind != "part":
            spans.append(span)
        if values.setdefault(kind, number) == number and total is not None:
            values.setdefault(f"{kind}s", total)
    return values, spans


def _pairs(text: str, begin: int, end: int) -> Iterator[tuple[str, int, int | None, tuple[int, int]]]:
    """Yields the known words of a text, case-folded, each with its number, the total, and their span."""
    rules, ascii_only = grammar(), text.isascii()
    while pair := rules.words.search(text, begin, end):
        side = "before" if pair["before"] else "behind"
        word = pair[side].casefold()
        if word not in rules.kinds:
            accepted = False
        elif side == "before":  # "show/S3535" is an id
            accepted = len(word) > 2 or not text[: pair.start()].endswith(("/", "-"))
        else:
            accepted = bool(pair["ordinal"]) or not (ascii_only or _LATIN.match(word))
        if accepted:
            total = pair["total"]
            yield word, int(pair["number"] or pair["first"]), int(total) if total else None, pair.span()
        begin = pair.end() if accepted else pair.start("number" if side == "before" else side)
    if not ascii_only:
        for pair in rules.signs.finditer(text):
            yield pair["before"] or pair["behind"], int(pair["number"] or pair["first"]), None, pair.span()


def _number(values: dict[str, int]) -> EpisodeNumber:
    """Builds the number; drops an episode or part 0, and totals smaller than their number."""
    for kind in KINDS if values else ():
        if values.get(kind) == 0 and kind != "season":
            del values[kind]
        if values.get(f"{kind}s", 0) < values.get(kind, 1 << 31):
            values.pop(f"{kind}s", None)
    return EpisodeNumber(**values) if values else NOTHING
