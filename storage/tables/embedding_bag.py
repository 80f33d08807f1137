"""``nn.EmbeddingBag`` for tables larger than GPU memory."""

from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from storage.tables.embedding import OffloadedEmbedding


class OffloadedEmbeddingBag(OffloadedEmbedding):
    """Sums, means or maxima of rows per bag, with rows and optimizer state outside of device memory.

    Args:
        mode: "sum", "mean" or "max".
        include_last_offset: Whether ``offsets`` ends with the number of ids.
        arguments: Positional arguments of ``OffloadedEmbedding``.
        options: Other arguments of ``OffloadedEmbedding``. Bags do not contain ids equal to ``padding_idx``.
    """

    def __init__(
        self,
        *arguments: int,
        mode: Literal["sum", "mean", "max"] = "mean",
        include_last_offset: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self.mode, self.include_last_offset = mode, include_last_offset

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, ids: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        """Returns a vector per bag, (bags, embedding_dim), on the device.

        Args:
            ids: Ids of bags of equal size, (bags, size), or of all bags, (any,).
            offsets: Start of each bag in ``ids`` of one dimension, (bags,).
            per_sample_weights: Factor of each id, of the shape of ``ids``; only with mode "sum".
        """
        device = self.table.device
        rows, positions = self._rows_of(ids.to(device, torch.int64))
        return F.embedding_bag(
            positions,
            rows,
            None if offsets is None else offsets.to(device, torch.int64),
            mode=self.mode,
            per_sample_weights=None if per_sample_weights is None else per_sample_weights.to(device),
            include_last_offset=self.include_last_offset,
            padding_idx=self._padding_position if self._padding_position >= 0 else None,
        )
