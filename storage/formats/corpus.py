"""The Corpus on disk: token ids, labels and splits as memory maps; tables for people and SQL.

Beside what OpenCorpus names: ``family_hash.npy`` (float64, a number in [0, 1) for each title, by which
training sets titles of its own aside), ``token_names.parquet`` (kind, token; for messages), variants.parquet,
frequencies.parquet, dropped_categories.parquet (category, reason, titles) and spellings.json (model.py).
Without a sentence encoder sentences.npy and descriptions.npy do not exist, without a description
descriptions.npy does not.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from storage.arrays import Ragged, open_array
from storage.formats import vocabulary
from storage.formats.vocabulary import TRAIN

_LISTS = [(name, pa.list_(pa.string())) for name in ("context", "labels", "channels", "days")]
TITLES = pa.schema([*vocabulary.TITLES, *map(pa.field, *zip(*_LISTS)), pa.field("oov", pa.bool_())])


@dataclass(frozen=True)
class OpenCorpus:
    """A Corpus folder, mapped. Every array has one entry a title unless said otherwise."""

    folder: Path
    tokens: Ragged  # ids of known tokens
    labels: Ragged  # label ids
    split: np.ndarray  # int8, index into storage.formats.vocabulary.SPLITS
    show: np.ndarray  # int32, equal for titles of one show
    family: np.ndarray  # int32, equal for titles of one franchise
    oov: np.ndarray  # bool, holds a word that no training title holds
    kinds: np.ndarray  # int8, one a token
    weights: np.ndarray  # float32, one a token: inverse-frequency weight of its row's step
    label_names: list[str]  # one a label
    sentences: np.ndarray  # float16 (titles, features): sentence vector of the title, unit norm or zero
    descriptions: np.ndarray  # float16 (titles, features): mean of its descriptions', unit norm or zero

    def __len__(self) -> int:
        return len(self.split)

    @property
    def training(self) -> np.ndarray:
        """int64 rows of labelled training titles."""
        return np.flatnonzero((self.split == TRAIN) & (self.labels.lengths > 0))

    def complete_tokens(self, titles: np.ndarray) -> Ragged:
        """Token ids of some titles (taken,); none of a title that holds a word without an id."""
        tokens = self.tokens.take(titles)
        return tokens.where(~self.oov[titles][tokens.owners])


def open_corpus(folder: Path) -> OpenCorpus:
    """Maps a Corpus folder; reads headers and label names only."""
    single = ("split", "show", "family", "oov", "kinds", "weights")
    opened = {name: open_array(folder, name) for name in single}
    absent = np.zeros((len(opened["split"]), 0), dtype=np.float16)
    for name in ("sentences", "descriptions"):
        opened[name] = open_array(folder, name) if (Path(folder) / f"{name}.npy").exists() else absent
        absent = np.broadcast_to(np.float16(0), opened[name].shape)  # zeros that take no memory
    return OpenCorpus(
        folder=Path(folder),
        tokens=Ragged.open(folder, "tokens"),
        labels=Ragged.open(folder, "labels"),
        label_names=json.loads((Path(folder) / "label_names.json").read_text(encoding="utf-8")),
        **opened,
    )
