"""The Corpus on disk: token ids, labels and splits as memory maps; and the DataLoader that fills it.

A Dataset holds paths or short lists, never arrays: a pickled memory map would ship its whole data to each worker.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from torch.utils.data import DataLoader, Dataset

from storage.arrays import Ragged, open_array

TRAIN = 0  # index of "train" in tasks.tokenize.splits.SPLITS


class TitleTokenizer(Protocol):
    """What tasks.tokenize.words offers."""

    def tokens(self, raw: str) -> list[tuple[int, str]]:
        """Tokens of a raw title as (kind, text)."""
        ...


@dataclass(frozen=True)
class OpenCorpus:
    """A Corpus folder, mapped. Every array has one entry a title unless said otherwise.

    Attributes:
        tokens: Token ids of known tokens.
        labels: Label ids.
        split: int8, index into tasks.tokenize.splits.SPLITS.
        show: int32, equal for titles of one show.
        family: int32, equal for titles of one franchise.
        oov: bool, holds a word that no training title holds.
        kinds: int8, one a token.
        weights: float32, one a token: inverse-frequency weight of its row's step.
        label_names: One a label.
    """

    tokens: Ragged
    labels: Ragged
    split: np.ndarray
    show: np.ndarray
    family: np.ndarray
    oov: np.ndarray
    kinds: np.ndarray
    weights: np.ndarray
    label_names: list[str]

    def __len__(self) -> int:
        return len(self.split)

    @property
    def training(self) -> np.ndarray:
        """int64 rows of labelled training titles."""
        return np.flatnonzero((self.split == TRAIN) & (self.labels.lengths > 0))


def open_corpus(folder: Path) -> OpenCorpus:
    """Maps a Corpus folder; reads headers and label names only."""
    names = json.loads((Path(folder) / "label_names.json").read_text(encoding="utf-8"))
    single = {name: open_array(folder, name) for name in ("split", "show", "family", "oov", "kinds", "weights")}
    return OpenCorpus(tokens=Ragged.open(folder, "tokens"), labels=Ragged.open(folder, "labels"), label_names=names, **single)


class _Chunks(Dataset[tuple[np.ndarray, np.ndarray, np.ndarray]]):
    """Chunks of titles to (lengths, token ids, holds an unknown word)."""

    def __init__(self, raw_titles: Sequence[str], tokenizer: TitleTokenizer, ids: dict[tuple[int, str], int], chunk: int) -> None:
        self.raw_titles, self.tokenizer, self.ids, self.chunk = list(raw_titles), tokenizer, ids, chunk

    def __len__(self) -> int:
        return -(-len(self.raw_titles) // self.chunk)

    def __getitem__(self, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        lengths, values, oov = [], [], []
        for raw in self.raw_titles[number * self.chunk : (number + 1) * self.chunk]:
            tokens = self.tokenizer.tokens(raw)
            known = [self.ids[token] for token in tokens if token in self.ids]
            lengths.append(len(known))
            values += known
            oov.append(any(token[0] == 0 and token not in self.ids for token in tokens))
        return np.array(lengths, dtype=np.int64), np.array(values, dtype=np.int32), np.array(oov, dtype=bool)


def token_ids(
    raw_titles: Sequence[str], tokenizer: TitleTokenizer, ids: dict[tuple[int, str], int], *, chunk: int, workers: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Known token ids of titles, chunk by chunk in order, by DataLoader workers (the result does not depend on how many).

    Args:
        raw_titles: As the guide has them.
        tokenizer: The vocabulary's tokenizer.
        ids: (kind, text) to token id.
        chunk: Titles a chunk.
        workers: Processes; 0 works in this one. Started by forkserver: a forked child of a Prefect task dies.

    Yields:
        Lengths, ids and out-of-vocabulary flags of a chunk.
    """
    context = "forkserver" if workers else None
    yield from DataLoader(_Chunks(raw_titles, tokenizer, ids, chunk), batch_size=None, num_workers=workers, multiprocessing_context=context, prefetch_factor=4 if workers else None)
