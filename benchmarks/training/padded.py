"""Pads ragged titles to a rectangular block of token ids."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from storage.arrays import Ragged
from storage.formats.corpus import OpenCorpus, open_corpus


class Padded(NamedTuple):
    """Token ids, int32 (…, longest), padded with 0, and the lengths of the titles, int64 (…)."""

    ids: Tensor
    lengths: Tensor


def pad(tokens: Ragged, shape: tuple[int, ...] | None = None) -> Padded:
    """Pads ragged titles to the longest; ``shape`` is that of the titles, such as (examples, titles each)."""
    lengths = tokens.lengths
    longest = int(lengths.max(initial=0))
    ids = np.zeros((len(tokens), longest), dtype=np.int32)
    shifts = np.arange(len(tokens), dtype=np.int64) * longest - tokens.offsets[:-1]
    ids.reshape(-1)[np.arange(len(tokens.values)) + np.repeat(shifts, lengths)] = tokens.values
    shape = (len(tokens),) if shape is None else shape
    counts = torch.from_numpy(lengths.astype(np.int64).reshape(shape))
    return Padded(torch.from_numpy(ids.reshape(*shape, longest)), counts)


@dataclass
class PaddedTitles:
    """Maps rows of titles to padded batches, for ``Delivery``; pickled, it contains only the path of the
    corpus.
    """

    folder: Path
    _open: OpenCorpus | None = None

    def __getstate__(self) -> dict[str, object]:
        return {"folder": self.folder, "_open": None}

    def __getitem__(self, rows: np.ndarray) -> Padded:
        self._open = self._open or open_corpus(self.folder)
        return pad(self._open.tokens.take(rows.reshape(-1)), rows.shape)
