"""The Corpus on disk: token ids, labels and splits as memory maps."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from storage.arrays import Ragged, open_array

TRAIN = 0  # index of "train" in tasks.tokenize.splits.SPLITS


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
