"""Titles as a padded block of token ids, beside the ragged form: the same tokens, for code that wants a rectangle."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from storage.arrays import Ragged
from tasks.preprocess.corpus import OpenCorpus, open_corpus


class Padded(NamedTuple):
    """Token ids in a rectangle.

    Attributes:
        ids: int32 (…, longest): token ids, 0 behind each title's last.
        lengths: int64 (…): how many of them count.
    """

    ids: Tensor
    lengths: Tensor

    @property
    def mask(self) -> Tensor:
        """Which ids count: bool (…, longest)."""
        return torch.arange(self.ids.shape[-1], device=self.ids.device) < self.lengths.unsqueeze(-1)

    def ragged(self) -> Ragged:
        """The same titles in the ragged form, one row a title."""
        lengths = self.lengths.reshape(-1).numpy()
        return Ragged(np.concatenate([[0], np.cumsum(lengths)]), self.ids[self.mask].numpy())


def pad(tokens: Ragged, shape: tuple[int, ...] | None = None) -> Padded:
    """Pads ragged titles to the longest of them.

    Args:
        tokens: One row a title.
        shape: Of the titles, such as (examples, titles each); (titles,) by default.
    """
    lengths = tokens.lengths
    longest = int(lengths.max(initial=0))
    ids = np.zeros((len(tokens), longest), dtype=np.int32)
    starts = np.arange(len(tokens), dtype=np.int64) * longest
    ids.reshape(-1)[np.arange(len(tokens.values)) + np.repeat(starts - tokens.offsets[:-1], lengths)] = tokens.values
    shape = (len(tokens),) if shape is None else shape
    return Padded(torch.from_numpy(ids.reshape(*shape, longest)), torch.from_numpy(lengths.astype(np.int64).reshape(shape)))


class PaddedTitles:
    """Rows of titles to padded batches, for ``Delivery``. Pickled, it holds the corpus' path, never its arrays.

    Args:
        folder: Of a Corpus.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._open: OpenCorpus | None = None

    def __getstate__(self) -> dict[str, object]:
        return {"folder": self.folder, "_open": None}

    def __getitem__(self, rows: np.ndarray) -> Padded:
        """Padded titles.

        Args:
            rows: Integers of any shape, such as (examples, titles each).
        """
        self._open = self._open or open_corpus(self.folder)
        return pad(self._open.tokens.take(rows.reshape(-1)), rows.shape)
