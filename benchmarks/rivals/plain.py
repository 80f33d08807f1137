"""Two training loops in plain PyTorch: triplets with SparseAdam, and label mode with Adagrad.

The first uses EmbeddingBag, triplets with sampled negatives, and SparseAdam. The second uses EmbeddingBag,
cross-entropy of each title with one vector per label, Adagrad for the rows and Adam for the labels. Both use
batches of 1,024, the mean of rows, and unit norm.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.rivals.contest import DIM, Contest, Trained, timed

BATCH, NEGATIVES, MARGIN, TEMPERATURE = 1024, 10, 0.2, 0.2


@dataclass(frozen=True)
class Plain:
    """Rival with a triplet margin loss on unit vectors: a positive of the category, ten sampled negatives."""

    name: str = "PyTorch, triplets"
    epochs: Sequence[int] = (1, 2, 4, 8)

    def train(self, contest: Contest, epochs: int, seed: int, threads: int) -> Trained:
        """Trains the table by triplets and SparseAdam."""
        torch.manual_seed(seed)
        rng = np.random.default_rng(seed)
        table = _table(contest)
        optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.01)
        return Trained(
            timed(lambda: [_triplets(contest, table, optimizer, rng) for _ in range(epochs)]),
            lambda: _vectors(contest, table),
        )


@dataclass(frozen=True)
class LabelMode:
    """Rival with a cross-entropy of title and label vectors (unit norm, temperature .2).

    Only the first label of a title is used.
    """

    name: str = "PyTorch, label mode"
    epochs: Sequence[int] = (1, 2, 4, 8)

    def train(self, contest: Contest, epochs: int, seed: int, threads: int) -> Trained:
        """Trains table and label vectors by Adagrad and Adam."""
        torch.manual_seed(seed)
        rng = np.random.default_rng(seed)
        torch.sparse.check_sparse_tensor_invariants.disable()  # the default; setting it avoids a warning
        table = _table(contest)
        labels = nn.Parameter(torch.randn(len(contest.corpus.label_names), DIM) * 0.1)
        optimizers = [torch.optim.Adagrad(table.parameters(), lr=0.3), torch.optim.Adam([labels], lr=0.01)]
        wanted = torch.from_numpy(
            np.array([contest.labels_of(row)[0] for row in contest.training], dtype=np.int64)
        )
        return Trained(
            timed(lambda: [_classes(contest, table, labels, wanted, optimizers, rng) for _ in range(epochs)]),
            lambda: _vectors(contest, table),
        )


def _table(contest: Contest) -> nn.EmbeddingBag:
    table = nn.EmbeddingBag(len(contest.corpus.kinds), DIM, mode="mean", sparse=True)
    nn.init.normal_(table.weight, std=0.1)
    return table


def _encode(contest: Contest, table: nn.EmbeddingBag, rows: np.ndarray) -> torch.Tensor:
    bags = contest.corpus.tokens.take(rows)
    return F.normalize(
        table(torch.from_numpy(bags.values.astype(np.int64)), torch.from_numpy(bags.offsets[:-1])), dim=1
    )


def _classes(
    contest: Contest,
    table: nn.EmbeddingBag,
    labels: nn.Parameter,
    wanted: torch.Tensor,
    optimizers: Sequence[torch.optim.Optimizer],
    rng: np.random.Generator,
) -> None:
    """Trains an epoch of the cross-entropy loop."""
    for places in torch.from_numpy(rng.permutation(len(wanted))).split(BATCH):
        vectors = _encode(contest, table, contest.training[places.numpy()])
        loss = F.cross_entropy(vectors @ F.normalize(labels, dim=1).T / TEMPERATURE, wanted[places])
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()


def _triplets(
    contest: Contest, table: nn.EmbeddingBag, optimizer: torch.optim.Optimizer, rng: np.random.Generator
) -> None:
    """Trains an epoch of the triplet loop."""
    every_anchor, every_positive = contest.pairs(rng)
    for start in range(0, len(every_anchor), BATCH):
        anchors, positives = every_anchor[start : start + BATCH], every_positive[start : start + BATCH]
        anchor, positive = _encode(contest, table, anchors), _encode(contest, table, positives)
        negative = _encode(contest, table, rng.choice(contest.training, size=len(anchors) * NEGATIVES)).view(
            len(anchors), NEGATIVES, DIM
        )
        near = (anchor * positive).sum(1, keepdim=True)
        far = (anchor.unsqueeze(1) * negative).sum(2)
        loss = (MARGIN - near + far).clamp(min=0).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def _vectors(contest: Contest, table: nn.EmbeddingBag) -> np.ndarray:
    with torch.inference_mode():
        return _encode(contest, table, np.arange(len(contest.corpus))).numpy()
