"""Patterns of sub-titles, and weak rules that recognise the plain cases of each.

A rule speaks where it is nearly sure and abstains elsewhere: cue words stand in English, German and French
alone, lists of first names and places hold the frequent ones. The classifier learns from what the rules label
with their cues hidden (cues.py), so that it reaches other languages and forms (classifier.py).

What a sub-title is when two patterns fit is decided by the order of ``PATTERNS``: "Round 4: Lazio v Torino"
names teams, "S6 E2 - The Bridge" an episode's number.
"""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parent
PLAIN = "plain_title"

_ANY = re.IGNORECASE
_MONTHS = (
    "january|february|march|april|may|june|july|august|september|october|november|december|"
    "januar|februar|märz|mai|juni|juli|oktober|dezember|"
    "janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre|décembre"
)
_COUNT = r"(?:\d{1,3}|[IVX]{1,4}|one|two|three|four|eins|zwei|drei|une?|deux|trois)"
_JOINED = r"\s*;\s*|,\s+(?:and|und|et|&)\s+|,\s+|\s+(?:and|und|et|&|/)\s+"


class Rule(NamedTuple):
    """A pattern, and a test of a cleaned sub-title that few others pass."""

    pattern: str
    holds: Callable[[str], object]


def clean(sub_title: str) -> str:
    """Text on one line: white space, also written as a backslash and n, becomes single spaces."""
    return " ".join(sub_title.replace("\\n", " ").split())


@cache
def first_names() -> frozenset[str]:
    """Frequent first names, English, German and French."""
    return frozenset((FOLDER / "first_names.txt").read_text(encoding="utf-8").split())


@cache
def places() -> frozenset[str]:
    """Countries, regions and cities as they are often written, in English, German and French."""
    return frozenset(re.split(r",\s+|\n", (FOLDER / "places.txt").read_text(encoding="utf-8").strip()))


def _is_match(text: str) -> bool:
    """Two short names with ``v`` or ``vs`` between them, a heading before a colon aside."""
    sides = re.split(r"\s+(?:v|vs)\.?\s+", text.rpartition(": ")[2], flags=_ANY)
    return len(sides) == 2 and all(len(side.split()) <= 5 and is_capitalised(side) for side in sides)


def is_capitalised(text: str) -> bool:
    """Whether there are words and none begins with a small letter."""
    words = re.findall(r"[^\W_][\w'’.\-]*", text)
    return bool(words) and all(not word[0].islower() for word in words)


def is_person(text: str, *, known: bool) -> bool:
    """Two or three capitalised words, the first a ``known`` first name if so asked."""
    words = text.split()
    if not 2 <= len(words) <= 3 or not is_capitalised(text) or re.search(r"\d|[:!?/]", text):
        return False
    return not known or words[0] in first_names()


def _is_guest_list(text: str) -> bool:
    """``John Doe``, ``John Doe, Lil Jon and Jane Roe``: half of the names begin with a known first name."""
    if cued := re.match(r"(?:guests?|with|mit|gäste|invités?|avec|featuring|feat\.)\s*:?\s+(.+)", text, _ANY):
        text = cued[1]
    people = re.split(_JOINED, text)
    known = sum(is_person(each, known=True) for each in people)
    return 2 * known >= len(people) and all(is_person(each, known=False) for each in people)


def _is_place(text: str) -> bool:
    """A known place; places and other capitalised words in a list or joined by ``to``."""
    if text in places():
        return True
    parts = re.split(r",\s+| (?:to|nach) ", text)
    known = sum(part in places() for part in parts)
    capitalised = all(is_capitalised(part) and len(part.split()) <= 3 for part in parts)
    return len(parts) > 1 and 2 * known >= len(parts) and capitalised and not re.search(r"[\d:]", text)


def _is_segments(text: str) -> bool:
    """Titles of two or more stories with slashes between them."""
    parts = re.split(r"\s*//\s*|\s+/\s+|(?<=\w\w)/(?=[A-ZÀ-ÖØ-Þ]\w)", text)
    return len(parts) > 1 and all(re.search(r"[^\W\d_]{3}", part) for part in parts) and " " in text.strip()


def _is_sentence(text: str) -> bool:
    """Words that stand in a phrase and in no name; nothing that separates."""
    if re.search(r"[\d,;:/|+–#()\[\]\"@]| - |-.*-", text):
        return False
    return bool(_PHRASE.search(text))


_PHRASE = re.compile(
    r"^(?:the|an?|der|die|das|ein|eine|les|une|my|your|his|her|our|how|what|why|who|when|where|wie|was|wer|"
    r"warum|mein|meine|comment|pourquoi|mon|ma|ce|il|elle|on|you|we|it's|i'm|no|not|nicht|kein|to) \w|"
    r" (?:of|is|are|was|my|your|his|her|with|without|for|ist|sind|hat|im|am|vom|zum|zur|mit|ohne|für|auf|"
    r"aus|est|sont|du|dans|sur|pour|sans|qui|que|ne|the|das) \w|[^.]!$|\?$",
    _ANY,
)


def _regular(pattern: str) -> Callable[[str], object]:
    return re.compile(pattern, _ANY).search


RULES: tuple[Rule, ...] = (
    Rule("date", _regular(r"\b\d{1,2}[./-]\d{1,2}[./-](?:19|20)?\d\d\b")),
    Rule("date", _regular(rf"\b(?:\d{{1,2}}(?:\.|th|st|nd|rd)? )(?:{_MONTHS})\b")),
    Rule("date", _regular(rf"\b(?:{_MONTHS}) \d{{1,2}}(?:,|\b)")),
    Rule("teams", _is_match),
    Rule("competition", _regular(r"\b(?:round|runde|match ?day|week|day|stage|étape|heat) \d{1,2}\b")),
    Rule(
        "competition",
        _regular(r"\b\d{1,2}(?:\.|e|ème|th|st|nd|rd) (?:runde|spieltag|journée|étape|round|stage)\b"),
    ),
    Rule("competition", _regular(r"\b(?:quarter|semi)[ -]?finals?\b|\b(?:halb|viertel|achtel)finale\b")),
    Rule("competition", _regular(r"\bdemi-finales?\b|\bquarts? de finale\b")),
    Rule("competition", _regular(r"\b(?:grand prix|world (?:cup|tour|series)|championships?|weltcup)\b")),
    Rule("competition", _regular(r"\bcoupe du monde\b")),
    Rule("segments", _is_segments),
    Rule("part", _regular(rf"\b(?:part|pt\.?|teil|partie) ?{_COUNT}\b")),
    Rule("part", _regular(r"\w \(\d(?:/\d)?\)$")),
    Rule("episode_number", _regular(r"\b(?:episode|épisode|folge|ep\.?):? ?\d+\b")),
    Rule("episode_number", _regular(r"\b(?:staffel|saison|season|series):? ?\d+\b")),
    Rule("episode_number", _regular(r"^s\d{1,2}(?: ?e\d+)?\b|^e\d{1,4}\b|\bs\d{1,2} ?ep?\d+\b")),
    Rule("episode_number", _regular(r"^#?\d{1,5}$|#\d+|\bNr\. ?\d+")),
    Rule("guests", _is_guest_list),
    Rule("place", _is_place),
    Rule(PLAIN, _is_sentence),
)
PATTERNS = tuple(dict.fromkeys(rule.pattern for rule in RULES))


def match_rule(sub_title: str) -> str | None:
    """The pattern of the first rule that holds; None where all abstain."""
    text = clean(sub_title)
    return next((rule.pattern for rule in RULES if rule.holds(text)), None)
