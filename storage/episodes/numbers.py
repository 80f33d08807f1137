"""Parses the episode number of a programme from its ``episode-num`` elements, or its title and sub-title.

Each XMLTV element ``episode-num`` has an attribute ``system``. If a programme has several elements, their
priority is: the system xmltv_ns ("1.3.0/2", counted from 0), then ``season`` combined with ``episode``, then
text for viewers ("S2 E4", "2. Staffel, Folge 7"; see grammar.py). Elements of other systems (tmdb, dd_progid,
…) contain ids and are used only if they have the form "S2E4". Years, dates, program ids (EP012345670004) and
0 are not episode numbers.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from storage.episodes.grammar import NUMBER_KINDS, compile_grammar

# Values of the attribute ``system``.
XMLTV_NS, SEASON_OR_EPISODE = "xmltv_ns", ("season", "episode")
ONSCREEN_SYSTEMS = frozenset(("", "onscreen", "on_screen", "common", "sxxexx"))  # systems of text for viewers
_XMLTV_FIELD = r"\s*(?:-\d+|(\d*))\s*(?:/\s*(?:-\d+|(\d*))\s*)?"
_XMLTV_NUMBER = re.compile(rf"{_XMLTV_FIELD}(?:\.{_XMLTV_FIELD}(?:\.{_XMLTV_FIELD})?)?")
_DATE = re.compile(
    r"(?<!\d)(?:(?:19|20)\d\d([./-])[01]?\d\1[0-3]?\d|[0-3]?\d([./-])[0-3]?\d\2(?:19|20)?\d\d)(?!\d)"
)
_DOTTED_DATE = re.compile(r"\s*(?:(?:19|20)\d\d\.\d\d?\.\d\d?|\d\d?\.\d\d?\.(?:19|20)\d\d)\s*")
_YEARS = range(1900, 2100)
_NUMBER_AND_TOTAL = re.compile(r"\s*(?:s|e|ep)?\s*(\d{1,8})(?:\s*/\s*(\d{1,5}))?\s*", re.IGNORECASE)
_SXXEXX = re.compile(
    r"\s*(?:s(?P<season>\d{1,8}) ?)?e(?P<episode>\d{1,6})(?:/(?P<episodes>\d{1,5}))?\s*", re.IGNORECASE
)
_PROGRAM_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-|\bep\d{6}", re.IGNORECASE)
_NUMBER_ONLY = re.compile(r"\s*\(?(?:[#＃]|(?!(?:19|20)\d\d\D*$))(\d{1,5})\)?\.?\s*")
_NUMBER_AT_START = re.compile(r"\s*(?:e(\d{1,5})(?= *(?:$|[-–:)]))|(\d{1,4})\)(?=\s|$))", re.IGNORECASE)
_NUMBER_AT_END = re.compile(r"(?<=\S)\s*(?:\((?!(?:19|20)\d\d\b)(\d{1,5})(?:\)|$)|[#＃](\d{1,5}))\s*$")
_DIGIT = re.compile(r"\d")
_LATIN = re.compile("[a-zA-Z\u00c0-\u024f]")
_FIRST_TO_LAST_DIGIT = re.compile(r"\d(?:.*\d)?", re.DOTALL)
_NON_WORD_CHARACTERS = re.compile(r"[\W_]+")
_MAX_WORD_LENGTH = 24  # maximum number of characters of a word and of the text between word and number
_MAX_NUMBER = 2**31 - 2  # maximum of a number that is counted from 0; number + 1 must fit into an SQL INTEGER


class EpisodeNumber(NamedTuple):
    """Numbers of season, episode and part, counted from 1, and their totals; None: unknown."""

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
        part_key = f"p{self.part}" if self.part and (self.part > 1 or (self.parts or 0) > 1) else ""
        season_key = "" if self.season is None else f"s{self.season}"
        return part_key if self.episode is None else f"{season_key}e{self.episode}{part_key}"

    def keys(self, sub_title: str | None) -> tuple[str, str]:
        """Returns two texts that identify an episode within a show: ``key`` and the folded sub-title.

        A text is empty if it is unknown. The key is also empty if the programme has a sub-title and the
        episode is unknown, because the sub-title identifies an episode better than a part does.
        """
        folded_sub_title = fold_sub_title(sub_title)
        return ("" if self.episode is None and folded_sub_title else self.key), folded_sub_title


UNKNOWN_EPISODE = EpisodeNumber()


def read_episode(
    elements: Iterable[tuple[str | None, str]], title: str | None = None, sub_title: str | None = None
) -> EpisodeNumber:
    """Returns the episode number of a programme.

    Args:
        elements: (System, text) of each XMLTV element ``episode-num`` of the programme.
        title: Title, which is parsed if the elements contain no episode.
        sub_title: Sub-title, which is parsed if elements and title contain no episode.
    """
    title_number, sub_title_number = read_text(title or "", True), read_text(sub_title or "", False)
    return complete_number(read_numbers(tuple(elements)), title_number, sub_title_number)


def complete_number(number: EpisodeNumber, title: EpisodeNumber, sub_title: EpisodeNumber) -> EpisodeNumber:
    """Returns ``number``; if its episode is unknown, merges it with the numbers in title and sub-title."""
    for text_number in (title, sub_title):
        if number.episode is None:
            number = merge_numbers([number, text_number])
    return number


def read_numbers(elements: tuple[tuple[str | None, str], ...]) -> EpisodeNumber:
    """Merges the numbers in all ``episode-num`` elements (system, text) of a programme."""
    xmltv_numbers, values, onscreen_numbers = [], dict[str, int](), []
    for system, text in elements:
        system = (system or "").strip().casefold().replace("-", "_")
        if (number := _read_xmltv(text, system)) is not None:
            xmltv_numbers.append(number)
        elif system in SEASON_OR_EPISODE and (match := _NUMBER_AND_TOTAL.fullmatch(text)):
            values |= {system: int(match[1])} | ({f"{system}s": int(match[2])} if match[2] else {})
        elif (
            system in ONSCREEN_SYSTEMS
            or system in (XMLTV_NS, *SEASON_OR_EPISODE)
            or ((match := _SXXEXX.fullmatch(text)) and match["season"])
        ):
            onscreen_numbers.append(_read_onscreen(text))
    season_and_episode = [_make_number(values)] if values else []
    return merge_numbers([*xmltv_numbers, *season_and_episode, *onscreen_numbers] or [UNKNOWN_EPISODE])


def read_text(text: str, is_title: bool) -> EpisodeNumber:
    """Parses the episode number in a title or sub-title. The text may contain other words."""
    return _make_number(_read_text(text, is_title)[0])


@lru_cache(maxsize=65_536)
def fold_sub_title(sub_title: str | None) -> str:
    """Removes episode number, spaces and punctuation from a sub-title and case-folds it.

    The result for "Episode 4" is empty.
    """
    text = sub_title or ""
    for begin, end in sorted(_read_text(text, is_title=False)[1], reverse=True):
        text = f"{text[:begin]} {text[end:]}"
    return _NON_WORD_CHARACTERS.sub("", text.casefold())


def merge_numbers(numbers: Sequence[EpisodeNumber]) -> EpisodeNumber:
    """Merges episode numbers that different texts state for one programme.

    Returns:
        The first EpisodeNumber whose episode is known. Its unknown fields are filled from the others, except
        from those with a different season or episode.
    """
    if len(numbers) == 1:
        return numbers[0]
    merged_number, *other_numbers = sorted(numbers, key=lambda number: number.episode is None)
    for number in other_numbers:
        pairs = zip(merged_number[:3:2], number[:3:2], strict=True)  # seasons, episodes
        if all(None in pair or pair[0] == pair[1] for pair in pairs):
            values = zip(merged_number, number, strict=True)
            merged_number = EpisodeNumber(*(new if old is None else old for old, new in values))
    return merged_number


def _read_xmltv(text: str, system: str) -> EpisodeNumber | None:
    """Parses a text such as "1.3.0/2" (season.episode.part/parts, counted from 0); other texts give None.

    If the system is xmltv_ns, episode and part may be missing.
    """
    number_match = _XMLTV_NUMBER.fullmatch(text)
    if number_match is None or not _DIGIT.search(text) or _DOTTED_DATE.fullmatch(text):
        return None
    if system != XMLTV_NS and (system not in ONSCREEN_SYSTEMS or text.count(".") != 2):
        return None
    values = [int(value) if value else None for value in number_match.groups()]
    values = [None if value is None or value > _MAX_NUMBER else value for value in values]
    return EpisodeNumber(
        *(value if index % 2 or value is None else value + 1 for index, value in enumerate(values))
    )


def _read_onscreen(text: str) -> EpisodeNumber:
    if match := _SXXEXX.fullmatch(text):  # the usual form, matched five times as fast as by _read_words
        return _make_number({name: int(value) for name, value in match.groupdict().items() if value})
    if _PROGRAM_ID.search(text):
        return UNKNOWN_EPISODE
    text = _DATE.sub(_mask_date, text)
    values, _ = _read_words(text, strict=False)
    if "episode" not in values:
        if number_match := _NUMBER_ONLY.fullmatch(text):
            values["episode"] = int(number_match[1])
        elif fraction := compile_grammar().fraction.search(text):
            values |= {"episode": int(fraction["number"]), "episodes": int(fraction["total"])}
    return _make_number(values)


def _read_text(text: str, is_title: bool) -> tuple[dict[str, int], list[tuple[int, int]]]:
    """Parses a title or sub-title.

    Returns:
        The numbers by name ("season", "seasons", …), and the spans (begin, end) of season and episode.
    """
    if not _DIGIT.search(text):
        return {}, []
    text = _DATE.sub(_mask_date, text)
    values, spans = _read_words(text, strict=True)
    if not values.get("episode"):
        if (fraction := compile_grammar().fraction.search(text)) and _is_episode_fraction(fraction, is_title):
            values |= {"episode": int(fraction["number"]), "episodes": int(fraction["total"])}
            spans.append(fraction.span())
        elif (
            number_match := _NUMBER_AT_END.search(text)
            if is_title
            else _NUMBER_AT_START.match(text) or _NUMBER_ONLY.fullmatch(text)
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
    text_before = fraction.string[: fraction.start()].rstrip()
    text_after = fraction.string[fraction.end() :].strip()
    return text_before.endswith(("(", "[")) or not (is_title or text_before or text_after)


def _read_words(text: str, strict: bool) -> tuple[dict[str, int], list[tuple[int, int]]]:
    """Finds the words for season, episode and part in a text, and their numbers.

    Args:
        text: Content of an ``episode-num`` element, a title or a sub-title.
        strict: True for a title or sub-title, which may contain other words: ambiguous words count only
            before a total, and years are not used as numbers.

    Returns:
        The first number by name ("season", "seasons", …), and the spans (begin, end) of season and episode.
    """
    rules, values, spans = compile_grammar(), dict[str, int](), []
    if (digits := _FIRST_TO_LAST_DIGIT.search(text)) is None:
        return values, spans
    begin, end = max(0, digits.start() - _MAX_WORD_LENGTH), digits.end() + _MAX_WORD_LENGTH
    patterns = rules.season_and_episode if strict else (*rules.season_and_episode, rules.season_x_episode)
    for pattern in patterns:
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
    """Yields (word, number, total or None, span) for each word of ``Grammar.kinds`` in text[begin:end].

    The words are case-folded.
    """
    rules, ascii_only = compile_grammar(), text.isascii()
    while pair := rules.word_and_number.search(text, begin, end):
        side = "before" if pair["before"] else "after"
        word = pair[side].casefold()
        if word not in rules.kinds:
            is_accepted = False
        elif side == "before":  # short words after / or - belong to ids such as "show/S3535"
            is_accepted = len(word) > 2 or not text[: pair.start()].endswith(("/", "-"))
        else:
            is_accepted = bool(pair["ordinal"]) or not (ascii_only or _LATIN.match(word))
        if is_accepted:
            total = pair["total"]
            yield word, int(pair["number"] or pair["first"]), int(total) if total else None, pair.span()
        begin = pair.end() if is_accepted else pair.start("number" if side == "before" else side)
    if not ascii_only:
        for pair in rules.unspaced_word_and_number.finditer(text):
            yield pair["before"] or pair["after"], int(pair["number"] or pair["first"]), None, pair.span()


def _make_number(values: dict[str, int]) -> EpisodeNumber:
    """Creates an EpisodeNumber. Omits episode 0, part 0, and totals that are less than their number."""
    for kind in NUMBER_KINDS if values else ():
        if values.get(kind) == 0 and kind != "season":
            del values[kind]
        if values.get(f"{kind}s", 0) < values.get(kind, 1 << 31):
            values.pop(f"{kind}s", None)
    return EpisodeNumber(**values) if values else UNKNOWN_EPISODE
