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
import unicodedata
from dataclasses import dataclass, field
from typing import Literal

from tasks.form import FORM
from tasks.tokenize.titles import COMBINING, parse_title

CONTEXT_KINDS = ("channel", "hour", "weekday", "duration", "manner")  # how a title airs: storage/catalogue/contexts.py
KINDS = ("word", "bigram", "ngram", "edge", "shape", "raw", "mark", *CONTEXT_KINDS)
WORD, BIGRAM, NGRAM, EDGE, SHAPE, RAW, MARK, CONTEXT = range(8)  # kinds from CONTEXT on are not of the title

_CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD_LETTERS = rf"[^\W_{_CJK}](?:[^\W_{_CJK}]|[{COMBINING}])*"
_EMOTICON = r"[:;=8][-o]?(?:[)(/]|[dp](?![^\W_]))"  # text is case-folded; the p of "csi:paris" is no tongue
_WORD = re.compile(rf"[#@](?:\w|[{COMBINING}])+|[{_CJK}]{{1,2}}|{_WORD_LETTERS}(?:['’ʼ]{_WORD_LETTERS})*|[\U0001f300-\U0001faff\u2600-\u27bf]|{_EMOTICON}")
_RAW = re.compile(rf"[^\W_](?:[^\W_]|[{COMBINING}])*|[^\w\s]")


@dataclass(frozen=True, kw_only=True)
class WordsAndNgrams:
    """Words, bigrams, character n-grams, edges, shape and raw form of a title."""

    __pydantic_config__ = FORM
    name: Literal["words_and_ngrams"] = "words_and_ngrams"
    shortest_ngram: int = field(default=3, metadata={"description": "Shortest character n-gram; the edges of the word count as characters", "ge": 1, "le": 10})
    longest_ngram: int = field(default=5, metadata={"description": "Longest character n-gram; below the shortest: none", "ge": 0, "le": 10})
    minimum_ngram_titles: int = field(default=2, metadata={"description": "Training titles that must hold an n-gram, bigram or edge for it to get a row", "ge": 1})

    def tokens(self, raw: str) -> list[tuple[int, str]]:
        """Tokens of a raw title as (kind, text), duplicates kept, in a fixed order."""
        title = parse_title(raw)
        words = split_words(title.display)
        found = [(WORD, word) for word in words]
        found += [(BIGRAM, f"{first} {second}") for first, second in itertools.pairwise(words)]
        low, high = self.shortest_ngram, self.longest_ngram
        for word in words:
            bounded = f"<{word}>"
            length = len(bounded)
            for n in range(low, min(high, length) + 1):
                found += [(NGRAM, bounded[start : start + n]) for start in range(length - n + 1)]
        if words:
            found += [(EDGE, f"^{words[0]}"), (EDGE, f"{words[-1]}$")]
        raws = _RAW.findall(title.display)
        found += [(SHAPE, f"len:{min(len(words), 10)}"), (SHAPE, f"chars:{min(len(title.display) // 4, 15)}"), (SHAPE, "shape:" + _shape(raws))]
        found += [(RAW, f"raw:{text}") for text in raws if not text.islower()]
        found += [(MARK, mark) for mark in title.marks]
        return found


@dataclass(frozen=True, kw_only=True)
class Words:
    """Words alone: the plain bag of the first design, for comparison."""

    __pydantic_config__ = FORM
    name: Literal["words"] = "words"
    minimum_ngram_titles: int = field(default=1, metadata={"description": "No n-grams here; kept at 1", "ge": 1, "le": 1})

    def tokens(self, raw: str) -> list[tuple[int, str]]:
        """Words and marks of a raw title as (kind, text)."""
        title = parse_title(raw)
        return [(WORD, word) for word in split_words(title.display)] + [(MARK, mark) for mark in title.marks]


Tokenizer = Words | WordsAndNgrams  # smaller set of fields first: tests/contracts/test_form.py


def split_words(text: str) -> list[str]:
    """Words of a text: NFKC, case-folded, apostrophes alike; hashtags, handles, emoji and emoticons whole; CJK by pairs."""
    plain = text.replace("´", "'").replace("`", "'")  # NFKC would make a space of the first
    return [match.replace("’", "'").replace("ʼ", "'") for match in _WORD.findall(unicodedata.normalize("NFKC", plain).casefold())]


def _shape(raws: list[str]) -> str:
    """What a title looks like: X a capitalised word, A all capitals, x lower case, 9 digits, punctuation as it is; at most six."""
    return "".join("9" if text.isdigit() else "A" if text.isupper() and len(text) > 1 else "X" if text[:1].isupper() else "x" if text.isalnum() else text for text in raws[:6])
