"""What guides glue to titles: the patterns of marks, and taking them out of one title or of many at once.

A block of titles is one text with a line each. No pattern can reach beyond a line (clean text has no white space but the space,
and the patterns ask for nothing else), so that replacing in the block is replacing in each title, without a call for each.
Only lines that hold what every match of a pattern needs (a bracket, a digit …) are in its block.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

import numpy as np

from tasks.ingest.text import clean
from tasks.tokenize.letters import digits

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

# What a line holds. OTHER: beyond ASCII; FAR: beyond Hebrew, Arabic and the scripts of India (Thai, CJK, signs), or a word in capitals at its beginning.
BRACKET, DIGIT, COLON, HASH, OTHER, GREEK, CYRILLIC, FAR = (1 << bit for bit in range(8))

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
    # A season is no year behind "series": "Cup Series 2022" is a name.
    (
        "season",
        DIGIT,
        rf"\b(?:season|series|staffel|saison|temporada|stagione|seizoen|stag\.|sæson|sesong|säsong|sezon(?:ul)?|kausi|сезон|עונה|الموسم|सीज़न)"
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
    ("episode", BRACKET, rf"[\(\[] *#?{_N} *[\)\]](?! *$)(?= *[-:,])|[\(\[] *#?(?!(?:19|20)\d\d *[\)\]]){_N} *[\)\]]"),
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
_CAPITALS = re.compile(r"^ *LIVE ", re.MULTILINE)
_SEAM = re.compile(r" *\( *\)| *\[ *\]| +[-–:,|]+(?= +[-–:,|])| +(?=,)")  # what a mark taken out of the middle leaves: "Takeda - - Pugliese"
EDGE = " \t-–—:,;|/·•.​"
_ASCII = np.zeros(128, dtype=np.uint8)
_ASCII[[ord(character) for character in "(["]], _ASCII[ord(":")], _ASCII[ord("#")], _ASCII[ord("0") : ord("9") + 1] = BRACKET, COLON, HASH, DIGIT


def take_marks(text: str) -> tuple[str, set[str]]:
    """Takes the marks out of one clean title; what is at its edges goes too."""
    display, marks = text.strip(EDGE), set()
    while (needs := int(_features([display])[0])) and (shorter := _one_pass(display, needs, marks)) != display:
        display = shorter
    return display, marks


def take_all_marks(texts: Sequence[str]) -> tuple[list[str], dict[int, set[str]]]:
    """The same for many clean titles at once: displays, and the marks of the rows that have any."""
    displays = [text.strip(EDGE) for text in texts]
    marks: dict[int, set[str]] = {}
    active = range(len(displays))
    while active:
        changed = []
        for row, taken in _block_pass(displays, active, marks):
            if (shorter := _mend(taken)) != displays[row]:
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
    return text if stripped == text else _mend(stripped)


def _block_pass(texts: list[str], active: Sequence[int], marks: dict[int, set[str]]) -> list[tuple[int, str]]:
    """The same for some rows of many texts: those that changed, not yet mended."""
    lines: dict[int, str] = {}
    rows_by_row = np.asarray(active)
    features = _features([texts[row] for row in active])
    blocks: dict[int, tuple[list[int], str]] = {}  # needs -> rows, and their lines as they are now
    for mark, needs, pattern in _MARKS:
        if needs not in blocks:
            rows = rows_by_row[(features & needs) > 0].tolist()
            blocks[needs] = rows, "\n".join([lines.get(row) or texts[row] for row in rows])
        rows, before = blocks[needs]
        after, count = pattern.subn(" ", before) if rows else (before, 0)
        if not count:
            continue
        for row, old, new in zip(rows, before.split("\n"), after.split("\n"), strict=True):
            if old != new:
                lines[row] = new
                marks.setdefault(row, set()).add(mark)
        blocks.clear()  # of other needs, made before these lines changed
        blocks[needs] = rows, after
    for row in rows_by_row[(features & BRACKET) > 0].tolist():
        line = lines.get(row) or texts[row]
        if years := _YEAR.findall(line):
            marks.setdefault(row, set()).update(f"<year:{year}>" for year in years)
            lines[row] = _YEAR.sub(" ", line)
    return list(lines.items())


def _mend(text: str) -> str:
    """What is left when marks have been taken out, as a title."""
    return clean(" ".join(_SEAM.sub("", text).split())).strip(EDGE)


def _features(texts: Sequence[str]) -> np.ndarray:
    """What texts hold, of BRACKET to FAR: uint8 (texts,). Too much does no harm."""
    if not texts:
        return np.zeros(0, dtype=np.uint8)
    block = "\n".join(texts) + "\n"
    codes = np.frombuffer(block.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    found = (_ASCII if block.isascii() else _of_characters())[codes]
    ends = np.flatnonzero(codes == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1])
    features = np.bitwise_or.reduceat(found, starts)
    for match in _CAPITALS.finditer(block):
        features[np.searchsorted(ends, match.start())] |= FAR
    return features


@functools.cache
def _of_characters() -> np.ndarray:
    """What each code point is, uint8 (0x110000,)."""
    found = np.full(0x110000, OTHER, dtype=np.uint8)
    found[0x370:0x400] |= GREEK
    found[0x1F00:0x2000] |= GREEK
    found[0x400:0x530] |= CYRILLIC
    found[0xE00:] |= FAR
    found[digits()] |= DIGIT
    found[ord("【")] |= BRACKET
    found[:128] = _ASCII
    return found
