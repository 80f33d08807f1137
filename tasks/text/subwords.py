"""Splits words of titles into subwords by byte pair encoding, with the library HuggingFace tokenizers.

The tokenizer is trained on the training titles and is stored with the model as JSON. A part of a word is
called a piece, and the first piece of a word begins with ``▁``. A letter that does not occur in the training
titles becomes a piece, too.

References:
    Sennrich, Haddow, Birch. Neural Machine Translation of Rare Words with Subword Units. ACL 2016.
    https://aclanthology.org/P16-1162
"""

from __future__ import annotations

import functools
import itertools
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from tasks.form import configurable, setting
from tasks.text.splitting import split_words
from tasks.text.titles import parse_title
from tasks.text.words import MARK, NGRAM, TitleTokenizer, Token

if TYPE_CHECKING:
    from tokenizers import Tokenizer

START = "▁"  # marks the start of a word; words never contain this character
MAX_REPEATS = 50  # maximum count of a word in training; higher counts only take more time


@configurable
class Subwords:
    """Tokenizer (not yet trained) that splits words into frequent pieces by byte pair encoding."""

    name: Literal["subwords"] = "subwords"
    minimum_ngram_titles: int = setting(
        1, "Training titles in which a piece must occur to get an embedding", ge=1
    )
    pieces: int = setting(
        8000, "Number of distinct pieces to learn, including single letters", ge=100, le=1_000_000
    )

    def fit(self, raw_titles: Iterable[str]) -> TrainedSubwords:
        """Trains a tokenizer on raw titles. The result does not depend on the order of the titles."""
        from tokenizers import Tokenizer, models, trainers

        words = Counter(word for raw in raw_titles for word in split_words(parse_title(raw).display))
        repeated_words = (
            START + word for word in sorted(words) for _ in range(min(words[word], MAX_REPEATS))
        )
        tokenizer = Tokenizer(models.BPE())
        trainer = trainers.BpeTrainer(vocab_size=self.pieces, show_progress=False, special_tokens=[])  # pyright: ignore[reportCallIssue]
        tokenizer.train_from_iterator(repeated_words, trainer)
        model = json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False)
        return TrainedSubwords(settings=self, model=model)


@dataclass(frozen=True, kw_only=True)
class TrainedSubwords(TitleTokenizer):
    """Trained subword tokenizer. ``model`` is its JSON in the format of the library tokenizers."""

    settings: Subwords
    model: str

    @property
    def name(self) -> str:
        """Returns the name by which settings select this tokenizer."""
        return self.settings.name

    @property
    def minimum_ngram_titles(self) -> int:
        """Returns the number of training titles in which a piece must occur to get an embedding."""
        return self.settings.minimum_ngram_titles

    def tokens(self, raw: str) -> list[Token]:
        """Returns the tokens of a raw title: the pieces of its words, and its marks such as "<new>"."""
        title = parse_title(raw)
        words = split_words(title.display)
        pieces = [(NGRAM, piece) for word in words for piece in _split_word(self.model, word)]
        return pieces + [(MARK, mark) for mark in title.marks]

    def describe(self) -> dict[str, object]:
        """Returns the settings and the trained model as a dictionary that can be written as JSON."""
        return {**asdict(self.settings), "model": json.loads(self.model)}


@functools.lru_cache(maxsize=65536)
def _split_word(model: str, word: str) -> list[str]:
    text = START + word
    ends = [end for _, end in _load_tokenizer(model).encode(text).offsets]
    cuts = sorted({0, *(end for end in ends if 0 < end < len(text)), len(text)})
    return [text[start:end] for start, end in itertools.pairwise(cuts)]


@functools.lru_cache(maxsize=4)
def _load_tokenizer(model: str) -> Tokenizer:
    from tokenizers import Tokenizer

    return Tokenizer.from_str(model)
