"""Subwords: pieces of words that byte pair encoding learns from the training titles, by HuggingFace's tokenizers library.

The same code takes titles and words apart at training and at inference; the learnt model is one JSON text that lies in the
Vocabulary, in the Lexicon and in the served model. A piece is cut from the word itself, so that letters the model has never
seen are a piece too and none is lost. The first piece of a word begins with ``▁``.

References:
    Sennrich, Haddow, Birch. Neural Machine Translation of Rare Words with Subword Units. ACL 2016. https://aclanthology.org/P16-1162
"""

from __future__ import annotations

import functools
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Literal

from tasks.form import FORM
from tasks.tokenize.splitting import BLOCK, split_all_words, split_words
from tasks.tokenize.titles import parse_title, parse_titles
from tasks.tokenize.words import MARK, NGRAM

if TYPE_CHECKING:
    from tokenizers import Tokenizer

START = "▁"  # no word holds it: it is neither letter nor picture


@dataclass(frozen=True, kw_only=True)
class Subwords:
    """Pieces of words, learnt from the training titles."""

    __pydantic_config__ = FORM
    name: Literal["subwords"] = "subwords"
    minimum_ngram_titles: int = field(default=1, metadata={"description": "Training titles that must hold a piece for it to get a row", "ge": 1})
    pieces: int = field(default=8000, metadata={"description": "Different pieces to learn, single letters among them", "ge": 100, "le": 1_000_000})

    def fit(self, raw_titles: Iterable[str]) -> TrainedSubwords:
        """Learns pieces from training titles; the same titles in any order give the same pieces."""
        from tokenizers import Tokenizer, models, trainers

        words: Counter[str] = Counter()
        titles = iter(raw_titles)
        while block := list(itertools.islice(titles, BLOCK)):
            words.update(word for own in split_all_words([title.display for title in parse_titles(block)]) for word in own)
        learnt = Tokenizer(models.BPE())
        trainer = trainers.BpeTrainer(vocab_size=self.pieces, show_progress=False, special_tokens=[])  # pyright: ignore[reportCallIssue]
        learnt.train_from_iterator((START + word for word in sorted(words) for _ in range(min(words[word], MOST))), trainer)
        return TrainedSubwords(settings=self, model=json.dumps(json.loads(learnt.to_str()), ensure_ascii=False))


MOST = 50  # times that a word counts: titles repeat their commonest words thousands of times, and that teaches nothing more


@dataclass(frozen=True, kw_only=True)
class TrainedSubwords:
    """Subwords that have been learnt.

    Attributes:
        settings: What was asked for.
        model: JSON text of the tokenizers library.
    """

    settings: Subwords
    model: str

    @property
    def name(self) -> str:
        """Of the strategy."""
        return self.settings.name

    @property
    def minimum_ngram_titles(self) -> int:
        """Training titles that must hold a piece."""
        return self.settings.minimum_ngram_titles

    def tokens(self, raw: str) -> list[tuple[int, str]]:
        """Pieces and marks of a raw title as (kind, text)."""
        title = parse_title(raw)
        return [(NGRAM, piece) for word in split_words(title.display) for piece in self.pieces(word)] + [(MARK, mark) for mark in title.marks]

    def all_tokens(self, raw_titles: Sequence[str]) -> list[list[tuple[int, str]]]:
        """The same of many raw titles."""
        titles = parse_titles(raw_titles)
        words = split_all_words([title.display for title in titles])
        cut = {word: [(NGRAM, piece) for piece in self.pieces(word)] for word in {word for own in words for word in own}}
        return [[piece for word in own for piece in cut[word]] + [(MARK, mark) for mark in title.marks] for title, own in zip(titles, words, strict=True)]

    def pieces(self, word: str) -> list[str]:
        """A word cut into pieces; joined they are ``▁`` and the word."""
        text = START + word
        ends = [end for _, end in _opened(self.model).encode(text).offsets]
        cuts = sorted({0, *(end for end in ends if 0 < end < len(text)), len(text)})
        return [text[start:end] for start, end in itertools.pairwise(cuts)]

    def describe(self) -> dict[str, object]:
        """As JSON holds it."""
        return {**asdict(self.settings), "model": json.loads(self.model)}


@functools.lru_cache(maxsize=4)
def _opened(model: str) -> Tokenizer:
    from tokenizers import Tokenizer

    return Tokenizer.from_str(model)
