"""Characters alone: no words, so that spelling is all a title has. For comparison, and for scripts without spaces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tasks.form import FORM
from tasks.tokenize.splitting import split_all_words, split_words
from tasks.tokenize.titles import Title, parse_title, parse_titles
from tasks.tokenize.words import MARK, NGRAM


@dataclass(frozen=True, kw_only=True)
class Characters:
    """Runs of characters of a title, spaces between its words counted, from one character on.

    The runs of length 1, in order, are the title's words with ``_`` between them.
    """

    __pydantic_config__ = FORM
    name: Literal["characters"] = "characters"
    minimum_ngram_titles: int = field(default=2, metadata={"description": "Training titles that must hold a run of characters for it to get a row", "ge": 1})
    longest_run: int = field(default=5, metadata={"description": "Characters in the longest run", "ge": 1, "le": 10})

    def fit(self, raw_titles: Iterable[str]) -> Characters:
        """Nothing is learnt."""
        return self

    def tokens(self, raw: str) -> list[tuple[int, str]]:
        """Runs of characters and marks of a raw title as (kind, text), shortest runs first."""
        title = parse_title(raw)
        return self._tokens(title, split_words(title.display))

    def all_tokens(self, raw_titles: Sequence[str]) -> list[list[tuple[int, str]]]:
        """The same of many raw titles."""
        titles = parse_titles(raw_titles)
        return [self._tokens(title, words) for title, words in zip(titles, split_all_words([title.display for title in titles]), strict=True)]

    def _tokens(self, title: Title, words: list[str]) -> list[tuple[int, str]]:
        text = "_".join(words)
        runs = [(NGRAM, text[start : start + n]) for n in range(1, min(self.longest_run, len(text)) + 1) for start in range(len(text) - n + 1)]
        return runs + [(MARK, mark) for mark in title.marks]
