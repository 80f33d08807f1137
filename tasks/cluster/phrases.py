"""Phrases of one to three words that stand together in titles, as the titles write them.

A phrase neither begins nor ends with a common word, a number or a fragment, and a single word is long enough
to be printed alone: "Premier League" and "Bible", never "of the", "PL" or "1's".
"""

import functools
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from storage.arrays import Ragged, offsets_of

LONGEST_PHRASE = 3
WORD_BITS = 21  # of a word's number: three make a phrase of 63 bits, of two million words
SHORTEST_ALONE = 4  # letters of a word that is a phrase by itself
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")  # letters and digits, joined by apostrophe or hyphen
_JOINT = re.compile(r"[ &'’]*")  # between words of one phrase; colon, comma, dash, bracket part them
_FRAGMENT = re.compile(r"['’]\w?$|^[^aeiouyà-ÿ]+$|\d", re.IGNORECASE)  # Jamie's, Hlts, S3
_DECADE = re.compile(r"(?:19|20)?\d0s")
Phrase = tuple[str, ...]  # folded words


def _spans(title: str) -> list[tuple[int, int]]:
    return [match.span() for match in _WORD.finditer(title)]


def words_of(text: str) -> list[str]:
    """The words of a text, as it writes them."""
    return _WORD.findall(text)


class Phrases:
    """Phrases of all titles, and of which titles each is.

    A phrase is kept as a number, its words' numbers side by side: as texts those of a million titles would
    take gigabytes. What a title's phrases look like is found again where it is asked for.
    """

    def __init__(self, titles: Sequence[str], shows: Sequence[str]) -> None:
        self.titles, self.shows = titles, shows
        small: Counter[str] = Counter()
        for title in titles:
            for (_, before), (start, end) in pairwise(_spans(title)):
                if _JOINT.fullmatch(title[before:start]):
                    small[title[start:end].casefold()] += 1 if title[start].islower() else -1
        self.minor = {word for word, balance in small.items() if balance > 0}  # the, und: seldom capitalised
        self._places: dict[str, int] = {}  # of words, from 1 on
        keys, lengths = array("q"), array("q")
        for row in range(len(titles)):
            own = self.of_title(row)
            keys.extend(map(self._key, own))
            lengths.append(len(own))
        self._words = list(self._places)
        self._keys = Ragged(offsets_of(np.array(lengths, dtype=np.int64)), np.array(keys, dtype=np.int64))
        self._distinct, self._counts = np.unique(self._keys.values, return_counts=True)

    def of_title(self, row: int) -> dict[Phrase, str]:
        """The phrases of a title, as it writes them."""
        return dict(self._find(self.titles[row]))

    def count(self, phrase: Phrase) -> int:
        """How many titles hold a phrase that one of them holds."""
        return int(self._counts[np.searchsorted(self._distinct, self._key(phrase))])

    def _key(self, phrase: Phrase) -> int:
        places = (self._places.setdefault(word, len(self._places) + 1) for word in phrase)
        return functools.reduce(lambda key, place: key << WORD_BITS | place, places, 0)

    def _phrase(self, key: int) -> Phrase:
        places = (key >> WORD_BITS * place & (1 << WORD_BITS) - 1 for place in range(LONGEST_PHRASE))
        return tuple(self._words[place - 1] for place in places if place)[::-1]

    def _find(self, title: str) -> Iterable[tuple[Phrase, str]]:
        spans = _spans(title)
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
        found: dict[int, list[int]] = {}
        for row in rows:
            for key in self._keys[row].tolist():
                found.setdefault(key, []).append(row)
        return {
            self._phrase(key): own
            for key, own in found.items()
            if len(own) >= least and len({self.shows[row] for row in own}) >= least
        }

    def written(self, phrase: Phrase, rows: Sequence[int]) -> str:
        """As most of these titles write it."""
        counts = Counter(self.of_title(row)[phrase] for row in rows)
        text = min(counts, key=lambda form: (-counts[form], form))
        return text[:1].upper() + text[1:]
