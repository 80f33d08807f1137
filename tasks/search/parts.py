"""Splits the vector of each title into parts that add up to the vector, to explain why titles are similar.

A similarity vector is the normalized concatenation of w m and v. m is the *meaning*, the projected sentence
features of the title (tasks/encoder/meaning.py), and w is its weight. v = normalize(bag + s), where bag is
the weighted sum of the embedding rows of all tokens, and s is computed from the sentence features by a
trained layer (tasks/encoder/bag.py). The tokens are those of the words, and those of the *context*: channel,
hour and other kinds. There is a part for each word, one for the meaning, and one for each kind of context:

    [w m ‖ v] = Σ_word [0 ‖ bag_word] / r + [w m ‖ s / r] + Σ_kind [0 ‖ bag_kind] / r,     r = |bag + s|

If the model has a memory, the key of the nearest memory slot is concatenated with v and is a separate part.
The part of a word contains the token of the word, its character n-grams, its tokens for the first and the
last position in the title, and half of each bigram with the word. The remaining tokens of the title, such as
the token for its length, are the part FORM.
"""

import itertools
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from storage.arrays import Ragged, unit_rows
from storage.bag_sums import sum_rows
from tasks.encoder.bag import MIN_NORM
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
# The parts of a title are its words, followed by NON_WORD_PARTS.
NON_WORD_PARTS = (FORM, MEANING, *(f"({kind})" for kind in CONTEXT_KINDS), MEMORY)
_CONTEXT_PARTS = {KINDS.index(kind): NON_WORD_PARTS.index(f"({kind})") for kind in CONTEXT_KINDS}


def split_into_parts(
    encoder: TitleEncoder,
    titles: Sequence[str],
    contexts: Sequence[Sequence[str]] | None = None,
    features: np.ndarray | None = None,
    token_ids: Ragged | None = None,
) -> tuple[list[list[str]], np.ndarray, np.ndarray]:
    """Splits the vector of each title into parts, whose normalized sum is the similarity vector of the title.

    Args:
        encoder: Encoder that computes the vectors.
        titles: Titles as spelled in the guide.
        contexts: Context tokens (channel, hour …) of each title; None: vectors without context.
        features: Sentence features, float32 (titles, features); None: computed from the titles.
        token_ids: Token ids, as in ``TitleEncoder.embed_with_context``; None: they are looked up.

    Returns:
        The names of the parts of each title (its words and NON_WORD_PARTS), offsets, int64 (titles + 1,), and
        the vectors of all parts, float32 (all parts, meaning + dim). The parts of title i are the rows from
        ``offsets[i]`` to ``offsets[i + 1]``. A part whose tokens the model does not know is zero.
    """
    contexts = [()] * len(titles) if contexts is None else contexts
    features = encoder.sentence_features(titles) if features is None else features
    words = [list(dict.fromkeys(split_words(parse_title(title).display))) for title in titles]
    lengths = np.array([len(title_words) + len(NON_WORD_PARTS) for title_words in words], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    lookup = encoder.look_up(titles, contexts, token_ids)
    token_names = [*encoder.tokens, *((WORD, text) for text in lookup.unseen_words)]
    entries, bounds = lookup.tokens.values.tolist(), itertools.pairwise(lookup.tokens.offsets.tolist())
    tokens = ([token_names[row] for row in entries[begin:end]] for begin, end in bounds)
    token_parts = [indices for pair in zip(tokens, words, strict=True) for indices in _token_parts(*pair)]
    distinct_ids, positions = np.unique(lookup.tokens.values, return_inverse=True)
    rows, bags = encoder.rows_of(distinct_ids, lookup), Ragged(lookup.tokens.offsets, positions)
    kinds = lookup.kinds[lookup.tokens.values]
    parts_per_token = np.array([len(indices) for indices in token_parts], dtype=np.int64)
    part_ids = np.array([index for indices in token_parts for index in indices], dtype=np.int64)
    part_ids += np.repeat(offsets[bags.row_ids], parts_per_token)
    order = np.argsort(part_ids, kind="stable")
    ids = np.repeat(positions, parts_per_token)[order]
    starts = np.searchsorted(part_ids[order], np.arange(offsets[-1] + 1))
    weights = encoder.bag.entry_weights(bags, kinds) / np.maximum(parts_per_token, 1).astype(np.float32)
    parts = sum_rows(rows, ids, starts, np.repeat(weights, parts_per_token)[order])
    bag = add_up_parts(parts, offsets)
    parts = parts * np.repeat(_inverse_norms(bag), lengths, axis=0)
    meaning_rows = offsets[1:] - len(NON_WORD_PARTS) + NON_WORD_PARTS.index(MEANING)
    meanings = np.zeros((len(titles), 0), dtype=np.float32)
    if encoder.meaning is not None:
        meanings = np.float32(MEANING_WEIGHT) * encoder.meaning.project(features)
        parts[meaning_rows] = encoder.bag.sentence_part(bags, kinds, features, encoder.meaning.layer)
    parts *= np.repeat(_inverse_norms(unit_rows(bag) + parts[meaning_rows]), lengths, axis=0)
    if encoder.slots is not None:
        vectors = append_slot_key(add_up_parts(parts, offsets), encoder.slots, encoder.bag.nearest_slot)
        parts *= np.repeat(np.linalg.norm(vectors[:, : encoder.dim], axis=1, keepdims=True), lengths, axis=0)
        parts = np.hstack([parts, np.zeros_like(parts)])
        memory_rows = offsets[1:] - len(NON_WORD_PARTS) + NON_WORD_PARTS.index(MEMORY)
        parts[memory_rows, encoder.dim :] = vectors[:, encoder.dim :]
    meaning_columns = np.zeros((len(parts), meanings.shape[1]), dtype=np.float32)
    meaning_columns[meaning_rows] = meanings
    names = [[*title_words, *NON_WORD_PARTS] for title_words in words]
    return names, offsets, np.hstack([meaning_columns, parts])


def add_up_parts(parts: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Returns the sum of the parts of each title, (titles, dim); see ``split_into_parts`` for ``offsets``."""
    return sum_rows(parts, np.arange(len(parts)), offsets, np.ones(len(parts), dtype=np.float32))


def _inverse_norms(vectors: np.ndarray) -> np.ndarray:
    """Returns 1 / norm of each vector, (vectors, 1); 0 for vectors with norm 0."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(1, norms, out=np.zeros_like(norms), where=norms > MIN_NORM)


@lru_cache(maxsize=16_384)  # without the cache, 22,000 titles take 3 s, because words recur
def _word_tokens(word: str, lengths: Sequence[int]) -> frozenset[Token]:
    """Returns all tokens that a word can have in a title. ``lengths`` are the lengths of its n-grams."""
    delimited_word = f"<{word}>"
    starts = ((start, length) for length in lengths for start in range(len(delimited_word) - length + 1))
    ngrams = {(NGRAM, delimited_word[start : start + length]) for start, length in starts}
    return frozenset({*ngrams, (WORD, word), (EDGE, f"^{word}"), (EDGE, f"{word}$")})


@lru_cache(maxsize=4096)
def _bit_positions(bits: int) -> tuple[int, ...]:
    """Returns the positions of the bits that are set, ascending."""
    return tuple(position for position in range(bits.bit_length()) if bits >> position & 1)


def _token_parts(tokens: Sequence[Token], words: Sequence[str]) -> list[tuple[int, ...]]:
    """Returns, for each token of a title, the indices of the parts to which the token belongs.

    The parts are the words of the title, followed by NON_WORD_PARTS. A bigram belongs to two words.
    """
    lengths = tuple(sorted({len(text) for kind, text in tokens if kind == NGRAM}))
    # Bit sets of word indices: with lists, garbage collection took as long as the rest of the function.
    word_bits: dict[Token, int] = {}
    for index, word in enumerate(words):
        for token in _word_tokens(word, lengths):
            word_bits[token] = word_bits.get(token, 0) | 1 << index
    form = (len(words),)
    context_parts = {kind: (len(words) + index,) for kind, index in _CONTEXT_PARTS.items()}
    part_indices: list[tuple[int, ...]] = []
    for token in tokens:
        kind, text = token
        if kind >= CONTEXT:
            part_indices.append(context_parts[kind])
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
