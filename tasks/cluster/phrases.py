"""Phrases of one to three words that stand together in titles, as the titles write them.

A phrase neither begins nor ends with a common word, a number or a fragment, and a single word is long enough
to be printed alone: "Premier League" and "Bible", never "of the", "PL" or "1's".
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

LONGEST_PHRASE = 3
SHORTEST_ALONE = 4  # letters of a word that is a phrase by itself
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")  # letters and digits, joined by apostrophe or hyphen
_JOINT = re.compile(r"[ &'’]*")  # between words of one phrase; colon, comma, dash, bracket part them
_FRAGMENT = re.compile(r"['’]\w?$|^[^aeiouyà-ÿ]+$|\d", re.IGNORECASE)  # Jamie's, Hlts, S3
_DECADE = re.compile(r"(?:19|20)?\d0s")
Phrase = tuple[str, ...]  # folded words


def words_of(text: str) -> list[str]:
    """The words of a text, as it writes them."""
    return _WORD.findall(text)


class Phrases:
    """Phrases of all titles, and of which titles each is."""

    def __init__(self, titles: Sequence[str], shows: Sequence[str]) -> None:
        self.shows = shows
        small: Counter[str] = Counter()
        spans = [[match.span() for match in _WORD.finditer(title)] for title in titles]
        for title, own in zip(titles, spans, strict=True):
            for (_, before), (start, end) in pairwise(own):
                if _JOINT.fullmatch(title[before:start]):
                    small[title[start:end].casefold()] += 1 if title[start].islower() else -1
        self.minor = {word for word, balance in small.items() if balance > 0}  # the, und: seldom capitalised
        self.of_title: list[dict[Phrase, str]] = [
            dict(self._find(title, own)) for title, own in zip(titles, spans, strict=True)
        ]
        self.counts = Counter(phrase for own in self.of_title for phrase in own)

    def _find(self, title: str, spans: list[tuple[int, int]]) -> Iterable[tuple[Phrase, str]]:
        words = [title[start:end] for start, end in spans]
        folded = [word.casefold() for word in words]
        sound = [not self._outer(word) for word in words]
        joined = [bool(_JOINT.fullmatch(title[left[1] : right[0]])) for left, right in pairwise(spans)]
        for first, word in enumerate(words):
            if not sound[first]:
                continue
            if (len(word) >= SHORTEST_ALONE and not word.isupper()) or _DECADE.fullmatch(word):
                yield (folded[first],), word
            for last in range(first + 1, min(first + LONGEST_PHRASE, len(words))):
                text = title[spans[first][0] : spans[last][1]]
                if not joined[last - 1] or words[last][0].isdigit():
                    break
                if sound[last] and not text.isupper():
                    yield tuple(folded[first : last + 1]), text

    def _outer(self, word: str) -> bool:
        """Whether no phrase begins or ends with it."""
        fragment = len(word) < 3 or (_FRAGMENT.search(word) and not _DECADE.fullmatch(word))
        return word.casefold() in self.minor or bool(fragment)

    def shared(self, rows: Sequence[int], least: int) -> dict[Phrase, list[int]]:
        """Phrases in at least so many different shows among some titles, with those titles."""
        found: dict[Phrase, list[int]] = {}
        for row in rows:
            for phrase in self.of_title[row]:
                found.setdefault(phrase, []).append(row)
        return {
            phrase: own
            for phrase, own in found.items()
            if len(own) >= least and len({self.shows[row] for row in own}) >= least
        }

    def written(self, phrase: Phrase, rows: Sequence[int]) -> str:
        """As most of these titles write it."""
        counts = Counter(self.of_title[row][phrase] for row in rows)
        text = min(counts, key=lambda form: (-counts[form], form))
        return text[:1].upper() + text[1:]
