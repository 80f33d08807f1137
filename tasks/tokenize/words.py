"""Title to tokens, each of a kind. The same code at training and at inference.

Kinds (weights of the kinds belong to the encoder, not here):

==========  ==================================================  ===========================
word        case-folded NFKC words, hashtags, emoji             ``grey's``, ``#mitdermaus``
bigram      two words in a row                                  ``kitchen nightmares``
ngram       characters n to m of ``<word>``                     ``<tat``, ``ort>``
edge        first and last word                                 ``^tatort``, ``nights$``
shape       how many words, what the letters look like          ``len:3``, ``shape:Xx_X``
raw         words and punctuation as written                    ``NYC``, ``raw::``
mark        what was glued to the title                         ``<episode>``
==========  ==================================================  ===========================

Why the last ones: on shows never seen before, length and shape gave +.010, punctuation and case +.009, bigrams +.007
on the mean of accuracy, MRR and P10 (docs/LOG.md has our own figures).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tasks.form import FORM
from tasks.tokenize.letters import COMBINING
from tasks.tokenize.splitting import split_all_words, split_words
from tasks.tokenize.titles import Title, parse_title, parse_titles

CONTEXT_KINDS = ("channel", "hour", "weekday", "duration", "manner")  # how a title airs: storage/catalogue/contexts.py
KINDS = ("word", "bigram", "ngram", "edge", "shape", "raw", "mark", *CONTEXT_KINDS)
WORD, BIGRAM, NGRAM, EDGE, SHAPE, RAW, MARK, CONTEXT = range(8)  # kinds from CONTEXT on are not of the title

_RAW = re.compile(rf"[^\W_](?:[^\W_]|[{COMBINING}])*|[^\w\s]")


@dataclass(frozen=True, kw_only=True)
class WordsAndNgrams:
    """Words, bigrams, character n-grams, edges, shape and raw form of a title."""

    __pydantic_config__ = FORM
    name: Literal["words_and_ngrams"] = "words_and_ngrams"
    shortest_ngram: int = field(default=3, metadata={"description": "Shortest character n-gram; the edges of the word count as characters", "ge": 1, "le": 10})
    longest_ngram: int = field(default=5, metadata={"description": "Longest character n-gram; below the shortest: none", "ge": 0, "le": 10})
    minimum_ngram_titles: int = field(default=2, metadata={"description": "Training titles that must hold an n-gram, bigram or edge for it to get a row", "ge": 1})

    def fit(self, raw_titles: Iterable[str]) -> WordsAndNgrams:
        """Nothing is learnt."""
        return self

    def tokens(self, raw: str) -> list[tuple[int, str]]:
        """Tokens of a raw title as (kind, text), duplicates kept, in a fixed order."""
        title = parse_title(raw)
        return self._tokens(title, split_words(title.display), {})

    def all_tokens(self, raw_titles: Sequence[str]) -> list[list[tuple[int, str]]]:
        """Tokens of many raw titles: equal to those of each, several times as fast."""
        titles = parse_titles(raw_titles)
        memo: dict[str, list[tuple[int, str]]] = {}
        return [self._tokens(title, words, memo) for title, words in zip(titles, split_all_words([title.display for title in titles]), strict=True)]

    def _tokens(self, title: Title, words: list[str], memo: dict[str, list[tuple[int, str]]]) -> list[tuple[int, str]]:
        found = [(WORD, word) for word in words]
        found += [(BIGRAM, f"{first} {second}") for first, second in itertools.pairwise(words)]
        for word in words:
            if word not in memo:
                memo[word] = self._ngrams(word)
            found += memo[word]
        if words:
            found += [(EDGE, f"^{words[0]}"), (EDGE, f"{words[-1]}$")]
        raws = _RAW.findall(title.display)
        found += [(SHAPE, f"len:{min(len(words), 10)}"), (SHAPE, f"chars:{min(len(title.display) // 4, 15)}"), (SHAPE, "shape:" + _shape(raws))]
        found += [(RAW, f"raw:{text}") for text in raws if not text.islower()]
        found += [(MARK, mark) for mark in title.marks]
        return found

    def _ngrams(self, word: str) -> list[tuple[int, str]]:
        bounded = f"<{word}>"
        length = len(bounded)
        lengths = range(self.shortest_ngram, min(self.longest_ngram, length) + 1)
        return [(NGRAM, bounded[start : start + n]) for n in lengths for start in range(length - n + 1)]


@dataclass(frozen=True, kw_only=True)
class Words:
    """Words alone: the plain bag of the first design, for comparison."""

    __pydantic_config__ = FORM
    name: Literal["words"] = "words"
    minimum_ngram_titles: int = field(default=1, metadata={"description": "No n-grams here; kept at 1", "ge": 1, "le": 1})

    def fit(self, raw_titles: Iterable[str]) -> Words:
        """Nothing is learnt."""
        return self

    def tokens(self, raw: str) -> list[tuple[int, str]]:
        """Words and marks of a raw title as (kind, text)."""
        title = parse_title(raw)
        return [(WORD, word) for word in split_words(title.display)] + [(MARK, mark) for mark in title.marks]

    def all_tokens(self, raw_titles: Sequence[str]) -> list[list[tuple[int, str]]]:
        """The same of many raw titles."""
        titles = parse_titles(raw_titles)
        words = split_all_words([title.display for title in titles])
        return [[(WORD, word) for word in own] + [(MARK, mark) for mark in title.marks] for title, own in zip(titles, words, strict=True)]


def _shape(raws: list[str]) -> str:
    """What a title looks like: X a capitalised word, A all capitals, x lower case, 9 digits, punctuation as it is; at most six."""
    return "".join("9" if text.isdigit() else "A" if text.isupper() and len(text) > 1 else "X" if text[:1].isupper() else "x" if text.isalnum() else text for text in raws[:6])
