"""Words of titles, and the phrases that they form: a word with what mostly stands beside it (Grand Prix)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

JOINED = 0.75  # of a word's titles in the cluster: the word beside it belongs to its phrase
LONGEST_PHRASE = 3
WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")  # letters and digits, joined by apostrophe or hyphen
_JOINT = re.compile(r"[ /&+.'’-]*")  # between words of one phrase; a colon, a comma or a bracket parts them


@dataclass(frozen=True)
class Phrase:
    """One or more words that stand together: as written, folded, and the titles that hold it."""

    text: str
    words: tuple[str, ...]
    rows: frozenset[int]


class Words:
    """Words of all titles: where each stands in its title."""

    def __init__(self, titles: Sequence[str]) -> None:
        self.titles = titles
        self.spans = [[match.span() for match in WORD.finditer(title)] for title in titles]
        self.folded = [
            [title[begin:end].casefold() for begin, end in own]
            for title, own in zip(titles, self.spans, strict=True)
        ]

    def beside(self, row: int, place: int, side: int) -> str:
        """The word at ``place + side``, beside a phrase; empty where the title ends or a mark parts them."""
        other = place + side
        if not 0 <= other < len(self.spans[row]):
            return ""
        first, last = sorted((other, other + (1 if side < 0 else -1)))
        between = self.titles[row][self.spans[row][first][1] : self.spans[row][last][0]]
        return self.folded[row][other] if _JOINT.fullmatch(between) else ""

    def text(self, row: int, first: int, last: int) -> str:
        """Words ``first`` to ``last`` of a title, with what stands between them."""
        return self.titles[row][self.spans[row][first][0] : self.spans[row][last][1]]


def find_phrases(words: Words, own: list[int], telling: list[str], common: set[str]) -> list[Phrase]:
    """The telling words of a cluster, each with what it mostly stands beside; no word in two of them.

    Args:
        words: Of all titles.
        own: The cluster's titles.
        telling: Folded words, most telling first.
        common: Words at which no phrase begins or ends.
    """
    found: list[Phrase] = []
    for word in telling:
        places = [(row, words.folded[row].index(word)) for row in own if word in words.folded[row]]
        phrase = _grow(words, places, common)
        if not any(set(phrase.words) & set(other.words) for other in found):
            found.append(phrase)
    return found


def _grow(words: Words, places: list[tuple[int, int]], common: set[str]) -> Phrase:
    """A word at these places (title, number of the word) with what mostly stands beside it."""
    enough = max(2.0, JOINED * len(places))
    joined, begin, end = places, 0, 0
    while end - begin + 1 < LONGEST_PHRASE:
        beside = Counter(
            (side, word)
            for row, at in joined
            for side in (begin - 1, end + 1)
            if (word := words.beside(row, at, side))
        )
        (side, word), times = min(beside.items(), key=lambda vote: (-vote[1], vote[0]), default=((0, ""), 0))
        if times < enough:
            break
        joined = [(row, at) for row, at in joined if words.beside(row, at, side) == word]
        begin, end = min(begin, side), max(end, side)
    row, at = joined[0]
    while begin < 0 and _ends_none(words.folded[row][at + begin], common):
        begin += 1
    while end > 0 and _ends_none(words.folded[row][at + end], common):
        end -= 1
    phrase = words.folded[row][at + begin : at + end + 1]
    held = [(row, at) for row, at in places if words.folded[row][max(0, at + begin) : at + end + 1] == phrase]
    text = most_written([(words.text(row, at + begin, at + end), words.titles[row]) for row, at in held])
    return Phrase(text, tuple(phrase), frozenset(row for row, _ in held))


def _ends_none(word: str, common: set[str]) -> bool:
    """Whether no phrase begins or ends with the word: an article, a preposition, a year."""
    return word in common or word.isdigit()


def most_written(forms: list[tuple[str, str]]) -> str:
    """The commonest form of (form, title); titles all in capitals count only where there are no others."""
    quiet = [form for form, title in forms if not title.isupper()]
    counts = Counter(quiet or [form for form, _ in forms])
    return min(counts, key=lambda form: (-counts[form], form))
