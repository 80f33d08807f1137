"""Subword tokenizer: byte pair encoding of words, trained on the training titles with HuggingFace tokenizers.

The trained model is a JSON text, which the Vocabulary, the title encoder and the served model contain. A
piece is a part of a word. Letters that the model does not know become pieces as well, so no letter is lost.
The first piece of a word begins with ``▁``.

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

START = "▁"  # never occurs in a word
MAX_REPEATS = 50  # maximum count of a word in training; higher counts take time and do not change the result


@configurable
class Subwords:
    """Subword tokenizer that is trained on the training titles."""

    name: Literal["subwords"] = "subwords"
    minimum_ngram_titles: int = setting(
        1, "Training titles in which a piece must occur to get an embedding", ge=1
    )
    pieces: int = setting(
        8000, "Number of distinct pieces to learn, including single letters", ge=100, le=1_000_000
    )

    def fit(self, raw_titles: Iterable[str]) -> TrainedSubwords:
        """Trains on raw titles; the result does not depend on their order."""
        from tokenizers import Tokenizer, models, trainers

        words = Counter(word for raw in raw_titles for word in split_words(parse_title(raw).display))
        repeated = (START + word for word in sorted(words) for _ in range(min(words[word], MAX_REPEATS)))
        tokenizer = Tokenizer(models.BPE())
        trainer = trainers.BpeTrainer(vocab_size=self.pieces, show_progress=False, special_tokens=[])  # pyright: ignore[reportCallIssue]
        tokenizer.train_from_iterator(repeated, trainer)
        model = json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False)
        return TrainedSubwords(settings=self, model=model)


@dataclass(frozen=True, kw_only=True)
class TrainedSubwords(TitleTokenizer):
    """A trained subword tokenizer; ``model`` is the JSON text of the tokenizers library."""

    settings: Subwords
    model: str

    @property
    def name(self) -> str:
        """Name of the strategy."""
        return self.settings.name

    @property
    def minimum_ngram_titles(self) -> int:
        """Minimum number of training titles in which a piece must occur."""
        return self.settings.minimum_ngram_titles

    def tokens(self, raw: str) -> list[Token]:
        """Returns the pieces and marks of a raw title."""
        title = parse_title(raw)
        words = split_words(title.display)
        pieces = [(NGRAM, piece) for word in words for piece in _pieces(self.model, word)]
        return pieces + [(MARK, mark) for mark in title.marks]

    def describe(self) -> dict[str, object]:
        """Returns a JSON-serializable description."""
        return {**asdict(self.settings), "model": json.loads(self.model)}


@functools.lru_cache(maxsize=65536)
def _pieces(model: str, word: str) -> list[str]:
    text = START + word
    ends = [end for _, end in _load_tokenizer(model).encode(text).offsets]
    cuts = sorted({0, *(end for end in ends if 0 < end < len(text)), len(text)})
    return [text[start:end] for start, end in itertools.pairwise(cuts)]


@functools.lru_cache(maxsize=4)
def _load_tokenizer(model: str) -> Tokenizer:
    from tokenizers import Tokenizer

    return Tokenizer.from_str(model)
