"""Regular expressions of written episode numbers, built from the words of words.toml.

A text is read from left to right as pairs of a word and a number: "Folge 7", or "2. Staffel", where Latin
script requires the ordinal mark. At each place the leftmost pair is used: "2. évad 14. rész" contains
(2, évad) and (14, rész), "Kausi 2. Jakso 5" contains (Kausi, 2) and (Jakso, 5).
"""

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

KINDS = "season", "episode", "part"
# Scripts that need no space between a word and its number.
_UNSPACED = re.compile("[\u0900-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_ORDINAL = r"(?P<ordinal>\.|[ªºa°]|(?:-?[йя]|-?ша|e|è?me|st|nd|rd|th|ος)(?= )|)"
# Season and episode together: S01E02, S7 Ep. 16, T24E25, S18 – E3/20; (1.2); 1x05; Κ6 ε4.
_TOGETHER = (
    r"(?<![\w/.])(?:s|st\.?|t) ?(\d{1,8})[ .,:–-]{0,3}e(?:[ep]|ps)?\.? ?(\d{1,6})(?=\W|_|$|[exp]\d)",
    r"[(\[] *([1-9]\d?)\.([1-9]\d{0,2}) *[)\]]",
    r"(?<![\w/.,])(\d{1,2})x(\d\d)(?![\w.,]| *k?m\b)",
    r"(?<!\w)[κk]['΄’]? ?(\d{1,3}) *[,:/-]? *ε(?:π\.?)?['΄’]? ?(\d{1,5})\b",
)
_CROSS = r"(?<![\w/.,])(\d{1,3})x(\d{1,6})(?![\w.,])"  # 1x05, in a text that holds only a number


class Grammar(NamedTuple):
    """Compiled patterns."""

    together: tuple[re.Pattern[str], ...]  # season and episode in one expression
    cross: re.Pattern[str]  # 1x5
    words: re.Pattern[str]  # any word and its number
    signs: re.Pattern[str]  # any word of a script without spaces, and its number
    fraction: re.Pattern[str]  # "4/6", "3 of 8"
    kinds: dict[str, str]  # case-folded word to season, episode or part
    weak: frozenset[str]  # words that count only in an episode-num element or before a total


@cache
def grammar() -> Grammar:
    """Returns the patterns; each of them covers all languages."""
    file = Path(__file__).with_name("words.toml")
    tables = tomllib.loads(file.read_text(encoding="utf-8")).values()
    kinds = {word.casefold(): kind for kind in KINDS for table in tables for word in table[kind]}
    sign = "|".join(sorted(filter(_UNSPACED.match, kinds), key=len, reverse=True))
    of = "|".join(sorted({word for table in tables for word in table["of"]}))
    total = rf" *(?:/|\b(?:{of})\b) *(?P<total>\d{{1,5}})(?!\d)"
    # The number must not be part of another word ("E1F0"), a decimal, or the beginning of an id.
    words = (
        rf"(?<!\w)(?P<before>[^\W\d_]++)\.?[:#]? ?(?P<number>\d{{1,6}})(?![^\W_]|[.,:]\d)(?:{total})?"
        rf"|(?<![\w.,/:])(?P<first>\d{{1,6}}){_ORDINAL} ?(?P<behind>[^\W\d_]++)(?!\d)"
    )
    signs = rf"(?P<before>{sign}) ?(?P<number>\d{{1,6}})(?!\d)|(?P<first>\d{{1,6}}) ?(?P<behind>{sign})"
    return Grammar(
        tuple(re.compile(pattern, re.IGNORECASE) for pattern in _TOGETHER),
        re.compile(_CROSS, re.IGNORECASE),
        re.compile(words, re.IGNORECASE),
        re.compile(signs),
        re.compile(rf"(?<![\w.,/-])(?P<number>\d{{1,5}}){total}(?![\w/])", re.IGNORECASE),
        kinds,
        frozenset(word.casefold() for table in tables for word in table["weak"]),
    )


def words_pattern(kind: str) -> str:
    """Returns a pattern of the words of a kind with optional dots; one-letter words for seasons only."""
    min_length = 1 if kind == "season" else 2
    words = [word for word, group in grammar().kinds.items() if group == kind and len(word) >= min_length]
    return rf"(?:(?:{'|'.join(map(re.escape, sorted(words, key=len, reverse=True)))})\.?)"
