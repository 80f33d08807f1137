"""Everything needed to turn any title into a vector: tokenizer, token rows, n-gram rows. torch, NumPy and pyarrow alone.

Known tokens take their trained row. A word that training never touched takes the vector that its n-grams give
(tasks/augment); other unknown tokens are left out. The same code embeds tonight's guide and a title no guide ever had.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from safetensors.numpy import load_file, save_file

from storage.arrays import Ragged
from tasks.augment.unseen import NgramRows
from tasks.preprocess.bags import Bagger
from tasks.tokenize.strategies import Fitted, describe, restore
from tasks.tokenize.words import KINDS, NGRAM, WORD
from tasks.train.encoders import Encoder, bag

ENCODERS = {"bag": bag.Bag}
_GONE = ("sif", "directions")  # options that older versions wrote here; published rows never knew them
_CHUNK = 4096  # titles encoded at once: 4096 titles of 60 tokens take 0.1 GB


class Lexicon:
    """Titles to unit vectors.

    Args:
        tokenizer: Raw title to tokens.
        encoder: Tokens to a vector.
        ids: (kind, text) to row, of the tokens that training touched.
        rows: float32 (tokens, dim).
        kinds: int8 (tokens,).
        ngrams: For words without a row.
    """

    def __init__(self, tokenizer: Fitted, encoder: Encoder, ids: dict[tuple[int, str], int], rows: np.ndarray, kinds: np.ndarray, ngrams: NgramRows) -> None:
        self.tokenizer, self.encoder, self.ids, self.rows, self.kinds, self.ngrams = tokenizer, encoder, ids, rows, kinds, ngrams

    @property
    def dim(self) -> int:
        """Dimensions of a vector."""
        return self.rows.shape[1]

    def embed(self, raw_titles: Sequence[str]) -> np.ndarray:
        """Vectors of titles.

        Args:
            raw_titles: As a guide would have them.

        Returns:
            float32 (titles, dim), unit norm; a title of which no word and no n-gram is known is a zero row.
        """
        return self.embed_with_context(raw_titles, [()] * len(raw_titles))[0]

    def embed_with_context(self, raw_titles: Sequence[str], contexts: Sequence[Sequence[str]]) -> tuple[np.ndarray, np.ndarray]:
        """Two vectors a title, from the same rows: of the title alone, and with how it airs.

        Args:
            raw_titles: As a guide would have them.
            contexts: How each airs: tokens of storage/catalogue/contexts.py.

        Returns:
            float32 (titles, dim) twice, unit norm. The second is zero where neither title nor context is known.
        """
        pairs = [self._embed(raw_titles[start : start + _CHUNK], contexts[start : start + _CHUNK]) for start in range(0, len(raw_titles), _CHUNK)]
        if not pairs:
            return np.zeros((0, self.dim), dtype=np.float32), np.zeros((0, self.dim), dtype=np.float32)
        alone, full = zip(*pairs, strict=True)
        return np.concatenate(alone), np.concatenate(full)

    def without_ngrams(self) -> Lexicon:
        """The same, but words never seen are left out: the difference is what augmenting adds."""
        none = dataclasses.replace(self.ngrams, bucket_ids=self.ngrams.bucket_ids[:0], rows=self.ngrams.rows[:0])
        return Lexicon(self.tokenizer, self.encoder, self.ids, self.rows, self.kinds, none)

    def count_unseen(self, raw_titles: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Words of titles, and how many of them training never touched: int32 (titles,) twice."""
        words = [[token for token in tokens if token[0] == WORD] for tokens in self.tokenizer.all_tokens(raw_titles)]
        unseen = [sum(token not in self.ids for token in own) for own in words]
        return np.array([len(own) for own in words], dtype=np.int32), np.array(unseen, dtype=np.int32)

    def _embed(self, raw_titles: Sequence[str], contexts: Sequence[Sequence[str]]) -> tuple[np.ndarray, np.ndarray]:
        unseen: dict[str, int] = {}
        entries: list[list[int]] = []
        for tokens in self.tokenizer.all_tokens(raw_titles):
            own = []
            for token in tokens:
                row = self.ids.get(token)
                if row is not None:
                    own.append(row)
                elif token[0] == WORD:
                    own.append(len(self.rows) + unseen.setdefault(token[1], len(unseen)))
            entries.append(own)
        rows, kinds = self.rows, self.kinds
        if unseen:
            vectors, found = self.ngrams.vectors(list(unseen))
            rows = np.concatenate([rows, vectors])
            kinds = np.concatenate([kinds, np.full(len(unseen), WORD, dtype=np.int8)])
            entries = [[entry for entry in own if entry < len(self.rows) or found[entry - len(self.rows)]] for own in entries]
        says_something = np.isin(kinds, (WORD, NGRAM))  # length and shape alone are known of any title
        entries = [own if any(says_something[entry] for entry in own) else [] for own in entries]
        alone = self._encode(rows, kinds, entries)
        if not any(contexts):
            return alone, alone
        airing = [[self.ids.get((KINDS.index(token.partition(":")[0]), token)) for token in own] for own in contexts]
        return alone, self._encode(rows, kinds, [own + [row for row in more if row is not None] for own, more in zip(entries, airing, strict=True)])

    def _encode(self, rows: np.ndarray, kinds: np.ndarray, entries: Sequence[Sequence[int]]) -> np.ndarray:
        bags = Bagger(kinds).bags(Ragged.from_rows(entries, dtype=np.int64))
        with torch.inference_mode():
            return self.encoder.encode(torch.from_numpy(rows[bags.ids.numpy()]), bags).numpy()

    def save(self, folder: Path, tokens_parquet: Path) -> None:
        """Writes rows.safetensors, lexicon.json and a copy of tokens.parquet (the frequency table, row i is row i)."""
        touched = np.zeros(len(self.rows), dtype=bool)
        touched[list(self.ids.values())] = True
        arrays = {"rows": self.rows, "touched": touched, "bucket_ids": self.ngrams.bucket_ids, "bucket_rows": self.ngrams.rows, "mean": self.ngrams.mean}
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, folder / "rows.safetensors")
        ngrams = {name: getattr(self.ngrams, name) for name in ("shortest", "longest", "buckets", "norm")}
        content = {"tokenizer": describe(self.tokenizer), "encoder": dataclasses.asdict(self.encoder), "ngrams": ngrams}
        (folder / "lexicon.json").write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")
        (folder / "tokens.parquet").write_bytes(tokens_parquet.read_bytes())

    @staticmethod
    def open(folder: Path | str) -> Lexicon:
        """Reads a Lexicon folder (a Model folder holds the same files).

        Raises:
            FileNotFoundError: A file of it is missing.
        """
        folder = Path(folder)
        content = json.loads((folder / "lexicon.json").read_text(encoding="utf-8"))
        arrays = load_file(folder / "rows.safetensors")
        encoder = {name: value for name, value in content["encoder"].items() if name not in _GONE}
        table = pq.read_table(folder / "tokens.parquet", columns=["kind", "token"])
        kinds = np.array([KINDS.index(kind) for kind in table["kind"].to_pylist()], dtype=np.int8)
        return Lexicon(
            tokenizer=restore(content["tokenizer"]),
            encoder=ENCODERS[encoder["name"]](**encoder),
            ids=token_index(kinds, table["token"].to_pylist(), arrays["touched"]),
            rows=arrays["rows"],
            kinds=kinds,
            ngrams=NgramRows(bucket_ids=arrays["bucket_ids"], rows=arrays["bucket_rows"], mean=arrays["mean"], **content["ngrams"]),
        )


def token_index(kinds: np.ndarray, tokens: Sequence[str], touched: np.ndarray) -> dict[tuple[int, str], int]:
    """(kind, text) to row of the tokens that training touched: the row of any other is still where chance put it."""
    return {(int(kind), token): row for row, (kind, token, known) in enumerate(zip(kinds, tokens, touched, strict=True)) if known}
