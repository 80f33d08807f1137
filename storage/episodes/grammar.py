"""Patterns of written episode numbers, made of the words of words.toml.

A text is read from left to right as pairs of a word and a number: "Folge 7", or "2. Staffel" with an
ordinal mark that only Latin script needs. The leftmost pair counts, so that "2. évad 14. rész" is (2, évad),
(14, rész) and "Kausi 2. Jakso 5" is (Kausi, 2), (Jakso, 5).
"""

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

KINDS = "season", "episode", "part"
_UNSPACED = re.compile(
    "[\u0900-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)  # no letters and spaces as in Latin
_ORDINAL = r"(?P<ordinal>\.|[ªºa°]|(?:-?[йя]|-?ша|e|è?me|st|nd|rd|th|ος)(?= )|)"
# Season and episode together: S01E02, S7 Ep. 16, T24E25, S18 – E3/20; (1.2); 1x05; Κ6 ε4.
_TOGETHER = (
    r"(?<![\w/.])(?:s|st\.?|t) ?(\d{1,8})[ .,:–-]{0,3}e(?:[ep]|ps)?\.? ?(\d{1,6})(?=\W|_|$|[exp]\d)",
    r"[(\[] *([1-9]\d?)\.([1-9]\d{0,2}) *[)\]]",
    r"(?<![\w/.,])(\d{1,2})x(\d\d)(?![\w.,]| *k?m\b)",
    r"(?<!\w)[κk]['΄’]? ?(\d{1,3}) *[,:/-]? *ε(?:π\.?)?['΄’]? ?(\d{1,5})\b",
)
_CROSS = r"(?<![\w/.,])(\d{1,3})x(\d{1,6})(?![\w.,])"  # 1x05 where nothing else stands


class Grammar(NamedTuple):
    """Compiled patterns."""

    together: tuple[re.Pattern[str], ...]  # season and episode
    cross: re.Pattern[str]  # 1x5
    words: re.Pattern[str]  # any word and its number
    signs: re.Pattern[str]  # the same, of words in scripts without spaces
    fraction: re.Pattern[str]  # "4/6", "3 of 8"
    kinds: dict[str, str]  # case-folded word to season, episode or part
    weak: frozenset[str]  # words that count only in an episode-num element or before a total


@cache
def grammar() -> Grammar:
    """The patterns of all languages together."""
    file = Path(__file__).with_name("words.toml")
    tables = tomllib.loads(file.read_text(encoding="utf-8")).values()
    kinds = {word.casefold(): kind for kind in KINDS for table in tables for word in table[kind]}
    sign = "|".join(sorted(filter(_UNSPACED.match, kinds), key=len, reverse=True))
    of = "|".join(sorted({word for table in tables for word in table["of"]}))
    total = rf" *(?:/|\b(?:{of})\b) *(?P<total>\d{{1,5}})(?!\d)"
    # The number is no part of another word ("E1F0"), no decimal, and not the beginning of an id.
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
    """Pattern of the words of a kind, each with an optional dot. Episode words have at least two letters."""
    min_length = 1 if kind == "season" else 2
    words = [word for word, group in grammar().kinds.items() if group == kind and len(word) >= min_length]
    return rf"(?:(?:{'|'.join(map(re.escape, sorted(words, key=len, reverse=True)))})\.?)"
