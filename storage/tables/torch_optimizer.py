"""Optimizer of embedding rows with the interface of ``torch.optim.Optimizer``.

Learning-rate schedulers, GradScaler, ``clip_grad_norm_`` and hooks work as with any optimizer of torch.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from storage.tables.embedding import OffloadedEmbedding


class RowsOptimizer(torch.optim.Optimizer):
    """Updates the rows of embeddings with the optimizer of each embedding.

    Each embedding has a parameter group, whose only hyper-parameter is ``lr``. All other hyper-parameters are
    fields of the optimizer of the embedding. The ``params`` of a group are the gathered rows with a gradient,
    so they change with every batch.

    Args:
        embeddings: Embeddings to update.
        lr: Learning rate; None: the learning rate of the optimizer of each embedding.
    """

    def __init__(self, *embeddings: OffloadedEmbedding, lr: float | None = None) -> None:
        rates = [embedding.optimizer.learning_rate if lr is None else lr for embedding in embeddings]
        super().__init__([{"params": [], "lr": rate} for rate in rates], {"lr": lr})
        self.embeddings = embeddings
        for group, embedding in zip(self.param_groups, embeddings, strict=True):
            group["params"] = _GatheredRows(embedding)

    def step(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, closure: Callable[[], float] | None = None
    ) -> float | None:
        """Updates the rows that have a gradient, and discards the gradients.

        Args:
            closure: Function that computes the loss and its gradients before the update, as in torch.

        Returns:
            The result of ``closure``, or None without a closure.

        Raises:
            ArithmeticError: A gradient is not finite; see ``OffloadedEmbedding.step``.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group, embedding in zip(self.param_groups, self.embeddings, strict=True):
            embedding.step(group["lr"])
        return loss

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Raises a TypeError if called after construction, because each group belongs to an embedding."""
        if hasattr(self, "embeddings"):
            remedy = "pass all embeddings to the constructor, and use a torch optimizer for other parameters"
            raise TypeError(f"a RowsOptimizer has one parameter group per embedding: {remedy}")
        super().add_param_group(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Discards the gradients of all embeddings."""
        for embedding in self.embeddings:
            embedding.zero_grad(set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """Returns learning rates and step counts, without the optimizer state of the rows.

        ``OffloadedEmbedding.save`` writes the optimizer state.
        """
        groups = [
            {**group, "params": [], "steps": embedding.steps}
            for group, embedding in zip(self.param_groups, self.embeddings, strict=True)
        ]
        return {"state": {}, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores learning rates and step counts.

        Raises:
            ValueError: ``state_dict`` was saved with another number of embeddings.
        """
        saved_groups = state_dict["param_groups"]
        if len(saved_groups) != len(self.embeddings):
            raise ValueError(f"the state has {len(saved_groups)} groups, expected {len(self.embeddings)}")
        for group, embedding, saved in zip(self.param_groups, self.embeddings, saved_groups, strict=True):
            embedding.steps = saved["steps"]
            group.update({name: saved[name] for name in saved.keys() - {"params", "steps"}})


class _GatheredRows(list[Tensor]):
    """List whose content is always the current result of ``OffloadedEmbedding.leaves``."""

    def __init__(self, embedding: OffloadedEmbedding) -> None:
        super().__init__()
        self._embedding = embedding

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self._embedding.leaves())

    def __len__(self) -> int:
        return len(self._embedding.leaves())

    def __getitem__(self, index: Any) -> Any:
        return self._embedding.leaves()[index]
