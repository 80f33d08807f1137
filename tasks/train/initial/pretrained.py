"""Words start where a pretrained model has them: fastText's .bin and .ftz, or a text form; other rows by chance.

A word is known if the file has a row for it or for one of its n-grams. The known words' vectors are brought to unit norm
and centred (a mean that all words share says nothing of a title, a sum of words), then taken from the file's
dimensions to ours by a linear map learnt from them: onto their principal directions, which loses least of any linear map
in squared error. A file of fewer dimensions fills the first ones, the others stay as chance put them. One number for all
gives them the spread of the other rows.

References:
    The mean: Mu, Viswanath. All-but-the-Top. ICLR 2018, section 2. https://arxiv.org/abs/1702.01417. The map: Jolliffe,
    Principal Component Analysis, 2002, property A5 (least squared error).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow.parquet as pq
import torch
from torch import Tensor

from tasks.augment.fasttext.opening import Words, open_words
from tasks.augment.ngrams import encode
from tasks.form import FORM
from tasks.train.initial.held import Held

_BLOCK = 16_384  # words looked up at once: 20 MB of 300 dimensions


@dataclass(frozen=True, kw_only=True)
class PretrainedWords:
    """Words start from a file of word vectors, and may be held to it."""

    __pydantic_config__ = FORM
    name: Literal["pretrained"] = "pretrained"
    model: str = field(default="", metadata={"description": "fastText model (.bin, .ftz), .vec, word2vec or GloVe file, or a compact store", "content": True})
    freedom: float = field(default=1.0, metadata={"description": "Share of each step that words of the file take; 0 freezes them", "ge": 0, "le": 1})
    pull: float = field(default=0.0, metadata={"description": "Strength that pulls words of the file back to where they started", "ge": 0})

    def place_(self, rows: Tensor, corpus_folder: Path) -> Held:
        """Puts the rows of known words where the file has them; arguments as in Scattered.

        Raises:
            ValueError: No file is named, it knows no word of the vocabulary, or the Corpus does not say its words.
            FastTextError, VectorFileError: The file is none of word vectors.
            OSError: It cannot be read.
        """
        if not self.model:
            raise ValueError("train.initial.model names no file of word vectors; --set train.initial.model=FILE does")
        ids, words = _words(corpus_folder)
        wanted = {encode(word) for word in words}
        file = open_words(self.model, wanted.__contains__)
        known = file.known(words) if words else np.zeros(0, dtype=bool)
        if not known.any():
            raise ValueError(f"{self.model} knows none of the {len(words)} words of the corpus; is it of another language?")
        ids, words = ids[known], [word for word, own in zip(words, known, strict=True) if own]
        mean, matrix = learn_map(file, words, rows.shape[1])
        placed = np.concatenate([(block - mean) @ matrix for block in _unit_blocks(file, words)])
        placed *= float(rows.std()) / max(float(np.sqrt(np.mean(placed**2))), 1e-12)
        at = torch.from_numpy(ids)
        rows[at, : placed.shape[1]] = torch.from_numpy(placed.astype(np.float32))
        return Held(at, rows[at].clone(), self.freedom, self.pull)


def learn_map(file: Words, words: list[str], dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean of words' unit vectors, and their principal directions, the strongest first.

    Returns:
        float32 (file's dim,) and (file's dim, at most dim); each direction's largest entry is positive.
    """
    total, gram = np.zeros(file.dim), np.zeros((file.dim, file.dim))
    for block in _unit_blocks(file, words):
        total += block.sum(axis=0, dtype=np.float64)
        gram += block.astype(np.float64).T @ block
    mean = total / len(words)
    _, directions = np.linalg.eigh(gram / len(words) - np.outer(mean, mean))  # variances rise
    kept = directions[:, ::-1][:, :dim]
    signs = np.sign(np.take_along_axis(kept, np.abs(kept).argmax(axis=0)[None], axis=0))
    return mean.astype(np.float32), (kept * signs).astype(np.float32)


def _unit_blocks(file: Words, words: list[str]) -> Iterator[np.ndarray]:
    """Unit vectors of the words: float32 (block, file's dim)."""
    for start in range(0, len(words), _BLOCK):
        vectors = file.vectors(words[start : start + _BLOCK])
        yield vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def _words(corpus_folder: Path) -> tuple[np.ndarray, list[str]]:
    """Token ids of the words, int64, rising, and the words."""
    path = corpus_folder / "token_names.parquet"
    if not path.exists():
        raise ValueError(f"{path} is missing: the corpus does not say which words its tokens are; make it anew")
    table = pq.read_table(path, columns=["kind", "token"])
    kinds, tokens = table["kind"].to_pylist(), table["token"].to_pylist()
    ids = [number for number, kind in enumerate(kinds) if kind == "word"]
    return np.array(ids, dtype=np.int64), [tokens[number] for number in ids]
