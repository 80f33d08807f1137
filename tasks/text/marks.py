"""Finds and removes marks in titles. A mark is an addition to the name, such as "(New)" or "Episode 12"."""

import functools
import re

from storage.episodes.grammar import words_pattern
from tasks.text.clean import clean

_N = r"\d{1,5}"
_EPISODE, _SEASON = words_pattern("episode"), words_pattern("season")
_PART = r"(?:part|pt\.?|teil|parte|partie|osa|część|časť|část|deo|dio)"

# For speed, a pattern of _TABLE is searched only if one of its prefilters matches the text. F matches code
# points above the Hebrew, Arabic and Indian scripts (Thai, CJK, symbols).
_PREFILTERS = {
    "B": re.compile(r"[(\[【]"),
    "D": re.compile(r"\d"),
    "C": re.compile(":"),
    "H": re.compile("#"),
    "O": re.compile(r"[^\x00-\x7f]"),
    "G": re.compile("[\u0370-\u03ff\u1f00-\u1fff]"),
    "Y": re.compile("[\u0400-\u052f]"),
    "F": re.compile("[\u0e00-\U0010ffff]|^LIVE "),
}
_ANY_PREFILTER = re.compile(r"[(\[:#\d]|[^\x00-\x7f]|^LIVE ")  # most titles contain none of these

# The columns are kind of mark, letters of prefilters, and pattern; indented lines continue the pattern above.
# Patterns are applied in this order until the title no longer changes, and matches are replaced by a space.
# Brackets within a word are not marks ("Les engagé(e)s", "ein heißes Eis(en)"). The pattern (?<!\w.), which
# excludes them, follows the bracket, because a pattern that begins with a literal bracket is searched faster.
# These numbers belong to names: a year after "series" ("Cup Series 2022"), a number after "series" at the
# start of a title ("Series 7: The Contenders"), and a number in brackets at the start ("(500) Days of
# Summer", excluded by (?<=..)). (1.2) is the second episode of the first season. Some patterns contain
# [Α-ΩA-Z] or [ςσs], because some guides write Latin letters in place of Greek letters.
_TABLE = rf"""
episode  B  \bodc\. *\( *{_N} *\)
episode  B  [\(\[] *(?:{_SEASON} *\.? *{_N} *[,/ ]* *)?{_EPISODE} *{_N}[^\)\]\n]{{0,12}}[\)\]]
season   B  [\(\[] *t{_N} */ *{_N} *[\)\]]|[\(\[] *[1-9]\d?\.[1-9]\d{{0,2}} *[\)\]]
season   B  [\(\[] *s(?:eria|\.) *[IVX\d]{{1,5}}, *odc\.? *{_N} *[\)\]]
season   Y  \b{_N}(?:-й)? *сезон,? *{_N}(?:-я)? *сер(?:ия|ія)\b|\b{_N}(?:-й)? *сезон\b(?! *\d)
season   D  \bs ?{_N} *[,:./ -]* *e(?:p(?:isode)?)? *\.? ?{_N}\b(?: *[/-] *{_N})?
season   D  \b{_SEASON}\.? *{_N} *[,/ -]* *{_EPISODE} *{_N}(?: */ *{_N})?
season   D  \b(?!^series)(?:season|series|staffel|saison|temporada|stagione|seizoen|stag\.|sæson|sesong
            |säsong|sezon(?:ul)?|kausi|сезон|עונה|الموسم|सीज़न) *{_N}\b(?<!series (?:19|20)\d\d)(?!/\d)
season   DO \b(?:{_N}|(?:[IVX]{{1,5}}-)?[IVX]{{1,5}})\. *(?:évad|sorozat|série|sezona|sezon|kausi|staffel)\b
season   B  [\(\[] *s ?{_N} *[\)\]]
season   D  \(s{_N}$|(?<=\S) (?-i:S)\d\d?$
season   Y  \bсезон *{_N}\.? *{_N}-я серия
season   G  \b(?:[Α-ΩA-Z]['΄’]?|{_N}[oο][ςσs]) *κύκλος\b
season   G  \b[κk]['΄’]? ?{_N} *[,:/-]? *ε(?:π\.?)?['΄’]? ?{_N}\b
episode  G  (?<=\S) +(?-i:Ε|[ΕE][πΠ]\.?) ?{_N} *$|[-–:,] *επ\. *{_N}\b
episode  Y  \b{_N}(?:-я|\.)? *сер(?:ия|ія)\b
episode  F  第 *{_N} *[話话集回]|ตอนที่ *{_N}|(?<=\S) +{_N} *회$
episode  DO \b{_N}\. *(?:rész|epizód|díl|časť|diel|bölüm|epizoda|nastavak)\b|[-–:,] *[IVX]{{1,5}}\. *rész\b
episode  B  [\(\[] *{_N} *(?:/|of|von|van|av|af|di|de|из|από) *{_N} *[\)\]]
episode  B  [\(\[] *#?{_N} *[\)\]](?! *$)(?= *[-:,])|[\(\[](?<=..) *#?(?!(?:19|20)\d\d *[\)\]]){_N} *[\)\]]
episode  B  \((?!(?:19|20)\d\d$){_N}$
episode  D  (?:[-–:,] *)?\b(?:folge|episode|episodio|épisode|episódio|aflevering|avsnitt|afsnit|odcinek
            |epizoda|επεισόδιο|епизод|פרק|الحلقة|एपिसोड|jakso|bölüm|episodul|capítulo|ep\.
            |odc\.) *{_N}(?: */ *{_N}|\*)?
episode  D  (?<=\S) +(?:ep) ?{_N}\b
episode  H  (?<=\S) *#{_N} *$
episode  D  (?:[-–:,] *puntata +| )del +\d\d?/\d\d?/\d{{2,4}} *$
part     BD [\(\[] *{_PART} *{_N} *[\)\]]|[-–:,] *{_PART} *{_N}(?: */ *{_N})? *$|\bdel +{_N}/{_N}
            |[-–] *del +{_N} *$
part     D  (?<=\S) +(?:part|pt\.?|teil|parte) *{_N} *$|(?<=\S) +{_N}\. *(?:del|dio|deo)(?= *(?:$|[-–:,(]))
part     G  [-–:,] *μέρος +[Α-ΩA-Z]['΄’]?(?: +{_N})? *$
part     BD [\(\[] *{_N}ª parte *[\)\]]|(?<=\S) {_N}\. část *$|[\(\[] *part (?:one|two|three|four
            |[a-d]) *[\)\]]
repeat   B  [\(\[](?<!\w.) *(?:wdh\.?|whg\.?|wiederholung|repeat|rpt\.?|r|rep\.?|e|ε|rediff(?:usion|\.)?
            |replica|repetición|herhaling|reprise|genudsendelse|repris|uusinta|bis(?: \d)?|powt\.?|powtórka
            |repríza|ismétlés|ponovitev|repetição|επανάληψη|replay|rerun|rebroadcast|повтор|שידור חוזר
            |إعادة) *[\)\]]|【再】|\(再\)
new      C  ^ *(?:new|neu|nouveau|nuevo|nieuw|novo) *: +(?=\S)
new      BF ᴺᵉʷ| 🆕|[\(\[](?<!\w.) *(?:new|neu|n|nieuw|nuevo|nyhed|прем'єра|премьера|premiere|première
            |premiera|premiär|inédit|inédito|חדש|جديد) *[\)\]]|【新】
live     CF ^ *(?:live|direct|en direct|en vivo|ao vivo) *: +(?=\S)|^ *(?-i:LIVE +(?=\S*[a-z]))|ᴸᶦᵛᵉ
live     B  [\(\[](?<!\w.) *(?:live|l|direto|ao vivo|en vivo|en direct|en directo|in diretta|z|ζ|direkte
            |direkt|na żywo|živě|прямой эфир|שידור חי|مباشر) *[\)\]]
quality  BF [\(\[](?<!\w.) *(?:hd|fhd|uhd|4k|8k|sd|3d|16:9|(?:ad|sl?)(?: *, *(?:ad|sl?))*|st|ut|hi|subs?|cc
            |dd|bsl|subtitles) *[\)\]]|【字】|\(字\)|ᴴᴰ|ᵁᴴᴰ|⁴ᴷ
rating   BD \[ *k *\]|[\[\(] *(?:k\d{{1,2}}|fsk ?\d{{1,2}}|(?:ab )?\d{{1,2}} ?\+|ab \d{{1,2}}|[+-]1\d
            |pg(?:-\d\d)?|tv-(?:ma|pg|14|g|y7?)|ma15\+|普|hard) *[\]\)]|【普】| \d{{1,2}}\+$
            |(?<=\S) fsk ?\d{{1,2}}$
language B  [\(\[](?<!\w.) *(?:vp|vo|vf|vm|vost(?:fr)?|ov|omu|ol|eng?|de|fr|es|pt|nl|dub(?:bed)?|sub(?:bed
            |titled)?|english|deutsch|français|español|samiska?|finska|meänkieli|jiddisch|på norsk|norsk tale
            |spanish|portugu[eé]s|português|lektor|dabing) *[\)\]]
unsure   B  [\(\[] *\? *[\)\]]
"""
_MARKS = [
    (f"<{kind}>", frozenset(prefilters), pattern)
    for kind, prefilters, pattern in (
        line.split(maxsplit=2) for line in re.sub(r"\n +", "", _TABLE).strip().split("\n")
    )
]
KINDS = tuple(dict.fromkeys(mark[1:-1] for mark, _, _ in _MARKS))
_RATING = next(pattern for mark, _, pattern in _MARKS if mark == "<rating>")
_compile = functools.cache(lambda pattern: re.compile(pattern, re.IGNORECASE))  # all patterns take 0.05 s
_YEAR = re.compile(r" *[\(\[] *((?:19|20)\d\d) *[\)\]]")
# Matches punctuation that remains after a mark was removed from the middle: "Takeda - - Pugliese".
_SEAM = re.compile(r" *\( *\)| *\[ *\]| +[-–:,|]+(?= +[-–:,|])| +(?=,)")
EDGE = " \t-–—:,;|/·•.\u200b"  # characters removed at the edges of a title


def take_marks(text: str) -> tuple[str, set[str]]:
    """Removes marks (additions such as "(New)") from a title, and punctuation at both ends.

    ``text`` has been cleaned by ``clean``.

    Returns:
        The title without marks, and the removed marks as tokens, such as {"<new>", "<year:1998>"}.
    """
    display, marks = text.strip(EDGE), set()
    while (shorter_title := _remove_marks_once(display, marks)) != display:
        display = shorter_title
    return display, marks


def find_ratings(text: str) -> list[str]:
    """Returns the age ratings in a title, such as ["K8"] for "[K8] News"."""
    return [rating.strip(" ()[]【】") for rating in _compile(_RATING).findall(text)]


def _remove_marks_once(text: str, marks: set[str]) -> str:
    if not _ANY_PREFILTER.search(text):
        return text
    matching_prefilters = {prefilter for prefilter, pattern in _PREFILTERS.items() if pattern.search(text)}
    stripped_text = text
    for mark, prefilters, pattern in _MARKS:
        if prefilters & matching_prefilters:
            stripped_text, count = _compile(pattern).subn(" ", stripped_text)
            if count:
                marks.add(mark)
    if "B" in matching_prefilters:
        marks.update(f"<year:{year}>" for year in _YEAR.findall(stripped_text))
        stripped_text = _YEAR.sub(" ", stripped_text)
    if stripped_text == text:
        return text
    return clean(" ".join(_SEAM.sub("", stripped_text).split())).strip(EDGE)
