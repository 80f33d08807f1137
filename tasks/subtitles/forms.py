"""Checks whether the text of a sub-title permits a pattern that the classifier predicts.

The classifier is trained on texts without cues, such as the word "Episode". Therefore, it may take a number
after any word for an episode number ("Oldsmobile 88"), or any dash for a separator of teams. The *form* of a
pattern is a condition on the text. If a sub-title does not fulfil the form of the predicted pattern, the
prediction is discarded. A form is less strict than a rule (rules.py), because a prediction must also reach a
minimum probability (classifier.py).
"""

import re
from collections.abc import Callable
from itertools import pairwise

from tasks.subtitles.cues import EPISODES, PARTS
from tasks.subtitles.rules import is_capitalized, is_person

_ANY_CASE = re.IGNORECASE


def _alternatives(*words: str) -> str:
    """Returns a regular expression that matches any of the words."""
    return "|".join(map(re.escape, words))


_EPISODE_WORD = _alternatives(
    *EPISODES, "episodes", "émission", "vol", "vol.", "capitulo", "ep", "επ", "lesson"
)
_PART_WORD = _alternatives(*PARTS, "cinquième partie", "pt")
_COUNT = r"(?:\d{1,3}|[IVX]{1,4}|one|two|three|four|five|ten|um|uma|dois|uno|due|dos|tre|deux|trois)"
_ORDINAL = (
    r"(?:\d[.ªaºe]{0,2}|\d[eè]\w{1,3}|first|second|prim[ae]\w*|second[ao]|terza|segunda|première|seconde)"
)
_EPISODE_NUMBER = re.compile(
    rf"(?:^|[-–:,(|] ?|\d )(?:{_EPISODE_WORD})\W{{0,2}}{_COUNT}\b|\bεπ\. ?\d|"
    rf"(?:^|[-–:,] )\d{{1,4}}\. ?(?:rész|epizoda|díl|díel|část|časť|епизод|bölüm)\b|"
    r"^\d{1,3}(?:\)|[.:] ['\"«A-ZÀ-ÞΑ-Ω]|/\d{1,4}(?::|$))|^\d{1,4}\.$",
    _ANY_CASE,
)
_PART_NUMBER = re.compile(
    rf"\b(?:{_PART_WORD})\.? ?{_COUNT}\b|\b{_ORDINAL} (?:{_PART_WORD})\b|\(\d(?:/\d)?\)|\w \d/\d$", _ANY_CASE
)
_MONTH = (
    r"(?:jan|ene|gen|feb|f[eé]v|m[aä]r|mai|may|maj|mag|a[pvb]r|jun|juin|jul|juil|giu|lug|aug|ago|ao[uû]|sep|set|"
    r"o[ckut]t|nov|de[czs]|d[ée]c|dic)\w*\.?"
)
_DATE_OR_TIME = re.compile(
    r"\d[:.]\d\d ?(?:[ap]\.?m\b|uhr)|\d ?[ap]\.?m\b|\b20\d\d-\d\d-\d\d\b|^\d\d:\d\d(?: - \d\d:\d\d)?$|"
    rf"vom \d+\.|\b(?:\d{{1,2}}\.? (?:de )?{_MONTH}|{_MONTH} (?:de )?\d{{1,2}}\w\w,)(?:$|\W)|"
    rf"^{_MONTH} (?:de )?\d{{4}}$",
    _ANY_CASE,
)
_VERSE_OR_EPISODE = re.compile(r"\d:\d\b|^\d+\)")  # numbers that are not dates
_CONTEST = re.compile(
    r"\b(?:tour|races?|cups?|open|liga|ligue|league|pga|[wev]m|gp|grand slam|meeting|marat\w+|masters|motogp|"
    r"moto\d|hinspiel|rückspiel|halbzeit|qualif\w+|play-?offs?|matchplay|rall\w+|prix|sprint|classic|poker|"
    r"champion\w*|turn\w+|roland.garros|semi\w+|etap\w+)\b|(?:rennen|etappe|finale?|liga)\b|finál|bundes|"
    r"kvalifik|weltmeister|super\w+ \d",
    _ANY_CASE,
)
_HIGHLIGHTS = re.compile(r"highlights|analys|countdown|motorhome|best of|show\b", _ANY_CASE)
_VERSUS = re.compile(r"\s+(?:v|vs|@|at|x|gegen|contre|contra|versus)\.?\s+", _ANY_CASE)
_DASH = re.compile(r" ?- ")
_AFTER_TEAMS = re.compile(r", (?:highlights|\d\. ).*$| \([MKFmkf]\)$", _ANY_CASE)
_ARTICLE = re.compile(r"(?:the|an?|der|die|das|eine?|le|la|les|il|el|os?|um|uma)\b", _ANY_CASE)
_LIST_SEPARATOR = re.compile(r"\s*(?:;|\||•|//?|\+| -{3,} )\s*")


def _is_match(text: str) -> bool:
    """Returns whether the text names the two sides of a sports match.

    If only a dash separates the sides, neither side may contain a word for a contest.
    """
    text = _AFTER_TEAMS.sub("", text).rpartition(": ")[2]
    if len(sides := _VERSUS.split(text)) == 2:
        return all(_is_side(side) for side in (_DASH.split(sides[0])[-1], sides[1]))
    sides = _DASH.split(text.rpartition(", ")[2])
    return len(sides) == 2 and all(_is_side(side) and not _CONTEST.search(side) for side in sides)


def _is_contest(text: str) -> bool:
    """Returns whether the text has a word for a contest ("cup", "rally") but not the two sides of a match."""
    if not _CONTEST.search(text) or _VERSUS.search(text) or _is_match(text):
        return False
    return not any(_is_match(f"{first} - {second}") for first, second in pairwise(_DASH.split(text)))


def _is_side(text: str) -> bool:
    """Returns whether the text may be the name of a team or player in a match."""
    is_short = len(text.split()) <= 6 and not re.search(r"[!?]|--", text)
    return is_short and is_capitalized(text) and not _ARTICLE.match(text) and not _HIGHLIGHTS.search(text)


def _is_segment_list(text: str) -> bool:
    """Returns whether the text lists the titles of several segments of an episode, such as "A Day / Rain"."""
    segments = _LIST_SEPARATOR.split(text)
    if len(segments) == 1 or " " not in text or "/-" in text:
        return False
    return all(map(_is_segment, segments))


def _is_segment(text: str) -> bool:
    """Returns whether the text may be the title of a segment: at most ten words, and not a person's name."""
    return (
        bool(re.search(r"\w", text)) and len(text.split()) <= 10 and not is_person(text, has_first_name=True)
    )


_FORMS: dict[str, Callable[[str], object]] = {
    "date": lambda text: _DATE_OR_TIME.search(text) and not _VERSE_OR_EPISODE.search(text),
    "teams": _is_match,
    "competition": _is_contest,
    "segments": _is_segment_list,
    "part": lambda text: _PART_NUMBER.search(text) and not _VERSUS.search(text),
    "episode_number": lambda text: _EPISODE_NUMBER.search(text) and not _CONTEST.search(text),
}


def has_form(text: str, pattern: str) -> bool:
    """Returns whether a sub-title fulfils the form of a pattern, or the pattern has no form.

    The white space in ``text`` is collapsed (``collapse_spaces``).
    """
    return pattern not in _FORMS or bool(_FORMS[pattern](text))
