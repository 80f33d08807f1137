"""Maps any title to a vector: tokenizes it, looks up embedding rows, and adds sentence features.

A trained token has a row. The vector of a word without a trained row (an unseen word) is computed by a method
that tasks/augment has fitted. Other tokens without a trained row are ignored. The module requires only NumPy,
pyarrow and, if the model has sentence vectors, the package of the sentence encoder.
"""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
from safetensors import safe_open
from safetensors.numpy import save_file

from storage.arrays import Ragged, open_tensor, unit_rows
from storage.shapes import Float32, Int8
from tasks.encoder import Bag, Encoder
from tasks.encoder.bag import LAYER
from tasks.encoder.meaning import MEANING_WEIGHT, Meaning
from tasks.encoder.unseen_words import SOURCES, NgramRows, UnseenWords
from tasks.neighbours.similarity import top_neighbours
from tasks.text.tokenizers import Tokenizer, describe_tokenizer, restore_tokenizer
from tasks.text.words import CONTEXT, KINDS, NGRAM, WORD, Token, context_token

ENCODERS = {"bag": Bag}
_REMOVED_OPTIONS = ("sif", "directions")  # options in models of older versions, which are ignored
_CHUNK_TITLES = 4096  # titles per batch: 4096 titles of 60 tokens take 0.1 GB


class TokenLookup(NamedTuple):
    """Tokens of titles that have a vector: a trained row, or the vector of an unseen word."""

    tokens: Ragged  # row number of each token of each title; unseen words have numbers from len(encoder.rows)
    kinds: Int8[np.ndarray, " rows"]  # kind of the token of each row; the rows of unseen words are last
    unseen_rows: Float32[np.ndarray, "unseen dim"]  # vector of each unseen word
    unseen_words: list[str]


@dataclass(frozen=True, eq=False)
class TitleEncoder:
    """Maps titles to vectors of unit norm, with a trained model."""

    tokenizer: Tokenizer
    bag: Encoder
    ids: dict[tuple[int, str], int]  # row number by (kind, text), for trained tokens
    rows: Float32[np.ndarray, "tokens dim"]
    kinds: Int8[np.ndarray, " tokens"]  # kind of the token of each row
    unseen_words: UnseenWords  # computes vectors of words without a trained row
    meaning: Meaning | None = None  # None if the corpus has no sentence vectors
    slots: Float32[np.ndarray, "slots dim"] | None = None  # keys of memory slots (append_slot_key)

    @property
    def dim(self) -> int:
        """Number of dimensions of an embedding row."""
        return self.rows.shape[1]

    @property
    def width(self) -> int:
        """Number of dimensions of a title vector: ``dim``, or 2 · dim if a memory slot is appended."""
        return self.dim if self.slots is None else 2 * self.dim

    def sentence_features(self, raw_titles: Sequence[str], descriptions: Sequence[str] = ()) -> np.ndarray:
        """Computes the sentence features x of titles and their descriptions, float32 (titles, features)."""
        if self.meaning is None:
            return np.zeros((len(raw_titles), 0), dtype=np.float32)
        return self.meaning.sentence_features(self.bag, raw_titles, descriptions)

    def embed(self, raw_titles: Sequence[str], features: np.ndarray | None = None) -> np.ndarray:
        """Computes the unit-norm vectors of titles, float32 (titles, width).

        The vector is zero if no word or n-gram of the title has a vector, and the sentence features are zero.
        ``features`` contains the sentence features x of the titles; None: they are computed.
        """
        return self.embed_with_context(raw_titles, [()] * len(raw_titles), features)[0]

    def embed_with_context(
        self,
        raw_titles: Sequence[str],
        contexts: Sequence[Sequence[str]],
        features: np.ndarray | None = None,
        token_ids: Ragged | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Computes two unit-norm vectors of each title, without and with context: float32 (titles, width).

        Args:
            raw_titles: Titles as in the feed.
            contexts: Context tokens of each title (tasks/tokenize/contexts.py), such as "hour:20".
            features: Sentence features x of the titles; None: they are computed.
            token_ids: Ids of the title and context tokens of each title, from a corpus with this vocabulary.
                A title without ids, or with a word without a trained row, is tokenized again.
        """
        features = self.sentence_features(raw_titles) if features is None else features
        without_context, with_context = np.zeros((2, len(raw_titles), self.width), dtype=np.float32)
        for start in range(0, len(raw_titles), _CHUNK_TITLES):
            end = min(start + _CHUNK_TITLES, len(raw_titles))
            chunk = slice(start, end)
            ids = None if token_ids is None else token_ids.between(start, end)
            lookup = self.look_up(raw_titles[chunk], contexts[chunk], ids)
            title_tokens = lookup.tokens.where(lookup.kinds[lookup.tokens.values] < CONTEXT)
            without_context[chunk] = with_context[chunk] = self._encode(title_tokens, lookup, features[chunk])
            if len(title_tokens.values) < len(lookup.tokens.values):
                with_context[chunk] = self._encode(lookup.tokens, lookup, features[chunk])
        return without_context, with_context

    def look_up(
        self, raw_titles: Sequence[str], contexts: Sequence[Sequence[str]], token_ids: Ragged | None = None
    ) -> TokenLookup:
        """Looks up the embedding rows of the tokens of titles.

        Args:
            raw_titles: Titles as in the feed.
            contexts: Context tokens of each title, such as "hour:20".
            token_ids: Token ids of each title in the corpus; None: the titles are tokenized.
        """
        if token_ids is None:
            lookup = self._tokenize(raw_titles, contexts)
        else:
            has_row, is_word = self._is_trained[token_ids.values], self.kinds[token_ids.values] == WORD
            untrained_words = np.bincount(token_ids.row_ids[is_word & ~has_row], minlength=len(token_ids))
            tokenized_titles = np.flatnonzero((token_ids.lengths == 0) | (untrained_words > 0)).tolist()
            lookup = self._tokenize(
                [raw_titles[title] for title in tokenized_titles],
                [contexts[title] for title in tokenized_titles],
            )
            positions = np.arange(len(token_ids))
            positions[tokenized_titles] = len(token_ids) + np.arange(len(tokenized_titles))
            tokens = Ragged.concatenate([token_ids.where(has_row), lookup.tokens]).take(positions)
            lookup = lookup._replace(tokens=tokens)
        kinds, titles = lookup.kinds[lookup.tokens.values], lookup.tokens.row_ids
        has_text = np.bincount(titles[(kinds == WORD) | (kinds == NGRAM)], minlength=len(lookup.tokens)) > 0
        # Every title has tokens of kind shape. If it has no word or n-gram, only its context tokens are used.
        return lookup._replace(tokens=lookup.tokens.where(has_text[titles] | (kinds >= CONTEXT)))

    def _tokenize(self, raw_titles: Sequence[str], contexts: Sequence[Sequence[str]]) -> TokenLookup:
        unseen_numbers: dict[str, int] = {}  # number of each unseen word, in order of appearance
        title_tokens: list[list[int]] = []
        for text_tokens, context in zip(self.tokenizer.all_tokens(raw_titles), contexts, strict=True):
            numbers = []
            for token in text_tokens:
                number = self.ids.get(token)
                if number is not None:
                    numbers.append(number)
                elif token[0] == WORD:
                    unseen_number = unseen_numbers.setdefault(token[1], len(unseen_numbers))
                    numbers.append(len(self.rows) + unseen_number)
            context_numbers = map(self.ids.get, map(context_token, context))
            title_tokens.append(numbers + [number for number in context_numbers if number is not None])
        tokens = Ragged.from_rows(title_tokens, dtype=np.int64)
        if not unseen_numbers:
            return TokenLookup(tokens, self.kinds, self.rows[:0], [])
        unseen_rows, has_vector = self.unseen_words.vectors(list(unseen_numbers))
        tokens = tokens.where(np.append(np.ones(len(self.rows), dtype=bool), has_vector)[tokens.values])
        kinds = np.append(self.kinds, np.full(len(unseen_numbers), WORD, dtype=np.int8))
        return TokenLookup(tokens, kinds, unseen_rows, list(unseen_numbers))

    def rows_of(self, tokens: np.ndarray, lookup: TokenLookup) -> np.ndarray:
        """Returns the rows, float32 (tokens, dim), with the ascending row numbers ``tokens`` of a lookup."""
        trained_tokens = tokens[tokens < len(self.rows)]
        unseen_tokens = tokens[len(trained_tokens) :] - len(self.rows)
        return np.concatenate([self.rows[trained_tokens], lookup.unseen_rows[unseen_tokens]])

    def similarity(self, features: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """Computes the vectors that `guidespace similar` compares: float32 (titles, meaning + width).

        A similarity vector is the concatenation of the meaning vector, which is computed from the sentence
        features x, and the title vector in ``vectors``. If the model has no sentence vectors, returns
        ``vectors``.
        """
        if self.meaning is None:
            return vectors
        return unit_rows(np.hstack([np.float32(MEANING_WEIGHT) * self.meaning.project(features), vectors]))

    def without_unseen_words(self) -> "TitleEncoder":
        """Returns a copy that ignores unseen words, to measure the effect of their vectors."""
        return dataclasses.replace(self, unseen_words=NgramRows.empty(self.dim))

    def count_unseen(self, raw_titles: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Counts the words of each title, and its unseen words: two arrays, int32 (titles,)."""
        tokens = self.tokenizer.all_tokens(raw_titles)
        words = [[token for token in title_tokens if token[0] == WORD] for title_tokens in tokens]
        unseen_counts = [sum(token not in self.ids for token in title_tokens) for title_tokens in words]
        return np.array([*map(len, words)], dtype=np.int32), np.array(unseen_counts, dtype=np.int32)

    def _encode(self, tokens: Ragged, lookup: TokenLookup, features: np.ndarray) -> np.ndarray:
        distinct_ids, positions = np.unique(tokens.values, return_inverse=True)
        kinds, rows = lookup.kinds[tokens.values], self.rows_of(distinct_ids, lookup)
        layer = self.meaning.layer if self.meaning else None
        vectors = self.bag.encode(rows, Ragged(tokens.offsets, positions), kinds, features, layer)
        return append_slot_key(vectors, self.slots, self.bag.nearest_slot)

    @cached_property
    def tokens(self) -> list[Token]:
        """Kind and text of the token of each embedding row; (WORD, "") if the row is not trained."""
        names: list[Token] = [(WORD, "")] * len(self.rows)
        for token, row in self.ids.items():
            names[row] = token
        return names

    @cached_property
    def _is_trained(self) -> np.ndarray:
        """Whether training has updated each row, bool (tokens,)."""
        is_trained = np.zeros(len(self.rows), dtype=bool)
        is_trained[list(self.ids.values())] = True
        return is_trained

    def save(self, folder: Path, tokens_parquet: Path) -> None:
        """Writes rows.safetensors, lexicon.json and a copy of tokens.parquet (record i describes row i)."""
        source, bag = self.unseen_words, dataclasses.asdict(self.bag)
        arrays = {**source.arrays(), "rows": self.rows, "touched": self._is_trained}
        content = {
            "tokenizer": describe_tokenizer(self.tokenizer),
            "encoder": bag,
            source.key: source.describe(),
        }
        if self.meaning:
            arrays |= {LAYER: self.meaning.layer, "projection": self.meaning.projection}
            content["sentences"] = dict(self.meaning.encoder_info)
        if self.slots is not None:
            arrays["slots"] = self.slots
        arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        save_file(arrays, folder / "rows.safetensors")
        text = json.dumps(content, indent=1, ensure_ascii=False)
        (folder / "lexicon.json").write_text(text, encoding="utf-8")
        (folder / "tokens.parquet").write_bytes(tokens_parquet.read_bytes())

    @staticmethod
    def open(folder: Path | str) -> "TitleEncoder":
        """Opens a title encoder from its folder or a Model folder. Rows are memory-mapped."""
        folder = Path(folder)
        content = json.loads((folder / "lexicon.json").read_text(encoding="utf-8"))
        rows = open_tensor(file := folder / "rows.safetensors", "rows")
        with safe_open(file, framework="numpy") as handle:
            arrays = {name: handle.get_tensor(name) for name in handle.keys() if name != "rows"}  # noqa: SIM118
        bag = {name: value for name, value in content["encoder"].items() if name not in _REMOVED_OPTIONS}
        table = pq.ParquetFile(folder / "tokens.parquet").read(["kind", "token"])  # read_table imports pandas
        kind_column = table["kind"].combine_chunks().dictionary_encode()
        kinds = np.array([KINDS.index(kind) for kind in kind_column.dictionary.to_pylist()], dtype=np.int8)
        kinds = kinds[np.from_dlpack(kind_column.indices).astype(np.int64)]  # to_numpy imports pandas
        key = next(key for key in SOURCES if key in content)
        unseen_words = SOURCES[key].restore(content[key], arrays)
        ids = token_index(kinds, table["token"].to_pylist(), arrays["touched"])
        tokenizer, encoder = restore_tokenizer(content["tokenizer"]), ENCODERS[bag["name"]](**bag)
        meaning = None
        if encoder_info := content.get("sentences"):
            meaning = Meaning(encoder_info, arrays[LAYER], arrays["projection"])
        return TitleEncoder(tokenizer, encoder, ids, rows, kinds, unseen_words, meaning, arrays.get("slots"))


def token_index(
    kinds: np.ndarray, tokens: Sequence[str], is_trained: np.ndarray
) -> dict[tuple[int, str], int]:
    """Returns the row number of each trained token, by its kind and text. Untrained rows are random."""
    rows = np.flatnonzero(is_trained)
    return {(kind, tokens[row]): row for row, kind in zip(rows.tolist(), kinds[rows].tolist(), strict=True)}


def append_slot_key(
    vectors: Float32[np.ndarray, "titles dim"], slots: Float32[np.ndarray, "slots dim"] | None, weight: float
) -> Float32[np.ndarray, "titles width"]:
    """Appends to each unit vector q the key of its nearest memory slot (tasks/train/memory).

    Returns normalize(concatenation of q and weight · K[nearest(q)]), where K contains the keys ``slots``. The
    result has twice the dimensions of q. If ``slots`` is None, returns q.
    """
    if slots is None:
        return vectors
    nearest_slots = top_neighbours(vectors, slots, 1)[0][:, 0]
    keys = np.where(nearest_slots[:, None] >= 0, slots[nearest_slots], np.float32(0))
    return unit_rows(np.hstack([vectors, np.float32(weight) * keys]))
