"""Builds regular expressions that match episode numbers in texts of many languages, from words.toml.

A text is read from left to right as pairs of a word and a number: "Episode 7", or "2. Staffel" with the
number first, which needs an ordinal mark in Latin script. The leftmost possible pair is used: "2. évad 14.
rész" contains (2, évad) and (14, rész), and "Kausi 2. Jakso 5" contains (Kausi, 2) and (Jakso, 5).
"""

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

KINDS = "season", "episode", "part"
# Matches characters of scripts in which no space is required between a word and its number.
_UNSPACED = re.compile("[\u0900-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_ORDINAL = r"(?P<ordinal>\.|[ªºa°]|(?:-?[йя]|-?ша|e|è?me|st|nd|rd|th|ος)(?= )|)"
# Match a season and an episode in one expression: S01E02, S7 Ep. 16, T24E25, S18 – E3/20; (1.2); 1x05; Κ6 ε4.
_SEASON_AND_EPISODE = (
    r"(?<![\w/.])(?:s|st\.?|t) ?(\d{1,8})[ .,:–-]{0,3}e(?:[ep]|ps)?\.? ?(\d{1,6})(?=\W|_|$|[exp]\d)",
    r"[(\[] *([1-9]\d?)\.([1-9]\d{0,2}) *[)\]]",
    r"(?<![\w/.,])(\d{1,2})x(\d\d)(?![\w.,]| *k?m\b)",
    r"(?<!\w)[κk]['΄’]? ?(\d{1,3}) *[,:/-]? *ε(?:π\.?)?['΄’]? ?(\d{1,5})\b",
)
_CROSS = r"(?<![\w/.,])(\d{1,3})x(\d{1,6})(?![\w.,])"  # 1x5, in a text that contains only an episode number


class Grammar(NamedTuple):
    """Compiled regular expressions for episode numbers, and the words that they contain."""

    season_and_episode: tuple[re.Pattern[str], ...]  # season and episode in one expression
    season_x_episode: re.Pattern[str]  # season and episode as in 1x5
    word_and_number: re.Pattern[str]  # any word and the number before or behind it
    sign_and_number: re.Pattern[
        str
    ]  # a word of a script that needs no spaces, and the number before or behind it
    fraction: re.Pattern[str]  # number and total, such as "4/6" or "3 of 8"
    kinds: dict[str, str]  # case-folded word -> "season", "episode" or "part"
    ambiguous_words: frozenset[
        str
    ]  # ambiguous words, used only in an episode-num element or if a total follows


@cache
def grammar() -> Grammar:
    """Compiles the regular expressions, each of which covers all languages of words.toml."""
    file = Path(__file__).with_name("words.toml")
    tables = tomllib.loads(file.read_text(encoding="utf-8")).values()
    kinds = {word.casefold(): kind for kind in KINDS for table in tables for word in table[kind]}
    sign = "|".join(sorted(filter(_UNSPACED.match, kinds), key=len, reverse=True))
    of_words = "|".join(sorted({word for table in tables for word in table["of"]}))
    total = rf" *(?:/|\b(?:{of_words})\b) *(?P<total>\d{{1,5}})(?!\d)"
    # The number must not be part of another word ("E1F0"), a decimal, or the beginning of an id.
    word_and_number = (
        rf"(?<!\w)(?P<before>[^\W\d_]++)\.?[:#]? ?(?P<number>\d{{1,6}})(?![^\W_]|[.,:]\d)(?:{total})?"
        rf"|(?<![\w.,/:])(?P<first>\d{{1,6}}){_ORDINAL} ?(?P<behind>[^\W\d_]++)(?!\d)"
    )
    sign_and_number = (
        rf"(?P<before>{sign}) ?(?P<number>\d{{1,6}})(?!\d)|(?P<first>\d{{1,6}}) ?(?P<behind>{sign})"
    )
    return Grammar(
        tuple(re.compile(pattern, re.IGNORECASE) for pattern in _SEASON_AND_EPISODE),
        re.compile(_CROSS, re.IGNORECASE),
        re.compile(word_and_number, re.IGNORECASE),
        re.compile(sign_and_number),
        re.compile(rf"(?<![\w.,/-])(?P<number>\d{{1,5}}){total}(?![\w/])", re.IGNORECASE),
        kinds,
        frozenset(word.casefold() for table in tables for word in table["weak"]),
    )


def words_pattern(kind: str) -> str:
    """Returns a regular expression that matches any word for ``kind`` (season, episode or part).

    A dot may follow the word. One-letter words are included for seasons only.
    """
    min_length = 1 if kind == "season" else 2
    word_and_number = [
        word for word, group in grammar().kinds.items() if group == kind and len(word) >= min_length
    ]
    return rf"(?:(?:{'|'.join(map(re.escape, sorted(word_and_number, key=len, reverse=True)))})\.?)"
