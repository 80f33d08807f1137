"""Parts of titles: whose words, meaning and airing a similarity vector is made of.

A similarity vector is the unit-norm pair of what a title means, m, and of the vector of its words and how
it airs, v = normalise(bag + s), where s is the learnt layer's answer to the meaning (tasks/encoder/bags.py):

    [w m ‖ v] = Σ_word [0 ‖ bag_word] / r + [w m ‖ s / r] + Σ_kind [0 ‖ bag_kind] / r,     r = |bag + s|

Where vectors have the nearest slot of a memory beside v (``beside_slot``), that is one part more.
To a word belong its row, its character n-grams, its marks as first or last word, and half of each pair of
words that it is in; what is left of the text is its form.
"""

import itertools
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch

from storage.arrays import Ragged, unit_rows
from storage.sums import sum_bags
from tasks.encoder.bags import SMALLEST, Bagger
from tasks.encoder.meaning import WEIGHT
from tasks.encoder.title_encoder import TitleEncoder, beside_slot
from tasks.text.titles import parse_title
from tasks.text.words import (
    BIGRAM,
    CONTEXT,
    CONTEXT_KINDS,
    EDGE,
    KINDS,
    NGRAM,
    RAW,
    WORD,
    Token,
    split_words,
)

FORM, MEANING, MEMORY = "(form)", "(meaning)", "(memory)"
NO_WORDS = (FORM, MEANING, *(f"({kind})" for kind in CONTEXT_KINDS), MEMORY)  # behind the words
_AIRING = {KINDS.index(kind): NO_WORDS.index(f"({kind})") for kind in CONTEXT_KINDS}


def title_parts(
    encoder: TitleEncoder, title: str, context: Sequence[str] = (), dense: np.ndarray | None = None
) -> tuple[list[str], np.ndarray]:
    """Parts of one title, NO_WORDS last: their names, and float64 (parts, meaning + dim)."""
    names, _, parts = parts_of(encoder, [title], [context], dense)
    return names[0], parts.astype(np.float64)


def parts_of(
    encoder: TitleEncoder,
    titles: Sequence[str],
    contexts: Sequence[Sequence[str]] | None = None,
    dense: np.ndarray | None = None,
    known: Ragged | None = None,
) -> tuple[list[list[str]], np.ndarray, np.ndarray]:
    """Parts of raw titles whose sums, at unit norm, are ``encoder.similarity``.

    Args:
        encoder: Whose vectors they are.
        titles: Raw titles.
        contexts: Tokens of how each airs; None: the titles alone.
        dense: x of each, float32 (titles, features); that of the titles if None.
        known: Ids of their tokens, as in ``TitleEncoder.embed_with_context``.

    Returns:
        Names of each title's parts, its words and NO_WORDS; int64 offsets, shape (titles + 1,); and float32
        (all parts, meaning + dim): those of title i are ``parts[offsets[i]:offsets[i + 1]]``, zero where
        nothing of it is known.
    """
    contexts = [()] * len(titles) if contexts is None else contexts
    dense = encoder.dense(titles) if dense is None else dense
    words = [list(dict.fromkeys(split_words(parse_title(title).display))) for title in titles]
    lengths = np.array([len(own) + len(NO_WORDS) for own in words], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    found = encoder.look_up(titles, contexts, known)
    named = [*encoder.tokens, *((WORD, text) for text in found.unseen)]
    entries, bounds = found.tokens.values.tolist(), itertools.pairwise(found.tokens.offsets.tolist())
    tokens = ([named[row] for row in entries[begin:end]] for begin, end in bounds)
    owners = [owner for mine, own in zip(tokens, words, strict=True) for owner in _owners(mine, own)]
    bags = Bagger(found.kinds).bags(found.tokens, dense=dense)
    rows = torch.from_numpy(encoder.rows_of(bags.ids.numpy(), found))
    shares = np.array([len(own) for own in owners], dtype=np.int64)
    part = np.array([owner for own in owners for owner in own], dtype=np.int64)
    part += np.repeat(offsets[bags.titles.numpy()], shares)
    order = np.argsort(part, kind="stable")
    ids = torch.from_numpy(np.repeat(bags.tokens.numpy(), shares)[order])
    starts = torch.from_numpy(np.searchsorted(part[order], np.arange(offsets[-1] + 1)))
    with torch.inference_mode():
        weights = encoder.bag.values(bags).numpy() / np.maximum(shares, 1).astype(np.float32)
        each = torch.from_numpy(np.repeat(weights, shares)[order])
        parts = sum_bags(rows, ids, starts, each).numpy()
    bag = add_up_parts(parts, offsets)
    parts = parts * np.repeat(_inverse_norms(bag), lengths, axis=0)
    places = offsets[1:] - len(NO_WORDS) + NO_WORDS.index(MEANING)
    meanings = np.zeros((len(titles), 0), dtype=np.float32)
    if encoder.meaning is not None:
        meanings = np.float32(WEIGHT) * encoder.meaning.project(dense)
        with torch.inference_mode():
            parts[places] = encoder.bag.sentence_part(bags, torch.from_numpy(encoder.meaning.layer)).numpy()
    parts *= np.repeat(_inverse_norms(unit_rows(bag) + parts[places]), lengths, axis=0)
    if encoder.slots is not None:
        beside = beside_slot(add_up_parts(parts, offsets), encoder.slots, encoder.bag.nearest_slot)
        own = beside[:, : encoder.dim]
        parts *= np.repeat(np.linalg.norm(own, axis=1, keepdims=True), lengths, axis=0)
        parts = np.hstack([parts, np.zeros_like(parts)])
        parts[offsets[1:] - len(NO_WORDS) + NO_WORDS.index(MEMORY), encoder.dim :] = beside[:, encoder.dim :]
    first = np.zeros((len(parts), meanings.shape[1]), dtype=np.float32)
    first[places] = meanings
    return [[*own, *NO_WORDS] for own in words], offsets, np.hstack([first, parts])


def add_up_parts(parts: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The sum of each title's parts (``parts_of``); NumPy's reduceat takes 20 times as long."""
    return sum_bags(torch.from_numpy(parts), torch.arange(len(parts)), torch.from_numpy(offsets)).numpy()


def _inverse_norms(vectors: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(1, norms, out=np.zeros_like(norms), where=norms > SMALLEST)


@lru_cache(maxsize=16_384)  # words recur: 3 s for 22,000 titles without it
def _tokens_of(word: str, lengths: Sequence[int]) -> frozenset[Token]:
    """The tokens that belong to a word wherever it stands, with its n-grams of these lengths."""
    wrapped = f"<{word}>"
    starts = ((start, length) for length in lengths for start in range(len(wrapped) - length + 1))
    pieces = {(NGRAM, wrapped[start : start + length]) for start, length in starts}
    return frozenset({*pieces, (WORD, word), (EDGE, f"^{word}"), (EDGE, f"{word}$")})


@lru_cache(maxsize=4096)
def _places(bits: int) -> tuple[int, ...]:
    return tuple(place for place in range(bits.bit_length()) if bits >> place & 1)


def _owners(tokens: Sequence[Token], words: Sequence[str]) -> list[tuple[int, ...]]:
    """Places of the words that each token belongs to, both of a bigram; of no word, a place in NO_WORDS."""
    lengths = tuple(sorted({len(text) for kind, text in tokens if kind == NGRAM}))
    # Places as bits: with lists the garbage collector took as long as all else.
    holders: dict[Token, int] = {}
    for place, word in enumerate(words):
        for token in _tokens_of(word, lengths):
            holders[token] = holders.get(token, 0) | 1 << place
    rest = (len(words),)
    airing = {kind: (len(words) + place,) for kind, place in _AIRING.items()}
    found: list[tuple[int, ...]] = []
    for token in tokens:
        kind, text = token
        if kind >= CONTEXT:
            found.append(airing[kind])
        elif kind == BIGRAM:
            pair = text.split(" ")
            found.append(tuple(place for place, word in enumerate(words) if word in pair) or rest)
        elif kind == RAW:
            found.append(_places(holders.get((WORD, text.removeprefix("raw:").casefold()), 0)) or rest)
        else:
            found.append(_places(holders.get(token, 0)) or rest)
    return found
