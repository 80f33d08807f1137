"""Titles as bags of token ids, made by vectorised gathers; pure NumPy and torch.

``Bags`` names the distinct rows of a step (``ids``) and where each entry's row is among them (``tokens``): the table
is asked for each row once, however many titles hold it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from storage.arrays import Ragged


class Bags(NamedTuple):
    """Titles as bags over the rows of one step.

    Attributes:
        ids: int64 (unique,): table ids of the step's rows, rising.
        tokens: int64 (entries,): position in ``ids`` of each entry, title by title.
        kinds: int64 (entries,): kind of each entry (tasks.tokenize.words.KINDS).
        titles: int64 (entries,): which title of the batch holds it.
        offsets: int64 (titles + 1,): where each title's entries are.
    """

    ids: Tensor
    tokens: Tensor
    kinds: Tensor
    titles: Tensor
    offsets: Tensor

    @property
    def known(self) -> Tensor:
        """Which titles have an entry at all, bool (titles,): the others' vectors are zero."""
        return self.offsets[1:] > self.offsets[:-1]

    def to(self, device: torch.device) -> Bags:
        """The same on a device."""
        if self.ids.device == device:
            return self
        return Bags(*(tensor.to(device, non_blocking=True) for tensor in self))


class Bagger:
    """Makes bags; keeps a mark and a position of every token, so that de-duplicating needs no sort.

    Args:
        kinds: int8 (tokens,): kind of each token id.
    """

    def __init__(self, kinds: np.ndarray) -> None:
        self.kinds = np.array(kinds)
        self._marked = np.zeros(len(kinds), dtype=bool)
        self._position = np.zeros(len(kinds), dtype=np.int64)

    def bags(self, tokens: Ragged, keep: np.ndarray | None = None) -> Bags:
        """Bags of ragged token ids.

        Args:
            tokens: One row a title.
            keep: bool (entries,): entries that stay; None keeps all.
        """
        offsets, ids = np.array(tokens.offsets), tokens.values
        if keep is not None:
            offsets, ids = np.concatenate([[0], np.cumsum(keep)]).take(offsets), ids[keep]
        ids = ids.astype(np.int64)  # indices of another type are converted at every gather, slowly
        titles = np.repeat(np.arange(len(tokens)), np.diff(offsets))
        self._marked[ids] = True
        unique = np.flatnonzero(self._marked)
        self._marked[unique] = False
        self._position[unique] = np.arange(len(unique))
        arrays = (unique, self._position.take(ids), self.kinds.take(ids), titles, offsets)
        return Bags(*(torch.from_numpy(array.astype(np.int64, copy=False)) for array in arrays))
