"""Separates the name in a raw title from its marks, and computes the key that identifies the show.

Marks are additions of guides to names: episode numbers, seasons, parts, repeats, premieres, age ratings and
picture quality, such as ``S3 Ep. 137``, ``(4/6)`` or ``(Repeat)``. Each mark becomes a token such as
``<episode>`` or ``<year:1998>``. Without marks, one Australian guide has 2,957 titles instead of 5,812.

Numbers that belong to names are kept (20/20, 1408, 24, Babylon 5, Studio 54): a number at the end is a mark
only if it follows a word for episode or season.
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
# Articles, prepositions and similar words of frequent languages. They are ignored in the family of a title
# and do not distinguish shows (tasks/search/editions.py).
FUNCTION_WORDS = frozenset(
    "a an the of and in on at to for with from by live new la le les l un une des du de d et en au aux das "  # noqa: SIM905
    "der die dem den ein eine und im am zum zur mit von el los las una y il lo gli i e di da del della o os "
    "as um uma do dos na no het een van og på det av att ett az egy és ο η το οι τα και".split()
)


class Title(NamedTuple):
    """Name of a programme, separated from its marks (additions such as "(New)")."""

    display: str  # the title without marks
    show_key: str  # case-folded words of ``display``, joined by spaces; equal for all titles of a show
    marks: tuple[str, ...]  # sorted tokens such as ("<episode>", "<year:1998>")

    @property
    def family(self) -> str:
        """Returns the first content word of the show key: "csi" for CSI: Miami and for CSI: NY."""
        words = self.show_key.split()
        return next((word for word in words if word not in FUNCTION_WORDS), words[0] if words else "")


@functools.lru_cache(maxsize=65536)
def parse_title(raw: str) -> Title:
    """Splits a raw title into its name and its marks, such as season numbers.

    If a title consists of marks only ("Ep. 23"), the complete text is the name.
    """
    text = clean_text(raw)
    display, marks = take_marks(text)
    has_no_name = not (display[:1].isalnum() or _WORDS.search(display))
    if has_no_name or (marks and display.casefold() in _MARK_WORDS):
        display, marks = text, set()
    key = " ".join(_WORDS.findall(unicodedata.normalize("NFKC", display).casefold()))
    return Title(display, key or display.casefold(), tuple(sorted(marks)))


@functools.cache
def _read_placeholders() -> tuple[frozenset[str], tuple[str, ...]]:
    """Returns the show keys in placeholders.txt, and the prefixes from its lines that end in a star."""
    text = Path(__file__).with_name("placeholders.txt").read_text(encoding="utf-8").casefold()
    lines = {line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")}
    prefix_lines = {line for line in lines if line.endswith("*")}
    return frozenset(lines - prefix_lines), tuple(line[:-1] for line in prefix_lines)


def is_placeholder(show_key: str) -> bool:
    """Returns whether a show key does not name a programme, such as "no information".

    Such a key has no letter or digit, or is listed in placeholders.txt, which users may edit. A line of this
    file that ends in a star matches all keys that start with the text before the star.
    """
    placeholder_keys, prefixes = _read_placeholders()
    return (
        show_key in placeholder_keys or show_key.startswith(prefixes) or not any(map(str.isalnum, show_key))
    )
