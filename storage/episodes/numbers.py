"""Parses the episode number of a programme from its ``episode-num`` elements, or its title and sub-title.

Each XMLTV element ``episode-num`` has an attribute ``system``. The system xmltv_ns ("1.3.0/2", counted from
0) has priority, then ``season`` combined with ``episode``, then text for viewers ("S2 E4", "2. Staffel, Folge
7"; see grammar.py). Elements of other systems (tmdb, dd_progid, …) contain ids and are used only if they have
the form "S2E4". Years, dates, program ids (EP012345670004) and 0 are not episode numbers.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from storage.episodes.grammar import KINDS, grammar

XMLTV, PAIR = "xmltv_ns", ("season", "episode")  # values of the attribute ``system``
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
_FIRST_TO_LAST_DIGIT = re.compile(r"\d(?:.*\d)?", re.DOTALL)
_NO_LETTERS = re.compile(r"[\W_]+")
_MAX_WORD_LENGTH = 24  # maximum number of characters of a word with the text between it and its number
_MAX_NUMBER = 2**31 - 2  # maximum of a number counted from 0; number + 1 must fit into an SQL INTEGER


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
        """Returns the number as text: ``s2e4``, ``e4``, ``p2`` or, for a part of an episode, ``s2e4p1``.

        The text is empty if neither episode nor part is known.
        """
        part = f"p{self.part}" if self.part and (self.part > 1 or (self.parts or 0) > 1) else ""
        season = "" if self.season is None else f"s{self.season}"
        return part if self.episode is None else f"{season}e{self.episode}{part}"

    def keys(self, sub_title: str | None) -> tuple[str, str]:
        """Returns two texts that identify an episode within a show: ``key`` and the folded sub-title.

        A text is empty if unknown. The key is also empty if only a part and a sub-title are known, because
        the sub-title then identifies the episode better.
        """
        folded_sub_title = fold_sub_title(sub_title)
        return ("" if self.episode is None and folded_sub_title else self.key), folded_sub_title


UNKNOWN_EPISODE = EpisodeNumber()


def read_episode(
    numbers: Iterable[tuple[str | None, str]], title: str | None = None, sub_title: str | None = None
) -> EpisodeNumber:
    """Returns the episode number of a programme.

    Args:
        numbers: (System, text) of each XMLTV element ``episode-num``.
        title: Title, which is parsed if the elements contain no episode.
        sub_title: Sub-title, which is parsed if elements and title contain no episode.
    """
    texts = (title, True), (sub_title, False)
    return complete(
        read_numbers(tuple(numbers)), *(read_text(text or "", is_title) for text, is_title in texts)
    )


def complete(number: EpisodeNumber, title: EpisodeNumber, sub_title: EpisodeNumber) -> EpisodeNumber:
    """Returns ``number``, completed with numbers in title and sub-title if its episode is unknown."""
    for text_number in (title, sub_title):
        if number.episode is None:
            number = merge([number, text_number])
    return number


def read_numbers(numbers: tuple[tuple[str | None, str], ...]) -> EpisodeNumber:
    """Combines all ``episode-num`` elements (system, text) of a programme to one episode number."""
    xmltv, pair, onscreen = [], dict[str, int](), []
    for system, text in numbers:
        system = (system or "").strip().casefold().replace("-", "_")
        if (number := _read_xmltv(text, system)) is not None:
            xmltv.append(number)
        elif system in PAIR and (match := _PLAIN.fullmatch(text)):
            pair |= {system: int(match[1])} | ({f"{system}s": int(match[2])} if match[2] else {})
        elif (
            system in ONSCREEN
            or system in (XMLTV, *PAIR)
            or ((season_and_episode := _SXXEXX.fullmatch(text)) and season_and_episode["season"])
        ):
            onscreen.append(_read_onscreen(text))
    return merge([*xmltv, *([_make_number(pair)] if pair else ()), *onscreen] or [UNKNOWN_EPISODE])


def read_text(text: str, is_title: bool) -> EpisodeNumber:
    """Parses the episode number in a title or sub-title, which may contain other words."""
    return _make_number(_read_text(text, is_title)[0])


@lru_cache(maxsize=65_536)
def fold_sub_title(sub_title: str | None) -> str:
    """Removes episode number and punctuation from a sub-title and case-folds it; "Episode 4" becomes ''."""
    text = sub_title or ""
    for begin, end in sorted(_read_text(text, is_title=False)[1], reverse=True):
        text = f"{text[:begin]} {text[end:]}"
    return _NO_LETTERS.sub("", text.casefold())


def merge(numbers: Sequence[EpisodeNumber]) -> EpisodeNumber:
    """Merges episode numbers of one programme that come from different texts.

    Returns:
        The first number with an episode, completed with values of the numbers that do not contradict it.
    """
    if len(numbers) == 1:
        return numbers[0]
    merged, *other_numbers = sorted(numbers, key=lambda number: number.episode is None)
    for number in other_numbers:
        if all(None in pair or pair[0] == pair[1] for pair in zip(merged[:3:2], number[:3:2], strict=True)):
            merged = EpisodeNumber(*(b if a is None else a for a, b in zip(merged, number, strict=True)))
    return merged


def _read_xmltv(text: str, system: str) -> EpisodeNumber | None:
    """Parses a text like "1.3.0/2" (season.episode.part, counted from 0); returns None for other texts.

    Episode and part may be missing if the system is xmltv_ns.
    """
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
    if match := _SXXEXX.fullmatch(text):  # the usual form; five times as fast as searching for words
        return _make_number({name: int(value) for name, value in match.groupdict().items() if value})
    if _ID.search(text):
        return UNKNOWN_EPISODE
    text = _DATE.sub(_mask_date, text)
    values, _ = _read_words(text, strict=False)
    if "episode" not in values:
        if bare_number := _BARE.fullmatch(text):
            values["episode"] = int(bare_number[1])
        elif fraction := grammar().fraction.search(text):
            values |= {"episode": int(fraction["number"]), "episodes": int(fraction["total"])}
    return _make_number(values)


def _read_text(text: str, is_title: bool) -> tuple[dict[str, int], list[tuple[int, int]]]:
    """Parses a title or sub-title; returns values by kind ("season", …) and spans of season and episode."""
    if not _DIGIT.search(text):
        return {}, []
    text = _DATE.sub(_mask_date, text)
    values, spans = _read_words(text, strict=True)
    if not values.get("episode"):
        if (fraction := grammar().fraction.search(text)) and _is_episode_fraction(fraction, is_title):
            values |= {"episode": int(fraction["number"]), "episodes": int(fraction["total"])}
            spans.append(fraction.span())
        elif (
            number_match := _NUMBER_AT_END.search(text)
            if is_title
            else _NUMBER_AT_START.match(text) or _BARE.fullmatch(text)
        ):
            values["episode"] = int(next(filter(None, number_match.groups())))
            spans.append(number_match.span())
    return values, spans


def _mask_date(date: re.Match[str]) -> str:
    return "\x00" * len(date[0])


def _is_episode_fraction(fraction: re.Match[str], is_title: bool) -> bool:
    """Returns whether a fraction such as "4/6" is an episode number.

    It must be in brackets or be the complete sub-title, and must not be a sports season such as "(24/25)".
    """
    number, total = int(fraction["number"]), int(fraction["total"])
    if not 0 < number <= total or number in _YEARS or (number in range(17, 40) and total == number + 1):
        return False
    text_before, text_after = (
        fraction.string[: fraction.start()].rstrip(),
        fraction.string[fraction.end() :].strip(),
    )
    return text_before.endswith(("(", "[")) or not (is_title or text_before or text_after)


def _read_words(text: str, strict: bool) -> tuple[dict[str, int], list[tuple[int, int]]]:
    """Finds words for season, episode and part with their numbers in a text.

    Args:
        text: Content of an ``episode-num`` element, a title or a sub-title.
        strict: Whether the text may contain other words, so that ambiguous words need a total and years are
            not used as numbers.

    Returns:
        The first number of each kind ("season", "seasons", …), and the spans of season and episode.
    """
    rules, values, spans = grammar(), dict[str, int](), []
    if (digits := _FIRST_TO_LAST_DIGIT.search(text)) is None:
        return values, spans
    begin, end = max(0, digits.start() - _MAX_WORD_LENGTH), digits.end() + _MAX_WORD_LENGTH
    for pattern in (
        rules.season_and_episode if strict else (*rules.season_and_episode, rules.season_x_episode)
    ):
        if match := pattern.search(text, begin, end):
            values |= {"season": int(match[1]), "episode": int(match[2])}
            spans.append(match.span())
            break
    for word, number, total, span in _find_pairs(text, begin, end):
        kind, is_short = rules.kinds[word], len(word) <= 3
        if (strict and word in rules.ambiguous_words and total is None) or (
            kind == "season" and total is not None
        ):
            continue
        if (
            number in _YEARS
            and is_short == (kind != "season")
            and (kind == "season" or strict or " " in text[slice(*span)])
        ):
            continue
        if kind != "part":
            spans.append(span)
        if values.setdefault(kind, number) == number and total is not None:
            values.setdefault(f"{kind}s", total)
    return values, spans


def _find_pairs(text: str, begin: int, end: int) -> Iterator[tuple[str, int, int | None, tuple[int, int]]]:
    """Yields (word, number, total or None, span) of each word for season, episode or part in a text.

    Words are case-folded. Only text[begin:end] is searched.
    """
    rules, ascii_only = grammar(), text.isascii()
    while pair := rules.word_and_number.search(text, begin, end):
        side = "before" if pair["before"] else "behind"
        word = pair[side].casefold()
        if word not in rules.kinds:
            is_accepted = False
        elif side == "before":  # "show/S3535" is an id
            is_accepted = len(word) > 2 or not text[: pair.start()].endswith(("/", "-"))
        else:
            is_accepted = bool(pair["ordinal"]) or not (ascii_only or _LATIN.match(word))
        if is_accepted:
            total = pair["total"]
            yield word, int(pair["number"] or pair["first"]), int(total) if total else None, pair.span()
        begin = pair.end() if is_accepted else pair.start("number" if side == "before" else side)
    if not ascii_only:
        for pair in rules.sign_and_number.finditer(text):
            yield pair["before"] or pair["behind"], int(pair["number"] or pair["first"]), None, pair.span()


def _make_number(values: dict[str, int]) -> EpisodeNumber:
    """Creates an EpisodeNumber without episode 0, part 0, and totals that are less than the number."""
    for kind in KINDS if values else ():
        if values.get(kind) == 0 and kind != "season":
            del values[kind]
        if values.get(f"{kind}s", 0) < values.get(kind, 1 << 31):
            values.pop(f"{kind}s", None)
    return EpisodeNumber(**values) if values else UNKNOWN_EPISODE
