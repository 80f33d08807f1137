"""Opens a Corpus, the input of training: token ids, labels and held-out sets of titles, as memory maps.

The folder contains one or two files per field of OpenCorpus, and these files:

    family_hash.npy             a number in [0, 1) per title, by which training selects a validation set
    token_names.parquet         kind and text of each token, for messages
    variants.parquet            raw_title, title_id
    frequencies.parquet         counts of words per language, category and week, for SQL
    dropped_categories.parquet  categories that are not labels, with the reason and the number of titles
    spellings.json              most frequent spelling of each label (model.py)

The file sentences.npy exists only if a sentence encoder is used, and descriptions.npy only if the guides also
have descriptions.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from storage.arrays import Ragged, open_array
from storage.formats import vocabulary
from storage.formats.vocabulary import TRAIN

_LIST_COLUMNS = "context", "labels", "rare_categories", "channels", "days"
_LIST_FIELDS = [pa.field(name, pa.list_(pa.string())) for name in _LIST_COLUMNS]
TITLES = pa.schema([*vocabulary.TITLES, *_LIST_FIELDS, pa.field("oov", pa.bool_())])


@dataclass(frozen=True)
class OpenCorpus:
    """Memory-mapped arrays of a Corpus. Arrays have one entry per title unless the comment says otherwise."""

    folder: Path
    tokens: Ragged  # ids of in-vocabulary tokens of each title
    labels: Ragged  # label ids (categories) of each title
    split: np.ndarray  # int8, training or held-out set: index into storage.formats.vocabulary.SPLITS
    show: np.ndarray  # int32, id of the show: titles of a show have the same id
    family: np.ndarray  # int32, id of the franchise (first content word of the show key)
    oov: np.ndarray  # bool, whether the title contains a word that no training title contains
    rare: np.ndarray  # bool, whether all categories of the title are too rare in training titles to be labels
    kinds: np.ndarray  # int8, one per token: kind of token, index into tasks.text.words.KINDS
    weights: np.ndarray  # float32, one per token: inverse-frequency weight of updates of its embedding
    label_names: list[str]  # one name per label id
    sentences: np.ndarray  # float16 (titles, features): sentence vector of the title, unit norm or zero
    descriptions: np.ndarray  # float16 (titles, features): mean vector of descriptions, unit norm or zero

    def __len__(self) -> int:
        return len(self.split)

    @property
    def training(self) -> np.ndarray:
        """Returns the row indices of the training titles that have a label: int64 (any,)."""
        return np.flatnonzero((self.split == TRAIN) & (self.labels.lengths > 0))

    def complete_tokens(self, titles: np.ndarray) -> Ragged:
        """Returns the token ids of titles. A title with an out-of-vocabulary word gets no token ids.

        Args:
            titles: Row indices of titles: int64 (any,).
        """
        tokens = self.tokens.take(titles)
        return tokens.where(~self.oov[titles][tokens.row_ids])


def open_corpus(folder: Path) -> OpenCorpus:
    """Opens the arrays of a Corpus folder as memory maps. Reads only headers and label names."""
    array_names = ("split", "show", "family", "oov", "rare", "kinds", "weights")
    arrays = {name: open_array(folder, name) for name in array_names}
    empty_vectors = np.zeros((len(arrays["split"]), 0), dtype=np.float16)
    for name in ("sentences", "descriptions"):
        arrays[name] = open_array(folder, name) if (Path(folder) / f"{name}.npy").exists() else empty_vectors
        empty_vectors = np.broadcast_to(np.float16(0), arrays[name].shape)  # zeros that take no memory
    return OpenCorpus(
        folder=Path(folder),
        tokens=Ragged.open(folder, "tokens"),
        labels=Ragged.open(folder, "labels"),
        label_names=json.loads((Path(folder) / "label_names.json").read_text(encoding="utf-8")),
        **arrays,
    )
