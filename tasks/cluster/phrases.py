"""Finds phrases of one to three adjacent words in titles, from which names of clusters are composed.

A phrase does not begin or end with a common word ("of"), a number, or a fragment of a word. A phrase of one
word has at least four letters. "Premier League" and "Bible" are phrases; "of the", "PL" and "1's" are not.
"""

import functools
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from storage.arrays import Ragged, offsets_of

MAX_WORDS = 3  # maximum number of words of a phrase
WORD_BITS = 21  # bits of a word number, for two million words; a phrase of three words has 63 bits
MIN_LETTERS = 4  # minimum number of letters of a phrase of one word
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")  # letters and digits, joined by apostrophe or hyphen
_SEPARATOR = re.compile(r"[ &'’]*")  # may separate the words of a phrase; colons, commas, brackets may not
_FRAGMENT = re.compile(r"['’]\w?$|^[^aeiouyà-ÿ]+$|\d", re.IGNORECASE)  # Jamie's, Hlts, S3
_DECADE = re.compile(r"(?:19|20)?\d0s")  # 80s, 1980s
Phrase = tuple[str, ...]  # case-folded words


def _word_spans(title: str) -> list[tuple[int, int]]:
    return [match.span() for match in _WORD.finditer(title)]


def words_of(text: str) -> list[str]:
    """Returns the words of a text without changing their case."""
    return _WORD.findall(text)


class Phrases:
    """Index of the phrases in all titles.

    A phrase is stored as one integer that contains the numbers of its words, because strings for a million
    titles would take gigabytes. The spelling of a phrase is read from a title when it is needed.

    Args:
        titles: All titles of the guide.
        shows: Key of the show of each title.
    """

    def __init__(self, titles: Sequence[str], shows: Sequence[str]) -> None:
        self.titles, self.shows = titles, shows
        case_balance: Counter[str] = Counter()
        for title in titles:
            for (_, previous_end), (start, end) in pairwise(_word_spans(title)):
                if _SEPARATOR.fullmatch(title[previous_end:start]):
                    case_balance[title[start:end].casefold()] += 1 if title[start].islower() else -1
        # words that are more often in lower case than capitalised, such as "the"
        self.common_words = {word for word, balance in case_balance.items() if balance > 0}
        self._word_numbers: dict[str, int] = {}  # number of each word, from 1
        keys, lengths = array("q"), array("q")
        for row in range(len(titles)):
            phrases = self.of_title(row)
            keys.extend(map(self._phrase_key, phrases))
            lengths.append(len(phrases))
        self._words = list(self._word_numbers)
        self._keys = Ragged(offsets_of(np.array(lengths, dtype=np.int64)), np.array(keys, dtype=np.int64))
        self._distinct, self._counts = np.unique(self._keys.values, return_counts=True)

    def of_title(self, row: int) -> dict[Phrase, str]:
        """Returns the phrases of a title, each with its spelling in the title."""
        return dict(self._find_phrases(self.titles[row]))

    def count(self, phrase: Phrase) -> int:
        """Returns the number of titles that contain a phrase of the index."""
        return int(self._counts[np.searchsorted(self._distinct, self._phrase_key(phrase))])

    def _phrase_key(self, phrase: Phrase) -> int:
        """Returns the integer that contains the word numbers of a phrase."""
        numbers = (self._word_numbers.setdefault(word, len(self._word_numbers) + 1) for word in phrase)
        return functools.reduce(lambda key, number: key << WORD_BITS | number, numbers, 0)

    def _phrase_of_key(self, key: int) -> Phrase:
        """Inverts ``_phrase_key``."""
        numbers = (key >> WORD_BITS * position & (1 << WORD_BITS) - 1 for position in range(MAX_WORDS))
        return tuple(self._words[position - 1] for position in numbers if position)[::-1]

    def _find_phrases(self, title: str) -> Iterable[tuple[Phrase, str]]:
        """Yields the phrases in a text and their spellings."""
        spans = _word_spans(title)
        words = [title[start:end] for start, end in spans]
        folded_words = [word.casefold() for word in words]
        can_be_edge = [self._can_be_edge(word) for word in words]
        gaps = [title[left[1] : right[0]] for left, right in pairwise(spans)]
        is_adjacent = [bool(_SEPARATOR.fullmatch(gap)) for gap in gaps]
        for first, word in enumerate(words):
            if not can_be_edge[first]:
                continue
            if (len(word) >= MIN_LETTERS and not word.isupper()) or _DECADE.fullmatch(word):
                yield (folded_words[first],), word
            for last in range(first + 1, min(first + MAX_WORDS, len(words))):
                text = title[spans[first][0] : spans[last][1]]
                if not is_adjacent[last - 1] or words[last][0].isdigit():
                    break
                if can_be_edge[last] and not text.isupper():
                    yield tuple(folded_words[first : last + 1]), text

    def _can_be_edge(self, word: str) -> bool:
        """Returns whether a phrase may begin or end with a word."""
        is_fragment = len(word) < 3 or (_FRAGMENT.search(word) and not _DECADE.fullmatch(word))
        return not is_fragment and word.casefold() not in self.common_words

    def find_shared(self, rows: Sequence[int], min_count: int) -> dict[Phrase, list[int]]:
        """Finds phrases that several of some titles have in common.

        Args:
            rows: Row numbers of the titles that are searched.
            min_count: Minimum number of titles, and of different shows, that contain a phrase.

        Returns:
            A dictionary from each phrase to the row numbers of the titles that contain it.
        """
        rows_by_key: dict[int, list[int]] = {}
        for row in rows:
            for key in self._keys[row].tolist():
                rows_by_key.setdefault(key, []).append(row)
        return {
            self._phrase_of_key(key): phrase_rows
            for key, phrase_rows in rows_by_key.items()
            if len(phrase_rows) >= min_count and len({self.shows[row] for row in phrase_rows}) >= min_count
        }

    def most_common_spelling(self, phrase: Phrase, rows: Sequence[int]) -> str:
        """Returns the most common spelling of a phrase in the titles ``rows``, with its first letter in upper
        case.
        """
        counts = Counter(self.of_title(row)[phrase] for row in rows)
        text = min(counts, key=lambda spelling: (-counts[spelling], spelling))
        return text[:1].upper() + text[1:]
