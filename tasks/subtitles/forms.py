"""Conditions that a sub-title must fulfil before the classifier may assign a pattern.

The classifier is trained with hidden cues, so it may take a number after any word for an episode number
("Oldsmobile 88") or any dash for a separator of teams. The *form* of a pattern is a condition on the text of
the sub-title. Predictions that do not fulfil the form of their pattern are discarded. A form is less strict
than a rule, because the probability must be sufficient as well (classifier.py).
"""

import re
from collections.abc import Callable
from itertools import pairwise

from tasks.subtitles.cues import EPISODES, PARTS
from tasks.subtitles.rules import is_capitalized, is_person

_ANY = re.IGNORECASE


def _choice(*words: str) -> str:
    return "|".join(map(re.escape, words))


_EPISODE = _choice(*EPISODES, "episodes", "émission", "vol", "vol.", "capitulo", "ep", "επ", "lesson")
_PART = _choice(*PARTS, "cinquième partie", "pt")
_COUNT = r"(?:\d{1,3}|[IVX]{1,4}|one|two|three|four|five|ten|um|uma|dois|uno|due|dos|tre|deux|trois)"
_ORDINAL = (
    r"(?:\d[.ªaºe]{0,2}|\d[eè]\w{1,3}|first|second|prim[ae]\w*|second[ao]|terza|segunda|première|seconde)"
)
_NUMBERED = re.compile(
    rf"(?:^|[-–:,(|] ?|\d )(?:{_EPISODE})\W{{0,2}}{_COUNT}\b|\bεπ\. ?\d|"
    rf"(?:^|[-–:,] )\d{{1,4}}\. ?(?:rész|epizoda|díl|díel|část|časť|епизод|bölüm)\b|"
    r"^\d{1,3}(?:\)|[.:] ['\"«A-ZÀ-ÞΑ-Ω]|/\d{1,4}(?::|$))|^\d{1,4}\.$",
    _ANY,
)
_PARTED = re.compile(
    rf"\b(?:{_PART})\.? ?{_COUNT}\b|\b{_ORDINAL} (?:{_PART})\b|\(\d(?:/\d)?\)|\w \d/\d$", _ANY
)
_MONTH = (
    r"(?:jan|ene|gen|feb|f[eé]v|m[aä]r|mai|may|maj|mag|a[pvb]r|jun|juin|jul|juil|giu|lug|aug|ago|ao[uû]|sep|set|"
    r"o[ckut]t|nov|de[czs]|d[ée]c|dic)\w*\.?"
)
_DATED = re.compile(
    r"\d[:.]\d\d ?(?:[ap]\.?m\b|uhr)|\d ?[ap]\.?m\b|\b20\d\d-\d\d-\d\d\b|^\d\d:\d\d(?: - \d\d:\d\d)?$|"
    rf"vom \d+\.|\b(?:\d{{1,2}}\.? (?:de )?{_MONTH}|{_MONTH} (?:de )?\d{{1,2}}\w\w,)(?:$|\W)|"
    rf"^{_MONTH} (?:de )?\d{{4}}$",
    _ANY,
)
_NO_DATE = re.compile(r"\d:\d\b|^\d+\)")  # numbers of verses and of episodes
_CONTEST = re.compile(
    r"\b(?:tour|races?|cups?|open|liga|ligue|league|pga|[wev]m|gp|grand slam|meeting|marat\w+|masters|motogp|"
    r"moto\d|hinspiel|rückspiel|halbzeit|qualif\w+|play-?offs?|matchplay|rall\w+|prix|sprint|classic|poker|"
    r"champion\w*|turn\w+|roland.garros|semi\w+|etap\w+)\b|(?:rennen|etappe|finale?|liga)\b|finál|bundes|"
    r"kvalifik|weltmeister|super\w+ \d",
    _ANY,
)
_HIGHLIGHTS = re.compile(r"highlights|analys|countdown|motorhome|best of|show\b", _ANY)
_BETWEEN = re.compile(r"\s+(?:v|vs|@|at|x|gegen|contre|contra|versus)\.?\s+", _ANY)
_DASH = re.compile(r" ?- ")
_BEHIND_TEAMS = re.compile(r", (?:highlights|\d\. ).*$| \([MKFmkf]\)$", _ANY)
_ARTICLE = re.compile(r"(?:the|an?|der|die|das|eine?|le|la|les|il|el|os?|um|uma)\b", _ANY)
_SIGN = re.compile(r"\s*(?:;|\||•|//?|\+| -{3,} )\s*")


def _is_match(text: str) -> bool:
    """Returns whether the text names two sides of a match.

    If only a dash separates them, neither may contain a word for a contest.
    """
    text = _BEHIND_TEAMS.sub("", text).rpartition(": ")[2]
    if len(sides := _BETWEEN.split(text)) == 2:
        return all(_is_side(side) for side in (_DASH.split(sides[0])[-1], sides[1]))
    sides = _DASH.split(text.rpartition(", ")[2])
    return len(sides) == 2 and all(_is_side(side) and not _CONTEST.search(side) for side in sides)


def _is_contest(text: str) -> bool:
    """Returns whether the text contains a contest word and is not a match of two sides."""
    if not _CONTEST.search(text) or _BETWEEN.search(text) or _is_match(text):
        return False
    return not any(_is_match(f"{first} - {second}") for first, second in pairwise(_DASH.split(text)))


def _is_side(text: str) -> bool:
    short = len(text.split()) <= 6 and not re.search(r"[!?]|--", text)
    return short and is_capitalized(text) and not _ARTICLE.match(text) and not _HIGHLIGHTS.search(text)


def _is_list(text: str) -> bool:
    """Returns whether separators divide the text into short parts, none of which is the name of a person."""
    parts = _SIGN.split(text)
    if len(parts) == 1 or " " not in text or "/-" in text:
        return False
    return all(_is_story(part) for part in parts)


def _is_story(text: str) -> bool:
    return bool(re.search(r"\w", text)) and len(text.split()) <= 10 and not is_person(text, listed=True)


_FORMS: dict[str, Callable[[str], object]] = {
    "date": lambda text: _DATED.search(text) and not _NO_DATE.search(text),
    "teams": _is_match,
    "competition": _is_contest,
    "segments": _is_list,
    "part": lambda text: _PARTED.search(text) and not _BETWEEN.search(text),
    "episode_number": lambda text: _NUMBERED.search(text) and not _CONTEST.search(text),
}


def has_form(text: str, pattern: str) -> bool:
    """Returns whether a cleaned sub-title fulfils the form of a pattern; True for patterns without a form."""
    return pattern not in _FORMS or bool(_FORMS[pattern](text))
