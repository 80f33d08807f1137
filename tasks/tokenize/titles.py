"""Raw title to show key and typed marks: what the programme is called, and what the guide glued to it.

Guides put episode numbers, seasons, parts, repeats, premieres, age ratings and picture quality into titles; stripping
them shrinks one Australian guide from 5,812 to 2,957 titles. They are not thrown away: each becomes a typed token
(``<episode>``, ``<year:1998>``). Numbers that are names stay: 20/20, 1408, 24, Babylon 5, Studio 54.

A mark is recognised by its form (``S3 Ep. 137``, ``(4/6)``, ``Folge 12``, ``(Wdh.)``), never by position alone: a
bare number at the end is a name unless a word for episode or season stands before it.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from dataclasses import dataclass

from tasks.ingest.text import clean as clean_text

_N = r"\d{1,5}"
_EPISODE = (
    r"(?:ep(?:isode|isodio|is[oó]dio|\.)?|eps\.?|folge|f\.|afl(?:evering|\.)?|avsn(?:itt|\.)?|afsnit|del|deel"
    r"|odc(?:inek|\.)?|d[ií]l|rész|επεισ(?:όδιο|\.)?|серия|сер\.|פרק|cap(?:[ií]tulo|\.)?)"
)
_SEASON = r"(?:s(?:eason|eries|taffel|tagione|tag\.|aison|æson|esong|äsong|erie|erija)?|temp(?:orada|\.)?|stag\.|t|seizoen|sezon[ae]?|s[eé]rie|κύκλος|сезон|עונה)"
_PART = r"(?:part|pt\.?|teil|parte|partie|osa|část|časť)"

# (mark, pattern): applied in this order until nothing changes; what matches is replaced by a space. Brackets that stand
# within a word are spelling, no mark ("Les engagé(e)s", "ein heißes Eis(en)").
_PATTERNS: tuple[tuple[str, str], ...] = (
    ("episode", rf"[\(\[]\s*(?:{_SEASON}\s*\.?\s*{_N}\s*[,/ ]*\s*)?{_EPISODE}\s*{_N}[^\)\]]{{0,12}}[\)\]]"),
    ("season", rf"[\(\[]\s*t{_N}\s*/\s*{_N}\s*[\)\]]"),
    ("season", rf"\bs\s?{_N}\s*[,:./ -]*\s*e(?:p(?:isode)?)?\s*\.?\s?{_N}\b(?:\s*[/-]\s*{_N})?"),
    ("season", rf"\b{_SEASON}\.?\s*{_N}\s*[,/ -]*\s*{_EPISODE}\s*{_N}(?:\s*/\s*{_N})?"),
    # A season is no year behind "series": "Cup Series 2022" is a name.
    ("season", rf"\b(?:season|series|staffel|saison|temporada|stagione|seizoen|stag\.|sæson|sesong|säsong|сезон|עונה)\s*{_N}\b(?<!series\s(?:19|20)\d\d)(?!/\d)"),
    ("season", rf"[\(\[]\s*s\s?{_N}\s*[\)\]]"),
    ("season", rf"\(s{_N}$|(?<=\S)\s(?-i:S)\d\d?$"),
    ("season", rf"\bсезон\s*{_N}\.?\s*{_N}-я серия"),
    ("season", r"\b[Α-ΩA-Z]['΄’]?\s*κύκλος\b"),  # A-Z: guides type a Latin B or E for the Greek letter
    ("episode", rf"\b{_N}-я серия"),
    ("episode", rf"[\(\[]\s*{_N}\s*(?:/|of|von|van|av|af|di|de|из|από)\s*{_N}\s*[\)\]]"),
    ("episode", rf"[\(\[]\s*#?{_N}\s*[\)\]](?!\s*$)(?=\s*[-:,])|[\(\[]\s*#?(?!(?:19|20)\d\d\s*[\)\]]){_N}\s*[\)\]]"),
    ("episode", rf"\((?!(?:19|20)\d\d$){_N}$"),
    ("episode", rf"(?:[-–:,]\s*)?\b(?:folge|episode|episodio|épisode|episódio|aflevering|avsnitt|afsnit|odcinek|epizoda|επεισόδιο|פרק|capítulo|ep\.|odc\.)\s*{_N}(?:\s*/\s*{_N})?"),
    ("episode", rf"(?<=\S)\s+(?:ep)\s?{_N}\b"),
    ("episode", rf"(?<=\S)\s*#{_N}\s*$"),
    ("episode", r"(?:[-–:,]\s*puntata\s+|\s)del\s+\d\d?/\d\d?/\d{2,4}\s*$"),
    ("part", rf"[\(\[]\s*{_PART}\s*{_N}\s*[\)\]]|[-–:,]\s*{_PART}\s*{_N}(?:\s*/\s*{_N})?\s*$|\bdel\s+{_N}/{_N}|[-–]\s*del\s+{_N}\s*$"),
    (
        "repeat",
        r"(?<!\w)[\(\[]\s*(?:wdh\.?|whg\.?|repeat|rpt\.?|r|rep\.?|e|ε|rediff(?:usion|\.)?"
        r"|replica|herhaling|reprise|genudsendelse|repris|bis(?:\s\d)?|powt\.?|repríza|ponovitev|repetição)\s*[\)\]]",
    ),
    ("new", r"^\s*(?:new|neu|nouveau|nuevo|nieuw|novo)\s*:\s+(?=\S)|ᴺᵉʷ|(?<!\w)[\(\[]\s*(?:new|neu|n|прем'єра|премьера|premiere|première|inédit|inédito)\s*[\)\]]|\s(?:🆕)"),
    (
        "live",
        r"^\s*(?:live|direct|en direct|en vivo|ao vivo)\s*:\s+(?=\S)|^\s*(?-i:LIVE\s+(?=\S*[a-z]))"
        r"|(?<!\w)[\(\[]\s*(?:live|l|direto|en directo|in diretta|z|ζ|direkte|živě)\s*[\)\]]|ᴸᶦᵛᵉ",
    ),
    ("quality", r"(?<!\w)[\(\[]\s*(?:hd|uhd|4k|sd|3d|16:9|ad|st|ut|hi|subs?|cc|dd)\s*[\)\]]|ᴴᴰ|ᵁᴴᴰ"),
    ("rating", r"[\[\(]\s*(?:k\d{0,2}|fsk\s?\d{1,2}|\d{1,2}\+|pg(?:-\d\d)?|tv-(?:ma|pg|14|g|y7?)|ma15\+|普|hard)\s*[\]\)]|【普】|\s\d{1,2}\+$"),
    ("language", r"(?<!\w)[\(\[]\s*(?:vp|vo|vf|vost(?:fr)?|omu|eng?|de|fr|es|dub(?:bed)?|sub(?:bed)?|english|deutsch|samisk|på norsk)\s*[\)\]]"),
    ("unsure", r"[\(\[]\s*\?\s*[\)\]]"),
)
_MARKS = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _PATTERNS)
_HINT = re.compile(r"[\d\(\[【ᴺᴸᴴᵁ]|:|^live |\u03ba\u03cd\u03ba\u03bb\u03bf\u03c2|🆕", re.IGNORECASE)  # none of these: no mark can be there
_YEAR = re.compile(r"\s*[\(\[]\s*((?:19|20)\d\d)\s*[\)\]]")
_EDGE = " \t-–—:,;|/·•.​"
_SEAM = re.compile(r"\s+[-–:,|]+(?=\s+[-–:,|])|\s+(?=,)")  # what a mark taken out of the middle leaves: "Takeda - - Pugliese"
# Combining marks of the scripts met in guides: part of a word, though Python's \w leaves them out. (Of the scripts of
# India the whole blocks but their full stops, U+0964 and U+0965.)
COMBINING = r"\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0963\u0966-\u0df3\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
_WORDS = re.compile(rf"[^\W_](?:[^\W_]|[{COMBINING}])*")
_MARK_WORDS = frozenset({"ep", "episode", "folge", "part", "teil", "del", "season", "series", "live", "new"})
# Words that carry nothing about a show by themselves: articles and the like, in the languages met so far. They never
# name a family (split "unseen_show"), and nothing else depends on them.
_FUNCTION_WORDS = frozenset(
    [
        "a", "an", "the", "of", "and", "in", "on", "at", "to", "for", "with", "from", "by", "live", "new", "la", "le", "les", "l", "un", "une", "des", "du",
        "de", "d", "et", "en", "au", "aux", "das", "der", "die", "dem", "den", "ein", "eine", "und", "im", "am", "zum", "zur", "mit", "von", "el", "los",
        "las", "una", "y", "il", "lo", "gli", "i", "e", "di", "da", "del", "della", "o", "os", "as", "um", "uma", "do", "dos", "na", "no", "het", "een",
        "van", "og", "på", "det", "av", "att", "ett", "az", "egy", "és", "ο", "η", "το", "οι", "τα", "και",
    ]
)


@dataclass(frozen=True)
class Title:
    """A raw title, taken apart.

    Attributes:
        display: What people read: the title without marks.
        show_key: Case-folded words of ``display``, joined by spaces: equal for every airing of a show.
        marks: Typed tokens, sorted: ``("<episode>", "<year:1998>")``.
    """

    display: str
    show_key: str
    marks: tuple[str, ...]

    @property
    def family(self) -> str:
        """First content word of the show key: franchises share it ("csi" for CSI: Miami and CSI: NY)."""
        words = self.show_key.split()
        return next((word for word in words if word not in _FUNCTION_WORDS), words[0] if words else "")


@functools.lru_cache(maxsize=65536)
def parse_title(raw: str) -> Title:
    """Takes a raw title apart.

    Args:
        raw: As the guide has it.

    Returns:
        Its display form, show key and marks. A title that consists of marks alone ("Ep. 23") keeps its text.
    """
    text = clean_text(raw)
    marks: set[str] = set()
    display = text.strip(_EDGE)
    while _HINT.search(display) and (shorter := _strip_marks(display, marks)) != display:
        display = shorter
    if not _WORDS.search(display) or (marks and display.casefold() in _MARK_WORDS):  # nothing but marks: keep them as the name
        display, marks = text, set()
    key = " ".join(_WORDS.findall(unicodedata.normalize("NFKC", display).casefold())) or display.casefold()
    return Title(display, key, tuple(sorted(marks)))


def _strip_marks(text: str, marks: set[str]) -> str:
    """The text with every mark that one pass finds taken out and added to ``marks``."""
    stripped = text
    for kind, pattern in _MARKS:
        stripped, count = pattern.subn(" ", stripped)
        if count:
            marks.add(f"<{kind}>")
    marks.update(f"<year:{year}>" for year in _YEAR.findall(stripped))
    stripped = _YEAR.sub(" ", stripped)
    return text if stripped == text else clean_text(_SEAM.sub("", stripped)).strip(_EDGE)
