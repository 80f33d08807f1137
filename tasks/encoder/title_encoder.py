"""Any title to a vector: tokenizer, token rows, n-gram rows, the layer on its sentence vector. torch, NumPy
and pyarrow alone, and the package of the sentence encoder where it is installed.

Known tokens take their trained row. A word that training never touched takes the vector that tasks/augment
has for it; other unknown tokens are left out.
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
import torch
from safetensors import safe_open
from safetensors.numpy import save_file

from storage.arrays import Ragged, unit_rows
from storage.shapes import Float32, Int8
from tasks.encoder import Bag, Encoder
from tasks.encoder.bags import LAYER, Bagger
from tasks.encoder.meaning import WEIGHT, Meaning
from tasks.encoder.unseen_words import SOURCES, NgramRows, UnseenWords
from tasks.neighbours.similarity import top_neighbours
from tasks.text.tokenizers import Fitted, describe, restore
from tasks.text.words import CONTEXT, KINDS, NGRAM, WORD, Token, context_token

ENCODERS = {"bag": Bag}
_GONE = ("sif", "directions")  # options of older versions; published rows never knew them
_CHUNK = 4096  # titles encoded at once: 4096 titles of 60 tokens take 0.1 GB


class FoundTokens(NamedTuple):
    """Tokens of titles that have a row."""

    tokens: Ragged  # row of each, title by title; those of unseen words are counted on behind the encoder's
    kinds: Int8[np.ndarray, " rows"]  # of all rows
    more: Float32[np.ndarray, "unseen dim"]  # rows of unseen words
    unseen: list[str]


@dataclass(frozen=True, eq=False)
class TitleEncoder:
    """Titles to unit vectors."""

    tokenizer: Fitted
    bag: Encoder
    ids: dict[tuple[int, str], int]  # (kind, text) to row, of the tokens that training touched
    rows: Float32[np.ndarray, "tokens dim"]
    kinds: Int8[np.ndarray, " tokens"]
    unseen_words: UnseenWords  # for words without a row
    meaning: Meaning | None = None  # None where the corpus has no sentence vectors
    slots: Float32[np.ndarray, "slots dim"] | None = None  # keys of a memory: see beside_slot

    @property
    def dim(self) -> int:
        """Dimensions of a row, and of a title's vector without a slot."""
        return self.rows.shape[1]

    @property
    def width(self) -> int:
        """Dimensions of a title's vector."""
        return self.dim if self.slots is None else 2 * self.dim

    def dense(self, raw_titles: Sequence[str], descriptions: Sequence[str] = ()) -> np.ndarray:
        """Dense inputs x of raw titles, and a description of each or of none: float32 (titles, features)."""
        if self.meaning is None:
            return np.zeros((len(raw_titles), 0), dtype=np.float32)
        return self.meaning.dense(self.bag, raw_titles, descriptions)

    def embed(self, raw_titles: Sequence[str], dense: np.ndarray | None = None) -> np.ndarray:
        """Unit vectors of raw titles, float32 (titles, width); zero where no word, no n-gram and no x is
        known. ``dense`` is x, float32 (titles, features), that of the titles if None.
        """
        return self.embed_with_context(raw_titles, [()] * len(raw_titles), dense)[0]

    def embed_with_context(
        self,
        raw_titles: Sequence[str],
        contexts: Sequence[Sequence[str]],
        dense: np.ndarray | None = None,
        known: Ragged | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Unit vectors, float32 (titles, width), of raw titles alone, and with the tokens of how each airs
        (storage/catalogue/contexts.py); zero where nothing is known. ``dense`` as in ``embed``.

        ``known``, of a corpus of this vocabulary, has the ids of each title's tokens and of those of how it
        airs; a title for which it has none, or that has a word without a row, is tokenised.
        """
        dense = self.dense(raw_titles) if dense is None else dense
        alone, full = np.zeros((2, len(raw_titles), self.width), dtype=np.float32)
        for start in range(0, len(raw_titles), _CHUNK):
            chunk = slice(start, start + _CHUNK)
            own = None if known is None else known.between(start, min(start + _CHUNK, len(known)))
            found = self.look_up(raw_titles[chunk], contexts[chunk], own)
            of_title = found.tokens.where(found.kinds[found.tokens.values] < CONTEXT)
            alone[chunk] = full[chunk] = self._encode(of_title, found, dense[chunk])
            if len(of_title.values) < len(found.tokens.values):
                full[chunk] = self._encode(found.tokens, found, dense[chunk])
        return alone, full

    def look_up(
        self, raw_titles: Sequence[str], contexts: Sequence[Sequence[str]], known: Ragged | None = None
    ) -> FoundTokens:
        """Tokens that have a row, of titles and of how they air; ``known`` as in ``embed_with_context``."""
        if known is None:
            found = self._tokenise(raw_titles, contexts)
        else:
            has_row, words = self._touched[known.values], self.kinds[known.values] == WORD
            lacking = np.bincount(known.owners[words & ~has_row], minlength=len(known))
            typed = np.flatnonzero((known.lengths == 0) | (lacking > 0)).tolist()
            found = self._tokenise(
                [raw_titles[title] for title in typed], [contexts[title] for title in typed]
            )
            places = np.arange(len(known))
            places[typed] = len(known) + np.arange(len(typed))
            both = Ragged.concatenate([known.where(has_row), found.tokens]).take(places)
            found = found._replace(tokens=both)
        kinds, owners = found.kinds[found.tokens.values], found.tokens.owners
        named = np.bincount(owners[(kinds == WORD) | (kinds == NGRAM)], minlength=len(found.tokens)) > 0
        # length and shape alone are known of any title
        return found._replace(tokens=found.tokens.where(named[owners] | (kinds >= CONTEXT)))

    def _tokenise(self, raw_titles: Sequence[str], contexts: Sequence[Sequence[str]]) -> FoundTokens:
        unseen: dict[str, int] = {}
        rows: list[list[int]] = []
        for tokens, context in zip(self.tokenizer.all_tokens(raw_titles), contexts, strict=True):
            own = []
            for token in tokens:
                row = self.ids.get(token)
                if row is not None:
                    own.append(row)
                elif token[0] == WORD:
                    own.append(len(self.rows) + unseen.setdefault(token[1], len(unseen)))
            airing = map(self.ids.get, map(context_token, context))
            rows.append(own + [row for row in airing if row is not None])
        found = Ragged.from_rows(rows, dtype=np.int64)
        if not unseen:
            return FoundTokens(found, self.kinds, self.rows[:0], [])
        more, is_known = self.unseen_words.vectors(list(unseen))
        found = found.where(np.append(np.ones(len(self.rows), dtype=bool), is_known)[found.values])
        kinds = np.append(self.kinds, np.full(len(unseen), WORD, dtype=np.int8))
        return FoundTokens(found, kinds, more, list(unseen))

    def rows_of(self, tokens: np.ndarray, found: FoundTokens) -> np.ndarray:
        """Rows of found tokens, int64 (tokens,) and rising: float32 (tokens, dim)."""
        known = tokens[tokens < len(self.rows)]
        return np.concatenate([self.rows[known], found.more[tokens[len(known) :] - len(self.rows)]])

    def similarity(self, dense: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """Vectors for `similar`, float32 (titles, meaning + width): meanings of x beside ``vectors``, of
        titles alone or with how they air; without a sentence encoder the latter.
        """
        if self.meaning is None:
            return vectors
        return unit_rows(np.hstack([np.float32(WEIGHT) * self.meaning.project(dense), vectors]))

    def without_unseen_words(self) -> "TitleEncoder":
        """The same, but unseen words are left out: the difference is what augmenting adds."""
        return dataclasses.replace(self, unseen_words=NgramRows.none(self.dim))

    def count_unseen(self, raw_titles: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Words of titles, and how many of them training never touched: int32 (titles,) twice."""
        tokens = self.tokenizer.all_tokens(raw_titles)
        words = [[token for token in own if token[0] == WORD] for own in tokens]
        unseen = [sum(token not in self.ids for token in own) for own in words]
        return np.array([len(own) for own in words], dtype=np.int32), np.array(unseen, dtype=np.int32)

    def _encode(self, tokens: Ragged, found: FoundTokens, dense: np.ndarray) -> np.ndarray:
        used, places = np.unique(tokens.values, return_inverse=True)  # to make a Bagger of all takes 1 ms
        bags = Bagger(found.kinds[used]).bags(Ragged(tokens.offsets, places), dense=dense)
        layer = torch.from_numpy(self.meaning.layer) if self.meaning else None
        with torch.inference_mode():
            vectors = self.bag.encode(torch.from_numpy(self.rows_of(used, found)), bags, layer).numpy()
        return beside_slot(vectors, self.slots, self.bag.nearest_slot)

    @cached_property
    def tokens(self) -> list[Token]:
        """Kind and text of each row."""
        named: list[Token] = [(WORD, "")] * len(self.rows)
        for token, row in self.ids.items():
            named[row] = token
        return named

    @cached_property
    def _touched(self) -> np.ndarray:
        """Which rows training touched: bool (tokens,)."""
        touched = np.zeros(len(self.rows), dtype=bool)
        touched[list(self.ids.values())] = True
        return touched

    def save(self, folder: Path, tokens_parquet: Path) -> None:
        """Writes rows.safetensors, lexicon.json and a copy of tokens.parquet, whose row i is row i."""
        source, bag = self.unseen_words, dataclasses.asdict(self.bag)
        arrays = {**source.arrays(), "rows": self.rows, "touched": self._touched}
        content = {"tokenizer": describe(self.tokenizer), "encoder": bag, source.key: source.describe()}
        if self.meaning:
            arrays |= {LAYER: self.meaning.layer, "projection": self.meaning.projection}
            content["sentences"] = dict(self.meaning.about)
        if self.slots is not None:
            arrays["slots"] = self.slots
        arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        save_file(arrays, folder / "rows.safetensors")
        text = json.dumps(content, indent=1, ensure_ascii=False)
        (folder / "lexicon.json").write_text(text, encoding="utf-8")
        (folder / "tokens.parquet").write_bytes(tokens_parquet.read_bytes())

    @staticmethod
    def open(folder: Path | str) -> "TitleEncoder":
        """Opens the files of a title encoder (a Model folder holds them too); rows are read when used."""
        folder = Path(folder)
        content = json.loads((folder / "lexicon.json").read_text(encoding="utf-8"))
        with safe_open(file := folder / "rows.safetensors", framework="pt") as opened:
            rows = opened.get_tensor("rows").numpy()  # mapped; for NumPy it is a copy
        with safe_open(file, framework="numpy") as opened:
            arrays = {name: opened.get_tensor(name) for name in opened.keys() if name != "rows"}  # noqa: SIM118
        bag = {name: value for name, value in content["encoder"].items() if name not in _GONE}
        table = pq.ParquetFile(folder / "tokens.parquet").read(["kind", "token"])  # read_table imports pandas
        kinds = np.array([KINDS.index(kind) for kind in table["kind"].to_pylist()], dtype=np.int8)
        key = next(key for key in SOURCES if key in content)
        unseen_words = SOURCES[key].restore(content[key], arrays)
        ids = token_index(kinds, table["token"].to_pylist(), arrays["touched"])
        tokenizer, encoder = restore(content["tokenizer"]), ENCODERS[bag["name"]](**bag)
        meaning = None
        if about := content.get("sentences"):
            meaning = Meaning(about, arrays[LAYER], arrays["projection"])
        return TitleEncoder(tokenizer, encoder, ids, rows, kinds, unseen_words, meaning, arrays.get("slots"))


def token_index(kinds: np.ndarray, tokens: Sequence[str], touched: np.ndarray) -> dict[tuple[int, str], int]:
    """(kind, text) to row of the tokens that training touched; any other row is still random."""
    pairs = zip(kinds.tolist(), tokens, strict=True)
    return {pair: row for row, (pair, known) in enumerate(zip(pairs, touched, strict=True)) if known}


def beside_slot(
    vectors: Float32[np.ndarray, "titles dim"], slots: Float32[np.ndarray, "slots dim"] | None, weight: float
) -> Float32[np.ndarray, "titles width"]:
    """Each unit vector q beside the key of the slot of a memory (tasks/train/memory) that is nearest to it:
    normalise(q ‖ weight · K[nearest(q)]), of twice the dimensions; q alone without ``slots``.
    """
    if slots is None:
        return vectors
    nearest = top_neighbours(vectors, slots, 1)[0][:, 0]
    keys = np.where(nearest[:, None] >= 0, slots[nearest], np.float32(0))
    return unit_rows(np.hstack([vectors, np.float32(weight) * keys]))
