"""What guides glue to titles: the patterns of marks, and taking them out of one title or of many at once.

A block of titles is one text with a line each. No pattern can reach beyond a line (clean text has no white space but the space,
and the patterns ask for nothing else), so that replacing in the block is replacing in each title, without a call for each.
Only lines in which it may match are in its block (looks.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tasks.ingest.text import clean_all
from tasks.tokenize.looks import BRACKET, COLON, CYRILLIC, DIGIT, FAR, GREEK, HASH, OTHER, holdings, look, loosened

_N = r"\d{1,5}"
_EPISODE = (
    r"(?:ep(?:isode|isodio|is[oó]dio|\.)?|eps\.?|folge|f\.|afl(?:evering|\.)?|avsn(?:itt|\.)?|afsnit|del|deel"
    r"|odc(?:inek|\.)?|d[ií]l|rész|epizód|επεισ(?:όδιο|\.)?|сер(?:ия|ія|\.)|епизод|פרק|الحلقة|حلقة|एपिसोड|jakso|osa|bölüm|episodul|cap(?:[ií]tulo|\.)?)"
)
_SEASON = (
    r"(?:s(?:eason|eries|taffel|tagione|tag\.|aison|æson|esong|äsong|erie|erija)?|temp(?:orada|\.)?|stag\.|t|seizoen|sezon(?:[ae]|ul)?|s[eé]rie"
    r"|évad|kausi|κύκλος|сезон|עונה|الموسم|सीज़न)"
)
_PART = r"(?:part|pt\.?|teil|parte|partie|osa|część|časť|část|deo|dio)"

# (mark, needs, pattern): applied in this order until nothing changes; what matches is replaced by a space. Brackets that stand
# within a word are spelling, no mark ("Les engagé(e)s", "ein heißes Eis(en)"): (?<!\w.) behind the bracket and not before it, because a
# search for a pattern that begins with a bracket leaps from bracket to bracket.
PATTERNS: tuple[tuple[str, int, str], ...] = (
    ("episode", BRACKET, rf"\bodc\. *\( *{_N} *\)"),
    ("episode", BRACKET, rf"[\(\[] *(?:{_SEASON} *\.? *{_N} *[,/ ]* *)?{_EPISODE} *{_N}[^\)\]\n]{{0,12}}[\)\]]"),
    ("season", BRACKET, rf"[\(\[] *t{_N} */ *{_N} *[\)\]]|[\(\[] *[1-9]\d?\.[1-9]\d{{0,2}} *[\)\]]"),  # (T24/25); (1.2): the second of the first season
    ("season", BRACKET, rf"[\(\[] *s(?:eria|\.) *[IVX\d]{{1,5}}, *odc\.? *{_N} *[\)\]]"),
    ("season", CYRILLIC, rf"\b{_N}(?:-й)? *сезон,? *{_N}(?:-я)? *сер(?:ия|ія)\b|\b{_N}(?:-й)? *сезон\b(?! *\d)"),
    ("season", DIGIT, rf"\bs ?{_N} *[,:./ -]* *e(?:p(?:isode)?)? *\.? ?{_N}\b(?: *[/-] *{_N})?"),
    ("season", DIGIT, rf"\b{_SEASON}\.? *{_N} *[,/ -]* *{_EPISODE} *{_N}(?: */ *{_N})?"),
    # A season is no year behind "series": "Cup Series 2022" is a name. So is what a title begins with: "Series 7: The Contenders" (and a number
    # in brackets, above by (?<=..): "(500) Days of Summer").
    (
        "season",
        DIGIT,
        rf"\b(?!^series)(?:season|series|staffel|saison|temporada|stagione|seizoen|stag\.|sæson|sesong|säsong|sezon(?:ul)?|kausi|сезон|עונה|الموسم|सीज़न)"
        rf" *{_N}\b(?<!series (?:19|20)\d\d)(?!/\d)",
    ),
    ("season", DIGIT | OTHER, rf"\b(?:{_N}|(?:[IVX]{{1,5}}-)?[IVX]{{1,5}})\. *(?:évad|sorozat|série|sezona|sezon|kausi|staffel)\b"),
    ("season", BRACKET, rf"[\(\[] *s ?{_N} *[\)\]]"),
    ("season", DIGIT, rf"\(s{_N}$|(?<=\S) (?-i:S)\d\d?$"),
    ("season", CYRILLIC, rf"\bсезон *{_N}\.? *{_N}-я серия"),
    ("season", GREEK, rf"\b(?:[Α-ΩA-Z]['΄’]?|{_N}[oο][ςσs]) *κύκλος\b"),  # A-Z, o, s: guides type Latin letters for Greek ones
    ("season", GREEK, rf"\b[κk]['΄’]? ?{_N} *[,:/-]? *ε(?:π\.?)?['΄’]? ?{_N}\b"),
    ("episode", GREEK, rf"(?<=\S) +(?-i:Ε|[ΕE][πΠ]\.?) ?{_N} *$|[-–:,] *επ\. *{_N}\b"),
    ("episode", CYRILLIC, rf"\b{_N}(?:-я|\.)? *сер(?:ия|ія)\b"),
    ("episode", FAR, rf"第 *{_N} *[話话集回]|ตอนที่ *{_N}|(?<=\S) +{_N} *회$"),
    ("episode", DIGIT | OTHER, rf"\b{_N}\. *(?:rész|epizód|díl|časť|diel|bölüm|epizoda|nastavak)\b|[-–:,] *[IVX]{{1,5}}\. *rész\b"),
    ("episode", BRACKET, rf"[\(\[] *{_N} *(?:/|of|von|van|av|af|di|de|из|από) *{_N} *[\)\]]"),
    ("episode", BRACKET, rf"[\(\[] *#?{_N} *[\)\]](?! *$)(?= *[-:,])|[\(\[](?<=..) *#?(?!(?:19|20)\d\d *[\)\]]){_N} *[\)\]]"),
    ("episode", BRACKET, rf"\((?!(?:19|20)\d\d$){_N}$"),
    (
        "episode",
        DIGIT,
        rf"(?:[-–:,] *)?\b(?:folge|episode|episodio|épisode|episódio|aflevering|avsnitt|afsnit|odcinek|epizoda|επεισόδιο"
        rf"|епизод|פרק|الحلقة|एपिसोड|jakso|bölüm|episodul|capítulo|ep\.|odc\.) *{_N}(?: */ *{_N}|\*)?",
    ),
    ("episode", DIGIT, rf"(?<=\S) +(?:ep) ?{_N}\b"),
    ("episode", HASH, rf"(?<=\S) *#{_N} *$"),
    ("episode", DIGIT, r"(?:[-–:,] *puntata +| )del +\d\d?/\d\d?/\d{2,4} *$"),
    ("part", BRACKET | DIGIT, rf"[\(\[] *{_PART} *{_N} *[\)\]]|[-–:,] *{_PART} *{_N}(?: */ *{_N})? *$|\bdel +{_N}/{_N}|[-–] *del +{_N} *$"),
    ("part", DIGIT, rf"(?<=\S) +(?:part|pt\.?|teil|parte) *{_N} *$|(?<=\S) +{_N}\. *(?:del|dio|deo)(?= *(?:$|[-–:,(]))"),
    ("part", GREEK, rf"[-–:,] *μέρος +[Α-ΩA-Z]['΄’]?(?: +{_N})? *$"),
    ("part", BRACKET | DIGIT, rf"[\(\[] *{_N}ª parte *[\)\]]|(?<=\S) {_N}\. část *$|[\(\[] *part (?:one|two|three|four|[a-d]) *[\)\]]"),
    (
        "repeat",
        BRACKET,
        r"[\(\[](?<!\w.) *(?:wdh\.?|whg\.?|wiederholung|repeat|rpt\.?|r|rep\.?|e|ε|rediff(?:usion|\.)?"
        r"|replica|repetición|herhaling|reprise|genudsendelse|repris|uusinta|bis(?: \d)?|powt\.?|powtórka|repríza|ismétlés|ponovitev|repetição|επανάληψη|replay|rerun|rebroadcast"
        r"|повтор|שידור חוזר|إعادة) *[\)\]]|【再】|\(再\)",
    ),
    ("new", COLON, r"^ *(?:new|neu|nouveau|nuevo|nieuw|novo) *: +(?=\S)"),
    (
        "new",
        BRACKET | FAR,
        r"ᴺᵉʷ| 🆕|[\(\[](?<!\w.) *(?:new|neu|n|nieuw|nuevo|nyhed|прем'єра|премьера|premiere|première|premiera|premiär|inédit|inédito|חדש|جديد) *[\)\]]|【新】",
    ),
    ("live", COLON | FAR, r"^ *(?:live|direct|en direct|en vivo|ao vivo) *: +(?=\S)|^ *(?-i:LIVE +(?=\S*[a-z]))|ᴸᶦᵛᵉ"),
    ("live", BRACKET, r"[\(\[](?<!\w.) *(?:live|l|direto|ao vivo|en vivo|en direct|en directo|in diretta|z|ζ|direkte|direkt|na żywo|živě|прямой эфир|שידור חי|مباشر) *[\)\]]"),
    (
        "quality",
        BRACKET | FAR,
        r"[\(\[](?<!\w.) *(?:hd|fhd|uhd|4k|8k|sd|3d|16:9|(?:ad|sl?)(?: *, *(?:ad|sl?))*|st|ut|hi|subs?|cc|dd|bsl|subtitles) *[\)\]]|【字】|\(字\)|ᴴᴰ|ᵁᴴᴰ|⁴ᴷ",
    ),
    (
        "rating",
        BRACKET | DIGIT,
        r"\[ *k *\]|[\[\(] *(?:k\d{1,2}|fsk ?\d{1,2}|(?:ab )?\d{1,2} ?\+|ab \d{1,2}|[+-]1\d|pg(?:-\d\d)?|tv-(?:ma|pg|14|g|y7?)|ma15\+|普|hard) *[\]\)]|【普】"
        r"| \d{1,2}\+$|(?<=\S) fsk ?\d{1,2}$",
    ),
    (
        "language",
        BRACKET,
        r"[\(\[](?<!\w.) *(?:vp|vo|vf|vm|vost(?:fr)?|ov|omu|ol|eng?|de|fr|es|pt|nl"
        r"|dub(?:bed)?|sub(?:bed|titled)?|english|deutsch|français|español|samiska?|finska|meänkieli|jiddisch"
        r"|på norsk|norsk tale|spanish|portugu[eé]s|português|lektor|dabing) *[\)\]]",
    ),
    ("unsure", BRACKET, r"[\(\[] *\? *[\)\]]"),
)
KINDS = tuple(dict.fromkeys(kind for kind, _, _ in PATTERNS))
_MARKS = tuple((f"<{kind}>", needs, re.compile(pattern, re.IGNORECASE | re.MULTILINE)) for kind, needs, pattern in PATTERNS)
_YEAR = re.compile(r" *[\(\[] *((?:19|20)\d\d) *[\)\]]")
_LOOKS = {need: loosened([pattern for _, needs, pattern in (*PATTERNS, ("year", BRACKET, _YEAR.pattern)) if needs == need]) for _, need, _ in PATTERNS}
_SEAM = re.compile(r" *\( *\)| *\[ *\]| +[-–:,|]+(?= +[-–:,|])| +(?=,)")  # what a mark taken out of the middle leaves: "Takeda - - Pugliese"
EDGE = " \t-–—:,;|/·•.​"


def take_marks(text: str) -> tuple[str, set[str]]:
    """Takes the marks out of one clean title; what is at its edges goes too."""
    display, marks = text.strip(EDGE), set()
    while (needs := int(holdings([display])[0])) and (shorter := _one_pass(display, needs, marks)) != display:
        display = shorter
    return display, marks


def take_all_marks(texts: Sequence[str]) -> tuple[list[str], dict[int, set[str]]]:
    """The same for many clean titles at once: displays, and the marks of the rows that have any."""
    displays = [text.strip(EDGE) for text in texts]
    marks: dict[int, set[str]] = {}
    active: Sequence[int] = range(len(displays))
    while active:
        changed = []
        lines = _block_pass(displays, active, marks)
        for row, shorter in zip(lines, _mend_all(lines.values()), strict=bool(lines)):
            if shorter != displays[row]:
                displays[row] = shorter
                changed.append(row)
        active = changed
    return displays, marks


def _one_pass(text: str, features: int, marks: set[str]) -> str:
    """The text without the marks that one pass over the patterns finds; they are added to ``marks``."""
    stripped = text
    for mark, needs, pattern in _MARKS:
        if needs & features:
            stripped, count = pattern.subn(" ", stripped)
            if count:
                marks.add(mark)
    if features & BRACKET:
        marks.update(f"<year:{year}>" for year in _YEAR.findall(stripped))
        stripped = _YEAR.sub(" ", stripped)
    return text if stripped == text else _mend_all([stripped])[0]


def _block_pass(texts: list[str], active: Sequence[int], marks: dict[int, set[str]]) -> dict[int, str]:
    """The same for some rows of many texts: those that changed, not yet mended."""
    lines = [texts[row] for row in active]
    holds = holdings(lines)
    found = look(lines, holds, _LOOKS)
    changed = np.zeros(len(lines), dtype=bool)
    blocks: dict[int, tuple[list[int], str]] = {}  # needs -> numbers of lines, and these as they are now
    for mark, needs, pattern in _MARKS:
        if needs not in blocks:
            rows = _to_search(needs, holds, found, changed)
            blocks[needs] = rows, "\n".join([lines[row] for row in rows])
        rows, before = blocks[needs]
        after, count = pattern.subn(" ", before) if rows else (before, 0)
        if not count:
            continue
        for row, old, new in zip(rows, before.split("\n"), after.split("\n"), strict=True):
            if old != new:
                lines[row], changed[row] = new, True
                marks.setdefault(active[row], set()).add(mark)
        blocks.clear()  # of other needs, made before these lines changed
        blocks[needs] = rows, after
    for row in _to_search(BRACKET, holds, found, changed):
        if years := _YEAR.findall(lines[row]):
            marks.setdefault(active[row], set()).update(f"<year:{year}>" for year in years)
            lines[row], changed[row] = _YEAR.sub(" ", lines[row]), True
    return {active[row]: lines[row] for row in np.flatnonzero(changed).tolist()}


def _to_search(needs: int, holds: np.ndarray, found: Mapping[int, np.ndarray], changed: np.ndarray) -> list[int]:
    """Numbers of the lines to search: where the look found something, and where a mark taken out may have laid another one bare."""
    return np.flatnonzero(found[needs] | (changed & ((holds & needs) > 0))).tolist()


def _mend_all(texts: Iterable[str]) -> list[str]:
    """What is left when marks have been taken out, as titles."""
    lines = _SEAM.sub("", "\n".join(texts)).split("\n")
    return [text.strip(EDGE) for text in clean_all([" ".join(line.split()) for line in lines])]
