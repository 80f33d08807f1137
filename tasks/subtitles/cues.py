"""Rule-labelled sub-titles with the cue of their rule hidden, for training.

A classifier that sees "Folge 12" a thousand times learns the rule and nothing else. Here a cue word becomes
another word of the guide or loses letters, a separator becomes another, a list loses members and a phrase its
article: what remains ("Kapitola 12", "Bayern - Ajax", "Lucky Penny") is what the rules do not know.
"""

import random
import re
from collections.abc import Callable, Sequence

from tasks.subtitles.rules import PLAIN, clean

_ANY = re.IGNORECASE
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_NUMBER = re.compile(r"\d+")


class Cues:
    """Hides cues; ``words`` are words of the guide that take a cue word's place."""

    def __init__(self, words: Sequence[str], seed: int) -> None:
        self._words, self._random = list(words) or ["word"], random.Random(seed)
        self._by_pattern: dict[str, Callable[[str], str]] = {
            "date": self._date,
            "teams": self._teams,
            "competition": self._competition,
            "segments": self._segments,
            "part": self._part,
            "episode_number": self._episode,
            "guests": self._guests,
            "place": self._place,
            PLAIN: self._plain,
        }

    def hide(self, sub_title: str, pattern: str) -> str:
        """The sub-title without its cue, at random; one that would lose everything stays as it is."""
        text = clean(sub_title)
        return clean(self._by_pattern[pattern](text)) or text

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _word(self) -> str:
        word = self._random.choice(self._words)
        return word if self._chance(0.3) else self._random.choice((word.capitalize(), word.lower()))

    def _blurred(self, word: str) -> str:
        """The word with its end, or letters within it, replaced by another word's."""
        kept, other = self._random.randint(1, len(word)), self._random.choice(self._words).lower()
        return word[:kept] + other[len(other) // 2 :]

    def _numbers(self, text: str) -> str:
        return _NUMBER.sub(lambda found: self._digits(found[0]), text)

    def _digits(self, number: str) -> str:
        return number if len(number) == 4 else str(self._random.randint(1, 10 ** min(len(number), 3)))

    def _date(self, text: str) -> str:
        text = re.sub(r"^.*?\b(?=\w+ \d|\d{1,2}[./-])", "", text, count=1) if self._chance(0.2) else text
        text = _LETTERS.sub(lambda found: self._blurred(found[0]) if self._chance(0.5) else found[0], text)
        if self._chance(0.3):
            text = re.sub(r"[,.]? ?\b(19|20)\d\d\b", "", text)
        if self._chance(0.3):
            text = re.sub(r"(\d{1,2})([./])(\d{1,2})[./](\d{4})", self._reordered, text)
        if self._chance(0.2):
            text = re.sub(r"(\d{1,2}) (\w+)", r"\1 de \2", text, count=1)
        return text

    def _reordered(self, found: re.Match[str]) -> str:
        first, mark, second, year = found.groups()
        dash = self._random.choice(("-", "/", ". ", mark))
        return self._random.choice((f"{year}{dash}{second}{dash}{first}", f"{first}{dash}{second}"))

    def _teams(self, text: str) -> str:
        head, colon, match = text.rpartition(": ")
        text = text if not colon or self._chance(0.4) else match if self._chance(0.8) else head + " - " + match
        between = (" - ", "-", " – ", " at ", " @ ", " gegen ", " x ", " contre ", " mod ", " contra ", "–", " vs ")
        text = re.sub(r"\s+(?:v|vs)\.?\s+", self._random.choice(between), text, flags=_ANY)
        return text + self._random.choice((" (M)", " (k)", ", 2. halvleg")) if self._chance(0.1) else text

    def _competition(self, text: str) -> str:
        text = self._numbers(text)
        cue = r"round|runde|match ?day|spieltag|journée|étape|stage|\w*-?finale?s?\b"
        return re.sub(cue, lambda found: self._blurred(found[0]) if self._chance(0.7) else found[0], text, flags=_ANY)

    def _segments(self, text: str) -> str:
        separator = self._random.choice(("; ", ";", " / ", "//", " + ", ". ", " | ", " • ", ", "))
        parts = re.split(r"\s*//\s*|\s*/\s*", text)
        return separator.join(parts)

    def _part(self, text: str) -> str:
        text = self._numbers(text)
        cue, choice = r"(\W*)\b(?:part|pt\.?|teil|partie) ?(?=\w)", self._random.random()
        if choice < 0.3:
            return re.sub(cue, r" ", text, flags=_ANY)
        if choice < 0.6:
            return re.sub(cue, lambda found: f"{found[1]}{self._word()} ", text, flags=_ANY)
        if choice < 0.9:
            blurred = self._random.choice(("part", "parte", "del", "part", "teil"))
            return re.sub(cue, lambda found: f"{found[1]}{self._blurred(blurred)} ", text, flags=_ANY)
        return re.sub(cue + r"(\d)\b", r" \2. part", text, flags=_ANY)

    def _episode(self, text: str) -> str:
        text = self._numbers(text)
        cue, choice = r"\b(?:episode|épisode|folge|staffel|saison|season|series|ep|nr)\b", self._random.random()
        if choice < 0.5:
            text = re.sub(cue, lambda _: self._word(), text, flags=_ANY)
        elif choice < 0.8:
            text = re.sub(cue, lambda found: self._blurred(found[0]), text, flags=_ANY)
        if self._chance(0.2):
            text = re.sub(r"^(\w+) (\d+)$", r"\2. \1", text)
        if self._chance(0.3):
            marks = (". ", ") ", ": ", "/20 ", " - ", ".")
            text = re.sub(r"^[SE]\d+ ?(?:E(\d+))?", lambda found: self._marked(found, marks), text)
            text = re.sub(r"\s*([).:/])\s*-\s*", r"\1 ", text)
        return text

    def _marked(self, found: re.Match[str], marks: Sequence[str]) -> str:
        return (found[1] or str(self._random.randint(1, 40))) + self._random.choice(marks)

    def _listed(self, text: str, conjunctions: Sequence[str]) -> str:
        parts = re.split(r",\s+(?:and|und|et|&)\s+|,\s+|\s+(?:and|und|et|&|/)\s+", text)
        parts = [part for part in parts if self._chance(0.8)] or parts[:1]
        self._random.shuffle(parts)
        return ", ".join(parts[:-1]) + (self._random.choice(conjunctions) if parts[1:] else "") + parts[-1]

    def _guests(self, text: str) -> str:
        text = re.sub(r"^(?:guests?|gäste|invités?|with|mit|avec)\b\W*", "", text, flags=_ANY)
        return self._listed(text, (", ", " & ", " e ", " y ", " og ", " en ", " och ", " a ", " and ", " - "))

    def _place(self, text: str) -> str:
        return self._listed(text, (", ", " - ", " to ", " à ", " e ", " til ")) if "," in text else text

    def _plain(self, text: str) -> str:
        words = text.split()
        if len(words) > 1 and self._chance(0.7):  # some words in a row: a phrase without what the rule saw
            length = self._random.randint(1, min(4, len(words)))
            start = self._random.randint(0, len(words) - length)
            words = words[start : start + length]
        text = " ".join(words)
        text = text.rstrip("!?., ") if self._chance(0.7) else text
        return text[:1].upper() + text[1:]
