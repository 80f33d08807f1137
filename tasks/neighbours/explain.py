"""Why two titles are near: what each pair of their words gives to the cosine, and what a title is near without a word.

A title's vector is a weighted sum of its tokens' rows, brought to unit norm, so the cosine of two titles is a sum over
pairs of words:

    cos(A, B) = Σ_i Σ_j  a_i · b_j / (|A| |B|),   a_i the part of A's sum that belongs to its word i

To a word belong its own row, its n-grams, its edge marks, how it is written, and half of each of its bigrams; length,
shape and what was glued to the title make a part of their own, "(form)". The parts add up to the cosine exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional as F

from storage.arrays import Ragged
from tasks.augment.lexicon import Lexicon
from tasks.neighbours.search import SearchError, TitleSearch
from tasks.preprocess.bags import Bagger
from tasks.tokenize.titles import parse_title
from tasks.tokenize.words import BIGRAM, EDGE, NGRAM, RAW, WORD, split_words

FORM = "(form)"  # the part of a title that is no word


@dataclass(frozen=True, kw_only=True)
class WordPair:
    """A word of each title, and what the pair adds to the cosine (below 0: keeps them apart)."""

    left: str
    right: str
    contribution: float


@dataclass(frozen=True, kw_only=True)
class Without:
    """What happens when a word of the first title is taken away.

    Attributes:
        word: The word, as written.
        cosine: Of the rest with the second title.
        rank: Place of the second title among those nearest to the rest, from 1; None where the guide does not have it, or
            nothing is known of the rest.
        nearest: The titles then nearest.
    """

    word: str
    cosine: float
    rank: int | None
    nearest: list[str]


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Why two titles are as near as they are.

    Attributes:
        cosine: Of the two.
        rank: Place of the second among those nearest to the first, from 1; None where the guide does not have it.
        pairs: Largest contribution first; they add up to the cosine.
        without: The first title less each of its words in turn; empty for a title of one word.
    """

    left: str
    right: str
    cosine: float
    rank: int | None
    pairs: list[WordPair]
    without: list[Without]


def explain(search: TitleSearch, left: str, right: str, *, nearest: int = 3) -> Explanation:
    """Takes the nearness of two titles apart.

    Args:
        search: Of the model that serves.
        left: As a guide would have it; the guide need not know it.
        right: The other.
        nearest: Titles named for the first title less a word.

    Raises:
        SearchError: Nothing of one of the titles is known.
    """
    (words, parts), (others, their_parts) = (title_parts(search.lexicon, title) for title in (left, right))
    length = np.linalg.norm(parts.sum(axis=0)) * np.linalg.norm(their_parts.sum(axis=0))
    if not length:
        unknown = left if not parts.any() else right
        raise SearchError(f"nothing is known of the title {unknown!r}: none of its words or letter sequences is in the guide. Try another spelling")
    table = parts @ their_parts.T / length  # (words, others)
    pairs = [WordPair(left=one, right=other, contribution=round(float(table[i, j]), 4)) for i, one in enumerate(words) for j, other in enumerate(others)]
    written = parse_title(left).display.split()
    rests = [" ".join(written[:place] + written[place + 1 :]) for place in range(len(written))] if len(written) > 1 else []
    without = [
        Without(word=word, cosine=round(cosine, 4), rank=rank, nearest=titles)
        for word, (cosine, rank, titles) in zip(written, (_look(search, rest, left, right, nearest) for rest in rests), strict=False)
    ]
    return Explanation(
        left=left,
        right=right,
        cosine=round(float(table.sum()), 4),
        rank=_look(search, left, left, right, nearest)[1],
        pairs=sorted(pairs, key=lambda pair: -pair.contribution),
        without=without,
    )


def title_parts(lexicon: Lexicon, title: str) -> tuple[list[str], np.ndarray]:
    """Words of a title, "(form)" last, and the part of its vector that belongs to each.

    Args:
        lexicon: Of the model.
        title: As a guide would have it.

    Returns:
        Words, and float64, shape (words, dim): their sum, at unit norm, is ``lexicon.embed([title])[0]``.
    """
    words, _, parts = parts_of(lexicon, [title])
    return words[0], parts.astype(np.float64)


def parts_of(lexicon: Lexicon, titles: Sequence[str]) -> tuple[list[list[str]], np.ndarray, np.ndarray]:
    """The same for many titles at once.

    Args:
        lexicon: Of the model.
        titles: As a guide would have them.

    Returns:
        Words of each title, "(form)" last; int64 offsets, shape (titles + 1,); and float32 parts, shape (all words, dim):
        those of title i are ``parts[offsets[i]:offsets[i + 1]]``, all zero where nothing of it is known.
    """
    words = [list(dict.fromkeys(split_words(parse_title(title).display))) for title in titles]
    tokens = [[token for token in lexicon.tokenizer.tokens(title) if token in lexicon.ids or token[0] == WORD] for title in titles]
    unseen = {text: place for place, text in enumerate(dict.fromkeys(token[1] for own in tokens for token in own if token not in lexicon.ids))}
    rows, kinds = lexicon.rows, lexicon.kinds
    if unseen:
        vectors, found = lexicon.ngrams.vectors(list(unseen))
        gone = {word for word, known in zip(unseen, found, strict=True) if not known}
        tokens = [[token for token in own if token in lexicon.ids or token[1] not in gone] for own in tokens]
        rows, kinds = np.concatenate([rows, vectors]), np.concatenate([kinds, np.full(len(unseen), WORD, dtype=np.int8)])
    tokens = [own if any(kind in (WORD, NGRAM) for kind, _ in own) else [] for own in tokens]
    offsets = np.concatenate([[0], np.cumsum([len(own) + 1 for own in words])]).astype(np.int64)
    entries = [[lexicon.ids[token] if token in lexicon.ids else len(lexicon.rows) + unseen[token[1]] for token in own] for own in tokens]
    owners = [_owners(token, own_words) for own, own_words in zip(tokens, words, strict=True) for token in own]
    bags = Bagger(kinds).bags(Ragged.from_rows(entries, dtype=np.int64))
    shares = np.array([len(own) for own in owners], dtype=np.int64)
    part = np.array([owner for own in owners for owner in own], dtype=np.int64) + np.repeat(offsets[bags.titles.numpy()], shares)
    order = np.argsort(part, kind="stable")
    with torch.inference_mode():
        values = torch.from_numpy(np.repeat(lexicon.encoder.values(bags).numpy() / np.maximum(shares, 1).astype(np.float32), shares)[order])
        entry = torch.from_numpy(np.repeat(bags.ids[bags.tokens].numpy(), shares)[order])
        starts = torch.from_numpy(np.searchsorted(part[order], np.arange(offsets[-1] + 1)))
        parts = F.embedding_bag(entry, torch.from_numpy(rows), starts, mode="sum", per_sample_weights=values, include_last_offset=True)
    return [[*own, FORM] for own in words], offsets, parts.numpy()


def _owners(token: tuple[int, str], words: list[str]) -> list[int]:
    """Places of the words that a token belongs to; the place after the last is the title's form."""
    kind, text = token
    if kind == WORD:
        found = [place for place, word in enumerate(words) if word == text]
    elif kind == BIGRAM:
        found = [place for place, word in enumerate(words) if word in text.split(" ")]
    elif kind == NGRAM:
        found = [place for place, word in enumerate(words) if text in f"<{word}>"]
    elif kind == EDGE:
        found = [place for place, word in enumerate(words) if text in (f"^{word}", f"{word}$")]
    elif kind == RAW:
        found = [place for place, word in enumerate(words) if text.removeprefix("raw:").casefold() == word]
    else:
        found = []
    return found or [len(words)]


def _look(search: TitleSearch, asked: str, left: str, right: str, nearest: int) -> tuple[float, int | None, list[str]]:
    """Cosine with ``right``, its rank among the guide's titles, and the nearest titles; the show of ``left`` stays out."""
    asked_vector, right_vector = search.lexicon.embed([asked, right])
    if not asked_vector.any():
        return 0.0, None, []
    cosines = search.vectors @ asked_vector
    shows = np.array(search.columns["show_key"])
    keys = parse_title(left).show_key, parse_title(right).show_key
    cosines[shows == keys[0]] = -np.inf
    place = np.flatnonzero((shows == keys[1]) & (cosines > -np.inf))
    rank = int((cosines > cosines[place].max()).sum()) + 1 if len(place) else None
    order = np.argsort(-cosines, kind="stable")[:nearest]
    return float(asked_vector @ right_vector), rank, [search.columns["title"][row] for row in order if cosines[row] > 0]
