"""Parses raw titles into display title, show key and typed marks.

Guides put episode numbers, seasons, parts, repeats, premieres, age ratings and picture quality into titles;
removing these marks reduces one Australian guide from 5,812 to 2,957 titles. Each mark becomes a typed token
(``<episode>``, ``<year:1998>``). Numbers that are names are kept: 20/20, 1408, 24, Babylon 5, Studio 54.

Marks are recognized by their form (``S3 Ep. 137``, ``(4/6)``, ``Folge 12``, ``(Wdh.)``), never by position
alone: a number at the end belongs to the name unless a word for episode or season precedes it.
"""

import functools
import re
import unicodedata
from pathlib import Path
from typing import NamedTuple

from tasks.text.clean import clean as clean_text
from tasks.text.marks import take_marks
from tasks.text.splitting import WORD

_WORDS = re.compile(WORD)
_MARK_WORDS = frozenset(["ep", "episode", "folge", "part", "teil", "del", "season", "series", "live", "new"])
# Articles, prepositions and similar words of common languages. They are not used as the family of a show
# (split "unseen_show") and do not distinguish shows (tasks/search/editions.py).
FUNCTION_WORDS = frozenset(
    "a an the of and in on at to for with from by live new la le les l un une des du de d et en au aux das "  # noqa: SIM905
    "der die dem den ein eine und im am zum zur mit von el los las una y il lo gli i e di da del della o os "
    "as um uma do dos na no het een van og på det av att ett az egy és ο η το οι τα και".split()
)


class Title(NamedTuple):
    """A parsed title."""

    display: str  # the title without marks
    show_key: str  # case-folded words of ``display``, joined by spaces; all airings of a show have the same
    marks: tuple[str, ...]  # typed tokens, sorted, such as ("<episode>", "<year:1998>")

    @property
    def family(self) -> str:
        """First content word of the show key; titles of a franchise share it (CSI: Miami, CSI: NY)."""
        words = self.show_key.split()
        return next((word for word in words if word not in FUNCTION_WORDS), words[0] if words else "")


@functools.lru_cache(maxsize=65536)
def parse_title(raw: str) -> Title:
    """Parses a raw title. Marks are not removed if the title has no other words ("Ep. 23")."""
    text = clean_text(raw)
    display, marks = take_marks(text)
    has_no_name = not (display[:1].isalnum() or _WORDS.search(display))
    if has_no_name or (marks and display.casefold() in _MARK_WORDS):
        display, marks = text, set()
    key = " ".join(_WORDS.findall(unicodedata.normalize("NFKC", display).casefold()))
    return Title(display, key or display.casefold(), tuple(sorted(marks)))


@functools.cache
def _read_placeholders() -> tuple[frozenset[str], tuple[str, ...]]:
    # Returns show keys, and the prefixes of lines that end in a star.
    text = Path(__file__).with_name("placeholders.txt").read_text(encoding="utf-8").casefold()
    lines = {line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")}
    starred = {line for line in lines if line.endswith("*")}
    return frozenset(lines - starred), tuple(line[:-1] for line in starred)


def is_placeholder(show_key: str) -> bool:
    """Returns whether a show key is a placeholder ("no information").

    It is a placeholder if placeholders.txt, which users may edit, contains it or a prefix of it (lines with a
    star), or if it has no letter or digit.
    """
    exact, beginnings = _read_placeholders()
    return show_key in exact or show_key.startswith(beginnings) or not any(map(str.isalnum, show_key))
