"""What the PyTorch documentation leads to: EmbeddingBag, triplets with sampled negatives, SparseAdam, batch 1,024."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from benchmarks._rivals.contest import DIM, Contest, Trained, timed

BATCH, NEGATIVES, MARGIN, THREADS = 1024, 10, 0.2, 2


@dataclass(frozen=True)
class Plain:
    """Triplet margin loss on unit vectors: one positive of the same category, ten sampled negatives."""

    name: str = "plain PyTorch"
    epochs: Sequence[int] = (1, 2, 4, 8)

    def train(self, contest: Contest, epochs: int, seed: int) -> Trained:
        """Trains with as many threads as there are cores."""
        torch.manual_seed(seed)
        rng = np.random.default_rng(seed)
        table = nn.EmbeddingBag(len(contest.corpus.kinds), DIM, mode="mean", sparse=True)
        nn.init.normal_(table.weight, std=0.1)
        optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.01)
        before = torch.get_num_threads()
        torch.set_num_threads(THREADS)
        try:
            seconds = timed(lambda: [_epoch(contest, table, optimizer, rng) for _ in range(epochs)])
        finally:
            torch.set_num_threads(before)
        return Trained(seconds, lambda: _vectors(contest, table))


def _encode(contest: Contest, table: nn.EmbeddingBag, rows: np.ndarray) -> torch.Tensor:
    bags = contest.corpus.tokens.take(rows)
    return F.normalize(table(torch.from_numpy(bags.values.astype(np.int64)), torch.from_numpy(bags.offsets[:-1])), dim=1)


def _epoch(contest: Contest, table: nn.EmbeddingBag, optimizer: torch.optim.Optimizer, rng: np.random.Generator) -> None:
    every_anchor, every_positive = contest.pairs(rng)
    for start in range(0, len(every_anchor), BATCH):
        anchors, positives = every_anchor[start : start + BATCH], every_positive[start : start + BATCH]
        anchor, positive = _encode(contest, table, anchors), _encode(contest, table, positives)
        negative = _encode(contest, table, rng.choice(contest.training, size=len(anchors) * NEGATIVES)).view(len(anchors), NEGATIVES, DIM)
        near = (anchor * positive).sum(1, keepdim=True)
        far = (anchor.unsqueeze(1) * negative).sum(2)
        loss = (MARGIN - near + far).clamp(min=0).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def _vectors(contest: Contest, table: nn.EmbeddingBag) -> np.ndarray:
    with torch.inference_mode():
        return _encode(contest, table, np.arange(len(contest.corpus))).numpy()
