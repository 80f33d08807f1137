"""Defines patterns of sub-titles, and weak rules that recognize clear cases of each pattern.

Rules are precise rather than complete: their words are only English, German and French, and the lists of
first names and places have only frequent names. The classifier is trained on sub-titles that the rules
label, without the words that the rules use (cues.py), so that it generalizes to other languages.

If several rules match, the first rule decides: "Round 4: Lazio v Torino" has the pattern teams, and "S6 E2 -
The Bridge" has the pattern episode_number.
"""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parent
PLAIN = "plain_title"

_ANY_CASE = re.IGNORECASE
_MONTHS = (
    "january|february|march|april|may|june|july|august|september|october|november|december|"
    "januar|februar|märz|mai|juni|juli|oktober|dezember|"
    "janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre|décembre"
)
_COUNT = r"(?:\d{1,3}|[IVX]{1,4}|one|two|three|four|eins|zwei|drei|une?|deux|trois)"
_LIST_SEPARATOR = r"\s*;\s*|,\s+(?:and|und|et|&)\s+|,\s+|\s+(?:and|und|et|&|/)\s+"


class Rule(NamedTuple):
    """Rule that recognizes sub-titles of a pattern."""

    pattern: str  # name of the pattern
    matches: Callable[[str], object]  # predicate on a sub-title with collapsed spaces


def collapse_spaces(sub_title: str) -> str:
    """Replaces white space, including a literal backslash followed by n, by single spaces."""
    return " ".join(sub_title.replace("\\n", " ").split())


@cache
def first_names() -> frozenset[str]:
    """Reads frequent English, German and French first names."""
    return frozenset((FOLDER / "first_names.txt").read_text(encoding="utf-8").split())


@cache
def places() -> frozenset[str]:
    """Reads names of countries, regions and cities in English, German and French."""
    return frozenset(re.split(r",\s+|\n", (FOLDER / "places.txt").read_text(encoding="utf-8").strip()))


def _is_match(text: str) -> bool:
    """Returns whether the text after the last colon consists of two short names separated by "v" or "vs"."""
    sides = re.split(r"\s+(?:v|vs)\.?\s+", text.rpartition(": ")[2], flags=_ANY_CASE)
    return len(sides) == 2 and all(len(side.split()) <= 5 and is_capitalized(side) for side in sides)


def is_capitalized(text: str) -> bool:
    """Returns whether the text has words, none of which begins with a lower-case letter."""
    words = re.findall(r"[^\W_][\w'’.\-]*", text)
    return bool(words) and all(not word[0].islower() for word in words)


def is_person(text: str, *, has_first_name: bool) -> bool:
    """Returns whether the text looks like a person's name: two or three capitalized words.

    If ``has_first_name`` is set, the first word must be in first_names.txt.
    """
    words = text.split()
    if not 2 <= len(words) <= 3 or not is_capitalized(text) or re.search(r"\d|[:!?/]", text):
        return False
    return not has_first_name or words[0] in first_names()


def _is_guest_list(text: str) -> bool:
    """Returns whether the text is a list of persons, at least half of whom have a frequent first name."""
    if cue_match := re.match(
        r"(?:guests?|with|mit|gäste|invités?|avec|featuring|feat\.)\s*:?\s+(.+)", text, _ANY_CASE
    ):
        text = cue_match[1]
    people = re.split(_LIST_SEPARATOR, text)
    first_name_count = sum(is_person(person, has_first_name=True) for person in people)
    are_persons = all(is_person(person, has_first_name=False) for person in people)
    return 2 * first_name_count >= len(people) and are_persons


def _is_place(text: str) -> bool:
    """Returns whether the text is a place in places.txt, or a list of names, at least half of them places."""
    if text in places():
        return True
    names = re.split(r",\s+| (?:to|nach) ", text)
    place_count = sum(name in places() for name in names)
    are_names = all(is_capitalized(name) and len(name.split()) <= 3 for name in names)
    return len(names) > 1 and 2 * place_count >= len(names) and are_names and not re.search(r"[\d:]", text)


def _is_segments(text: str) -> bool:
    """Returns whether the text is two or more titles separated by slashes."""
    parts = re.split(r"\s*//\s*|\s+/\s+|(?<=\w\w)/(?=[A-ZÀ-ÖØ-Þ]\w)", text)
    return len(parts) > 1 and all(re.search(r"[^\W\d_]{3}", part) for part in parts) and " " in text.strip()


def _is_sentence(text: str) -> bool:
    """Returns whether the text has function words ("the", "is"), as sentences do, but no separators."""
    if re.search(r"[\d,;:/|+–#()\[\]\"@]| - |-.*-", text):
        return False
    return bool(_PHRASE.search(text))


_PHRASE = re.compile(
    r"^(?:the|an?|der|die|das|ein|eine|les|une|my|your|his|her|our|how|what|why|who|when|where|wie|was|wer|"
    r"warum|mein|meine|comment|pourquoi|mon|ma|ce|il|elle|on|you|we|it's|i'm|no|not|nicht|kein|to) \w|"
    r" (?:of|is|are|was|my|your|his|her|with|without|for|ist|sind|hat|im|am|vom|zum|zur|mit|ohne|für|auf|"
    r"aus|est|sont|du|dans|sur|pour|sans|qui|que|ne|the|das) \w|[^.]!$|\?$",
    _ANY_CASE,
)


def _matches_regex(pattern: str) -> Callable[[str], object]:
    """Returns a predicate that searches a text for a regular expression, ignoring case."""
    return re.compile(pattern, _ANY_CASE).search


RULES: tuple[Rule, ...] = (
    Rule("date", _matches_regex(r"\b\d{1,2}[./-]\d{1,2}[./-](?:19|20)?\d\d\b")),
    Rule("date", _matches_regex(rf"\b(?:\d{{1,2}}(?:\.|th|st|nd|rd)? )(?:{_MONTHS})\b")),
    Rule("date", _matches_regex(rf"\b(?:{_MONTHS}) \d{{1,2}}(?:,|\b)")),
    Rule("teams", _is_match),
    Rule("competition", _matches_regex(r"\b(?:round|runde|match ?day|week|day|stage|étape|heat) \d{1,2}\b")),
    Rule(
        "competition",
        _matches_regex(r"\b\d{1,2}(?:\.|e|ème|th|st|nd|rd) (?:runde|spieltag|journée|étape|round|stage)\b"),
    ),
    Rule(
        "competition", _matches_regex(r"\b(?:quarter|semi)[ -]?finals?\b|\b(?:halb|viertel|achtel)finale\b")
    ),
    Rule("competition", _matches_regex(r"\bdemi-finales?\b|\bquarts? de finale\b")),
    Rule(
        "competition", _matches_regex(r"\b(?:grand prix|world (?:cup|tour|series)|championships?|weltcup)\b")
    ),
    Rule("competition", _matches_regex(r"\bcoupe du monde\b")),
    Rule("segments", _is_segments),
    Rule("part", _matches_regex(rf"\b(?:part|pt\.?|teil|partie)(?: ?\d{{1,3}}| {_COUNT})\b")),
    Rule("part", _matches_regex(r"\w \(\d(?:/\d)?\)$")),
    Rule("episode_number", _matches_regex(r"\b(?:episode|épisode|folge|ep\.?):? ?\d+\b")),
    Rule("episode_number", _matches_regex(r"\b(?:staffel|saison|season|series):? ?\d+\b")),
    Rule("episode_number", _matches_regex(r"^s\d{1,2}(?: ?e\d+)?\b|^e\d{1,4}\b|\bs\d{1,2} ?ep?\d+\b")),
    Rule("episode_number", _matches_regex(r"^#?\d{1,5}$|#\d+|\bNr\. ?\d+")),
    Rule("guests", _is_guest_list),
    Rule("place", _is_place),
    Rule(PLAIN, _is_sentence),
)
PATTERNS = tuple(dict.fromkeys(rule.pattern for rule in RULES))


def match_rule(sub_title: str) -> str | None:
    """Returns the pattern of the first rule that matches a sub-title, or None if no rule matches."""
    text = collapse_spaces(sub_title)
    return next((rule.pattern for rule in RULES if rule.matches(text)), None)
