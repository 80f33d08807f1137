"""Hides the cues of rule-labelled sub-titles, so that a classifier learns more than the rules.

A cue is the part of a sub-title by which a rule recognizes a pattern, such as "Folge". A classifier that is
trained with "Folge 12" a thousand times learns only the rule. Therefore, cues are hidden: cue words are
replaced by other words of the guide or lose letters, separators are exchanged, and articles and members of
lists are removed. Examples of results are "Kapitola 12", "Bayern - Ajax" and "Lucky Penny".
"""

import random
import re
from collections.abc import Callable, Sequence
from functools import cache

from tasks.subtitles.rules import PLAIN, collapse_spaces, first_names, places

_ANY_CASE = re.IGNORECASE
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_NUMBER = re.compile(r"\d+")


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_DAYS = _words("Monday Wednesday Saturday Montag Donnerstag Freitag Sonntag lundi mercredi dimanche")
_MONTHS = _words("January March April May June August November Januar März Juli mars août")
_TIME = re.compile(r"\d{1,2}[:.]\d\d(?: (?:am|pm|Uhr))?(?: - \d{1,2}:\d\d (?:am|pm))?")
# Words that replace cue words; similar words occur in titles (tasks/text/marks.py).
EPISODES = _words(
    "episodio episódio episode aflevering avsnitt afsnit odcinek díl epizoda επεισόδιο επ. jakso bölüm "
    "capítulo chapter kapitel puntata emission volume no."
)
PARTS = _words("parte parte partie part teil osa część časť část rész díl del deel p")
_ORDINALS = _words("first second third prima seconda primera segunda primeira première erster")
_COUNTS = _words("one two three four ten fifty uno dos um deux drei I II III IV X")
_VERSUS = (" - ", "-", " – ", "–", " at ", " @ ", " gegen ", " x ", " contre ", " mod ", " contra ", " vs ")
_SEPARATORS = ("; ", "; ", ";", " / ", "//", "/", "/ ", " + ", " | ", " • ", " ----- ")


@cache
def _sorted_first_names() -> list[str]:
    return sorted(first_names())


@cache
def _sorted_places() -> list[str]:
    return sorted(places())


class Cues:
    """Hides cues of sub-titles at random. ``words`` are words of the guide that may replace cue words."""

    def __init__(self, words: Sequence[str], seed: int) -> None:
        self._words, self._random = list(words) or ["word"], random.Random(seed)
        self._by_pattern: dict[str, Callable[[str], str]] = {
            "date": self._hide_date,
            "teams": self._hide_teams,
            "competition": self._hide_competition,
            "segments": self._hide_segments,
            "part": self._hide_part,
            "episode_number": self._hide_episode_number,
            "guests": self._hide_guests,
            "place": self._hide_place,
            PLAIN: self._hide_plain,
        }

    def hide(self, sub_title: str, pattern: str) -> str:
        """Removes or replaces the cues of a pattern, unless the text would become empty."""
        text = collapse_spaces(sub_title)
        return collapse_spaces(self._by_pattern[pattern](text)) or text

    def _chance(self, probability: float) -> bool:
        """Returns True with the given probability."""
        return self._random.random() < probability

    def _random_word(self) -> str:
        """Returns a random word of the guide, in most cases capitalized or in lower case."""
        word = self._random.choice(self._words)
        return word if self._chance(0.3) else self._random.choice((word.capitalize(), word.lower()))

    def _random_phrase(self) -> str:
        """Returns one to four random words of the guide."""
        return " ".join(self._random_word() for _ in range(self._random.randint(1, 4)))

    def _blur(self, word: str) -> str:
        """Returns the beginning of a word, followed by the second half of a random word."""
        prefix_length = self._random.randint(1, len(word))
        random_word = self._random.choice(self._words).lower()
        return word[:prefix_length] + random_word[len(random_word) // 2 :]

    def _replace_numbers(self, text: str) -> str:
        """Replaces the numbers in a text by random numbers, except for numbers of four digits (years)."""
        return _NUMBER.sub(lambda match: self._replace_number(match[0]), text)

    def _replace_number(self, number: str) -> str:
        return number if len(number) == 4 else str(self._random.randint(1, 10 ** min(len(number), 3)))

    def _hide_date(self, text: str) -> str:
        if self._chance(0.25):
            return self._random_date()
        if (time_match := _TIME.search(text)) and self._chance(0.15):
            word = self._random_word()
            time = time_match[0]
            return self._random.choice((f"{word} {time}", f"{word} - {time}", time))
        if self._chance(0.15):
            text = f"{self._random_phrase()} {self._random.choice(('', '- ', '('))}{text}"
        text = re.sub(r"^.*?\b(?=\w+ \d|\d{1,2}[./-])", "", text, count=1) if self._chance(0.2) else text
        text = _LETTERS.sub(lambda match: self._blur(match[0]) if self._chance(0.5) else match[0], text)
        if self._chance(0.3):
            text = re.sub(r"[,.]? ?\b(19|20)\d\d\b", "", text)
        if self._chance(0.3):
            text = re.sub(r"(\d{1,2})([./])(\d{1,2})[./](\d{4})", self._reorder_date, text)
        if self._chance(0.2):
            text = re.sub(r"(\d{1,2}) (\w+)", r"\1 de \2", text, count=1)
        return text

    def _random_date(self) -> str:
        """Returns a random weekday, month or date. The end of the name of the month may be replaced."""
        day, month = self._random.randint(1, 31), self._random.choice(_MONTHS)
        month = self._blur(month) if self._chance(0.3) else month
        year = self._random.randint(1900, 2030)
        forms = (
            month,
            f"{month} {year}",
            f"{day} {month} {year}",
            f"{day} de {month}",
            f"{day}. {month[:3]}. {year}",
        )
        return self._random.choice((self._random.choice(_DAYS), *forms))

    def _reorder_date(self, match: re.Match[str]) -> str:
        """Returns a date as year, month and day, or as day and month, often with another separator."""
        day, mark, month, year = match.groups()
        dash = self._random.choice(("-", "/", ". ", mark))
        return self._random.choice((f"{year}{dash}{month}{dash}{day}", f"{day}{dash}{month}"))

    def _hide_teams(self, text: str) -> str:
        head, colon, match = text.rpartition(": ")
        if colon and self._chance(0.6):
            text = match if self._chance(0.8) else f"{head} - {match}"
        text = re.sub(r"\s+(?:v|vs)\.?\s+", self._random.choice(_VERSUS), text, flags=_ANY_CASE)
        if self._chance(0.3):  # add the name of a competition
            heading = self._random.choice(
                (f"{self._random_phrase()} {self._random.randint(1990, 2030)}", self._random_phrase())
            )
            text = f"{heading}{self._random.choice((': ', ' - '))}{text}"
        if self._chance(0.3):
            word, phrase = self._random_word(), self._random_phrase()
            endings = (
                f", Highlights aus {word}",
                " - Highlights",
                " (M)",
                " (k)",
                ", 2. halvleg",
                ", Highlights",
            )
            text += self._random.choice((*endings, f": {phrase}"))
        return text

    def _hide_competition(self, text: str) -> str:
        text = self._replace_numbers(text)
        if self._chance(0.3):  # keep only the name
            number = r"(?:round|runde|match ?day|spieltag|stage|day|week) \d+|\d+\. (?:runde|spieltag)"
            text = re.sub(rf"\W*\b(?:{number})\b\W*", " ", text, flags=_ANY_CASE)
        cue = r"round|runde|match ?day|spieltag|journée|étape|stage|\w*-?finale?s?\b"
        return re.sub(
            cue,
            lambda match: self._blur(match[0]) if self._chance(0.7) else match[0],
            text,
            flags=_ANY_CASE,
        )

    def _hide_segments(self, text: str) -> str:
        return self._random.choice(_SEPARATORS).join(re.split(r"\s*//\s*|\s*/\s*", text))

    def _hide_part(self, text: str) -> str:
        text = self._replace_numbers(text)
        cue, choice = r"(\W*)\b(?:part|pt\.?|teil|partie) ?(\d+|\w+)\b", self._random.random()
        word = self._change_case(self._random.choice(PARTS))
        number = str(self._random.randint(1, 9)) if self._chance(0.7) else self._random.choice(_COUNTS)
        if self._chance(0.15):
            text += self._random.choice((": ", ", ", " - ")) + self._random_phrase()
        if choice < 0.3:
            return re.sub(cue, f" {number}", text, flags=_ANY_CASE)
        if choice < 0.8:
            return re.sub(cue, lambda match: f"{match[1]}{word} {number}", text, flags=_ANY_CASE)
        ordinal = self._random.choice((f"{number}.", f"{number}a", f"{number}ª", f"{number}e", *_ORDINALS))
        return re.sub(
            cue, lambda match: f"{match[1]}{self._change_case(ordinal)} {word}", text, flags=_ANY_CASE
        )

    def _change_case(self, word: str) -> str:
        return self._random.choice((word, word.capitalize()))

    def _hide_episode_number(self, text: str) -> str:
        if self._chance(0.25):
            return self._random_episode_number()
        text = self._replace_numbers(text)
        cue = r"\b(?:episode|épisode|folge|staffel|saison|season|series|ep|nr)\b"
        choice = self._random.random()
        if choice < 0.3:
            text = re.sub(cue, lambda _: self._random_word(), text, flags=_ANY_CASE)
        elif choice < 0.8:
            text = re.sub(
                cue, lambda _: self._change_case(self._random.choice(EPISODES)), text, flags=_ANY_CASE
            )
        if self._chance(0.2):
            text = _NUMBER.sub(lambda _: self._change_case(self._random.choice(_COUNTS)), text)
        if self._chance(0.15):
            text = re.sub(r"^(\w+) (\d+)$", r"\2. \1", text)
        if self._chance(0.15):
            text = f"{self._random_phrase()}{self._random.choice((' - ', ': ', ' '))}{text}"
        if self._chance(0.3):
            text = re.sub(r"^[SE]\d+ ?(?:E(\d+))?", self._replace_mark, text)
            text = re.sub(r"\s*([).:/])\s*-\s*", r"\1 ", text)
        return text

    def _random_episode_number(self) -> str:
        """Returns a random episode number with or without a title, such as "12/40: Lorem" or "Kapitel 3"."""
        number, total = self._random.randint(1, 99), self._random.randint(10, 200)
        word = self._change_case(self._random.choice(EPISODES))
        separators = (". ", ") ", f"/{total}", f"/{total}: ", "")
        prefix = f"{number}{self._random.choice(separators)}"
        mark = self._random.choice((prefix, prefix, f"{word} {number}: ", f"{word} {number}"))
        return mark + (self._random_phrase() if mark.endswith(" ") else "")

    def _replace_mark(self, match: re.Match[str]) -> str:
        """Replaces an episode number such as "S1 E2" by "2" and a random separator."""
        number = match[1] or str(self._random.randint(1, 40))
        return number + self._random.choice((". ", ") ", ": ", "/20 ", " - ", "."))

    def _shuffle_list(self, text: str, conjunctions: Sequence[str]) -> str:
        """Shuffles and drops members of a list, and joins the last two by a random conjunction."""
        parts = re.split(r",\s+(?:and|und|et|&)\s+|,\s+|\s+(?:and|und|et|&|/)\s+", text)
        parts = [part for part in parts if self._chance(0.8)] or parts[:1]
        self._random.shuffle(parts)
        return ", ".join(parts[:-1]) + (self._random.choice(conjunctions) if parts[1:] else "") + parts[-1]

    def _hide_guests(self, text: str) -> str:
        if self._chance(0.1):
            return self._random.choice((" & ", " and ", " - ", ", ")).join(
                self._random.sample(_sorted_first_names(), 2)
            )
        if self._chance(0.1):
            return f"{self._random_word()}: {text}"
        text = re.sub(r"^(?:guests?|gäste|invités?|with|mit|avec)\b\W*", "", text, flags=_ANY_CASE)
        return self._shuffle_list(
            text, (", ", " & ", " e ", " y ", " og ", " en ", " och ", " a ", " and ", " - ")
        )

    def _hide_place(self, text: str) -> str:
        if self._chance(0.25):
            origin, destination = self._random.sample(_sorted_places(), 2)
            connective = self._random.choice((" to ", " til ", " nach ", " – ", " to the ", ", ", " à "))
            return origin + connective + destination
        if self._chance(0.1):
            return f"{text} {self._random.choice(('Castle', 'Island', 'Bay', 'Beach', 'Coast', 'Mountains'))}"
        return self._shuffle_list(text, (", ", " - ", " to ", " e ", " til ")) if "," in text else text

    def _hide_plain(self, text: str) -> str:
        if self._chance(0.06):
            return self._random_numbers()
        words = text.split()
        if len(words) > 1 and self._chance(0.6):  # a few consecutive words, mostly without the cue
            length = self._random.randint(1, min(4, len(words)))
            start = self._random.randint(0, len(words) - length)
            words = words[start : start + length]
        text = " ".join(words)
        text = text.rstrip("!?., ") if self._chance(0.7) else text
        if self._chance(0.3):  # add separators of lists, or numbers that are not episode numbers
            year, number = self._random.randint(1900, 2030), self._random.randint(1, 99)
            phrase = self._random_phrase()
            text = self._random.choice(
                (
                    f"{text}, {phrase}", f"{text}: {phrase}", f"{text} & {phrase}", f"{text} - {phrase}",
                    f"{text}. {text}", f"{year} {text}", f"{number} {text}", f"{text} ({year})",
                    f"{text} {year}", f"{self._random_word()}-{text}", f"{phrase} gegen {text.lower()}",
                    f"{text} {number} {phrase}",
                )
            )  # fmt: skip
        return text[:1].upper() + text[1:]

    def _random_numbers(self) -> str:
        """Returns a random text with a year, the number of a verse, an amount or a list of numbers."""
        year, first, second = (self._random.randint(*span) for span in ((1500, 2030), (1, 150), (1, 40)))
        word, end_year = self._random_word(), year + self._random.randint(1, 60)
        row = self._random.choice((", ", ",", "-")).join(str(first + step) for step in range(second % 4 + 3))
        return self._random.choice(
            (
                row, f"{word} {year}-{end_year}", f"{year}-{end_year}", f"{word}, {year}-{end_year}",
                f"{first}.000 {word}", f"{word} {first}:{second}", f"{word} {first}:{second}-{second + 5}",
                f"{year}-{end_year}: {word}", f"{year}: {self._random_phrase()}", f"{word} {first}-{second}",
                f"{word} x {self._random_word()} x {self._random_word()}",
            )
        )  # fmt: skip
