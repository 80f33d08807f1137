"""Builds regular expressions that match episode numbers in texts of many languages, from words.toml.

A text is read from left to right as pairs of a word and a number, such as "Episode 7". The number may also
precede the word, as in "2. Staffel", but in Latin script only with an ordinal mark such as a dot. The
leftmost possible pair is used: "2. évad 14. rész" contains (2, évad) and (14, rész), and "Kausi 2. Jakso 5"
contains (Kausi, 2) and (Jakso, 5).
"""

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

NUMBER_KINDS = "season", "episode", "part"  # kinds of numbers
# Matches characters of scripts in which no space is required between a word and its number.
_UNSPACED_SCRIPT = re.compile("[\u0900-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_ORDINAL_MARK = r"(?P<ordinal>\.|[ªºa°]|(?:-?[йя]|-?ша|e|è?me|st|nd|rd|th|ος)(?= )|)"
# Patterns for a season with its episode: S01E02, S7 Ep. 16, T24E25, S18 – E3/20; (1.2); 1x05; Κ6 ε4.
_SEASON_AND_EPISODE = (
    r"(?<![\w/.])(?:s|st\.?|t) ?(\d{1,8})[ .,:–-]{0,3}e(?:[ep]|ps)?\.? ?(\d{1,6})(?=\W|_|$|[exp]\d)",
    r"[(\[] *([1-9]\d?)\.([1-9]\d{0,2}) *[)\]]",
    r"(?<![\w/.,])(\d{1,2})x(\d\d)(?![\w.,]| *k?m\b)",
    r"(?<!\w)[κk]['΄’]? ?(\d{1,3}) *[,:/-]? *ε(?:π\.?)?['΄’]? ?(\d{1,5})\b",
)
_SEASON_X_EPISODE = r"(?<![\w/.,])(\d{1,3})x(\d{1,6})(?![\w.,])"  # 1x5, in an episode-num element


class Grammar(NamedTuple):
    """Compiled regular expressions for episode numbers, and the words that they contain."""

    season_and_episode: tuple[re.Pattern[str], ...]  # a season with its episode, such as S01E02
    season_x_episode: re.Pattern[str]  # a season with its episode, such as 1x5
    word_and_number: re.Pattern[str]  # any word with the number before or after it
    unspaced_word_and_number: re.Pattern[str]  # like word_and_number, for scripts that need no spaces
    fraction: re.Pattern[str]  # number and total, such as "4/6" or "3 of 8"
    kinds: dict[str, str]  # case-folded word -> "season", "episode" or "part"
    ambiguous_words: frozenset[str]  # words that count only in an episode-num element or before a total


@cache
def compile_grammar() -> Grammar:
    """Compiles the regular expressions, each for all languages of words.toml. The result is cached."""
    file = Path(__file__).with_name("words.toml")
    tables = tomllib.loads(file.read_text(encoding="utf-8")).values()
    kinds = {word.casefold(): kind for kind in NUMBER_KINDS for table in tables for word in table[kind]}
    unspaced_word = "|".join(sorted(filter(_UNSPACED_SCRIPT.match, kinds), key=len, reverse=True))
    of_word = "|".join(sorted({word for table in tables for word in table["of"]}))
    total = rf" *(?:/|\b(?:{of_word})\b) *(?P<total>\d{{1,5}})(?!\d)"
    # The number must not be part of another word ("E1F0"), a decimal, or the beginning of an id.
    word_and_number = (
        rf"(?<!\w)(?P<before>[^\W\d_]++)\.?[:#]? ?(?P<number>\d{{1,6}})(?![^\W_]|[.,:]\d)(?:{total})?"
        rf"|(?<![\w.,/:])(?P<first>\d{{1,6}}){_ORDINAL_MARK} ?(?P<after>[^\W\d_]++)(?!\d)"
    )
    unspaced_word_and_number = (
        rf"(?P<before>{unspaced_word}) ?(?P<number>\d{{1,6}})(?!\d)"
        rf"|(?P<first>\d{{1,6}}) ?(?P<after>{unspaced_word})"
    )
    return Grammar(
        tuple(re.compile(pattern, re.IGNORECASE) for pattern in _SEASON_AND_EPISODE),
        re.compile(_SEASON_X_EPISODE, re.IGNORECASE),
        re.compile(word_and_number, re.IGNORECASE),
        re.compile(unspaced_word_and_number),
        re.compile(rf"(?<![\w.,/-])(?P<number>\d{{1,5}}){total}(?![\w/])", re.IGNORECASE),
        kinds,
        frozenset(word.casefold() for table in tables for word in table["ambiguous"]),
    )


def words_pattern(kind: str) -> str:
    """Returns a regular expression that matches any word for ``kind`` (season, episode or part).

    A dot may follow the word. One-letter words are included for seasons only.
    """
    min_length = 1 if kind == "season" else 2
    words = [
        word
        for word, word_kind in compile_grammar().kinds.items()
        if word_kind == kind and len(word) >= min_length
    ]
    return rf"(?:(?:{'|'.join(map(re.escape, sorted(words, key=len, reverse=True)))})\.?)"
