"""Decomposes similarity vectors into parts: words, meaning, context and memory.

A similarity vector is the unit-norm concatenation of the meaning m and of the vector of words and context,
v = normalise(bag + s), where s is the output of the learnt layer for the meaning (tasks/encoder/bag.py):

    [w m ‖ v] = Σ_word [0 ‖ bag_word] / r + [w m ‖ s / r] + Σ_kind [0 ‖ bag_kind] / r,     r = |bag + s|

If the nearest slot of a memory is concatenated with v (``append_slot_key``), it is an additional part. The
part of a word contains its row, its character n-grams, its first-word and last-word tokens, and half of each
of its bigrams. The other tokens of the text, such as those for its length, are the part FORM.
"""

import itertools
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from storage.arrays import Ragged, unit_rows
from storage.bag_sums import sum_rows
from tasks.encoder.bag import SMALLEST
from tasks.encoder.meaning import MEANING_WEIGHT
from tasks.encoder.title_encoder import TitleEncoder, append_slot_key
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
NO_WORDS = (FORM, MEANING, *(f"({kind})" for kind in CONTEXT_KINDS), MEMORY)  # parts after the words
_AIRING = {KINDS.index(kind): NO_WORDS.index(f"({kind})") for kind in CONTEXT_KINDS}


def parts_of(
    encoder: TitleEncoder,
    titles: Sequence[str],
    contexts: Sequence[Sequence[str]] | None = None,
    dense: np.ndarray | None = None,
    token_ids: Ragged | None = None,
) -> tuple[list[list[str]], np.ndarray, np.ndarray]:
    """Decomposes raw titles into parts whose normalized sums are ``encoder.similarity``.

    Args:
        encoder: Encoder of the vectors.
        titles: Raw titles.
        contexts: Context tokens of each title; None for titles without context.
        dense: Dense inputs, float32 (titles, features); computed from the titles if None.
        token_ids: Token ids, as in ``TitleEncoder.embed_with_context``.

    Returns:
        Names of each title's parts, its words and NO_WORDS; int64 offsets, shape (titles + 1,); and parts,
        float32 (all parts, meaning + dim). The parts of title i are ``parts[offsets[i]:offsets[i + 1]]``,
        zero if unknown.
    """
    contexts = [()] * len(titles) if contexts is None else contexts
    dense = encoder.dense(titles) if dense is None else dense
    words = [list(dict.fromkeys(split_words(parse_title(title).display))) for title in titles]
    lengths = np.array([len(title_words) + len(NO_WORDS) for title_words in words], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    looked_up = encoder.look_up(titles, contexts, token_ids)
    token_names = [*encoder.tokens, *((WORD, text) for text in looked_up.unseen)]
    entries, bounds = looked_up.tokens.values.tolist(), itertools.pairwise(looked_up.tokens.offsets.tolist())
    tokens = ([token_names[row] for row in entries[begin:end]] for begin, end in bounds)
    owners = [owner for pair in zip(tokens, words, strict=True) for owner in _token_parts(*pair)]
    unique, positions = np.unique(looked_up.tokens.values, return_inverse=True)
    rows, bags = encoder.rows_of(unique, looked_up), Ragged(looked_up.tokens.offsets, positions)
    kinds = looked_up.kinds[looked_up.tokens.values]
    shares = np.array([len(indices) for indices in owners], dtype=np.int64)
    part = np.array([index for indices in owners for index in indices], dtype=np.int64)
    part += np.repeat(offsets[bags.row_ids], shares)
    order = np.argsort(part, kind="stable")
    ids = np.repeat(positions, shares)[order]
    starts = np.searchsorted(part[order], np.arange(offsets[-1] + 1))
    weights = encoder.bag.values(bags, kinds) / np.maximum(shares, 1).astype(np.float32)
    parts = sum_rows(rows, ids, starts, np.repeat(weights, shares)[order])
    bag = add_up_parts(parts, offsets)
    parts = parts * np.repeat(_inverse_norms(bag), lengths, axis=0)
    meaning_rows = offsets[1:] - len(NO_WORDS) + NO_WORDS.index(MEANING)
    meanings = np.zeros((len(titles), 0), dtype=np.float32)
    if encoder.meaning is not None:
        meanings = np.float32(MEANING_WEIGHT) * encoder.meaning.project(dense)
        parts[meaning_rows] = encoder.bag.sentence_part(bags, kinds, dense, encoder.meaning.layer)
    parts *= np.repeat(_inverse_norms(unit_rows(bag) + parts[meaning_rows]), lengths, axis=0)
    if encoder.slots is not None:
        beside = append_slot_key(add_up_parts(parts, offsets), encoder.slots, encoder.bag.nearest_slot)
        bag_vectors = beside[:, : encoder.dim]
        parts *= np.repeat(np.linalg.norm(bag_vectors, axis=1, keepdims=True), lengths, axis=0)
        parts = np.hstack([parts, np.zeros_like(parts)])
        parts[offsets[1:] - len(NO_WORDS) + NO_WORDS.index(MEMORY), encoder.dim :] = beside[:, encoder.dim :]
    first = np.zeros((len(parts), meanings.shape[1]), dtype=np.float32)
    first[meaning_rows] = meanings
    return [[*title_words, *NO_WORDS] for title_words in words], offsets, np.hstack([first, parts])


def add_up_parts(parts: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Sums the parts of each title (``parts_of``)."""
    return sum_rows(parts, np.arange(len(parts)), offsets, np.ones(len(parts), dtype=np.float32))


def _inverse_norms(vectors: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(1, norms, out=np.zeros_like(norms), where=norms > SMALLEST)


@lru_cache(maxsize=16_384)  # words recur: 3 s for 22,000 titles without it
def _word_tokens(word: str, lengths: Sequence[int]) -> frozenset[Token]:
    """Returns the tokens of a word at any position, with its n-grams of these lengths."""
    wrapped = f"<{word}>"
    starts = ((start, length) for length in lengths for start in range(len(wrapped) - length + 1))
    pieces = {(NGRAM, wrapped[start : start + length]) for start, length in starts}
    return frozenset({*pieces, (WORD, word), (EDGE, f"^{word}"), (EDGE, f"{word}$")})


@lru_cache(maxsize=4096)
def _bit_positions(bits: int) -> tuple[int, ...]:
    return tuple(position for position in range(bits.bit_length()) if bits >> position & 1)


def _token_parts(tokens: Sequence[Token], words: Sequence[str]) -> list[tuple[int, ...]]:
    """Returns, per token, the indices of its words (two for a bigram) or the index of its NO_WORDS part."""
    lengths = tuple(sorted({len(text) for kind, text in tokens if kind == NGRAM}))
    # Positions are bit sets: with lists, garbage collection took as long as the rest of the function.
    word_bits: dict[Token, int] = {}
    for index, word in enumerate(words):
        for token in _word_tokens(word, lengths):
            word_bits[token] = word_bits.get(token, 0) | 1 << index
    form = (len(words),)
    airing = {kind: (len(words) + index,) for kind, index in _AIRING.items()}
    part_indices: list[tuple[int, ...]] = []
    for token in tokens:
        kind, text = token
        if kind >= CONTEXT:
            part_indices.append(airing[kind])
        elif kind == BIGRAM:
            pair = text.split(" ")
            part_indices.append(tuple(index for index, word in enumerate(words) if word in pair) or form)
        elif kind == RAW:
            part_indices.append(
                _bit_positions(word_bits.get((WORD, text.removeprefix("raw:").casefold()), 0)) or form
            )
        else:
            part_indices.append(_bit_positions(word_bits.get(token, 0)) or form)
    return part_indices
