"""n-gram rows by stochastic gradient descent: words as the titles of the training loop, their n-grams as its tokens.

The encoder is the mean of a word's n-gram rows m_w, the loss the mean over the batch of ½ · ‖m_w − t_w‖² or of
1 − cos(m_w, t_w). Rows, rules, schedule, batches and the refusal of numbers that are none are those of tasks/train.

References:
    Zhao, Mudgal, Liang. Generalizing Word Embeddings using Bag of Subwords. EMNLP 2018, equations 1 and 2.
    https://arxiv.org/abs/1809.04259
    We differ: rates for a row, not one for all (their code steps every n-gram as if it stood alone in its word); unit-norm
    centred targets.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from storage.arrays import Ragged
from tasks.form import FORM
from tasks.preprocess.bags import Bags
from tasks.preprocess.corpus import TRAIN
from tasks.tokenize.words import NGRAM
from tasks.train.encoders.bag import sum_rows
from tasks.train.loop import Training
from tasks.train.rules import Adagrad, Rule
from tasks.train.settings import TrainSettings


@dataclass(frozen=True, kw_only=True)
class Descent:
    """Gradient descent through the training loop; for comparison with ridge regression."""

    __pydantic_config__ = FORM
    name: Literal["descent"] = "descent"
    loss: Literal["squared", "cosine"] = field(default="squared", metadata={"description": "Squared distance or cosine between a word and its n-grams' mean"})
    rule: Rule = field(default=Adagrad(learning_rate=0.1), metadata={"description": "How an n-gram's row moves, given its gradient and its state"})
    epochs: int = field(default=10, metadata={"description": "How often every word is shown", "ge": 1})
    batch: int = field(default=256, metadata={"description": "Words a step", "ge": 1})
    seed: int = field(default=1, metadata={"description": "Of the order of the words", "ge": 0})

    def solve(self, bags: Ragged, buckets: int, targets: np.ndarray) -> np.ndarray:
        """Rows whose means over each word's bag come near its target; arguments as in Ridge."""
        settings = TrainSettings(
            dim=targets.shape[1], rule=self.rule, epochs=self.epochs, patience=0, seed=self.seed, start=1e-3, dropout=0.0, context_dropout=0.0, device="cpu", workers=0
        )
        settings = replace(settings, encoder=cast(Any, MeanRows()), objective=cast(Any, Regression(targets, self.loss, self.batch)))
        with tempfile.TemporaryDirectory() as folder:
            _write_corpus(Path(folder), bags, buckets)
            training = Training(Path(folder), settings)
            for _ in training.run():
                pass
        return training.table.gather(torch.arange(buckets))[0].numpy()


class MeanRows:
    """Encoder: the mean of a bag's rows."""

    def encode(self, rows: Tensor, bags: Bags) -> Tensor:
        """float32 (titles, dim); zero for an empty bag."""
        counts = torch.bincount(bags.titles, minlength=len(bags.offsets) - 1)
        return sum_rows(rows, bags, counts[bags.titles].to(rows.dtype).reciprocal())


class Wanted(NamedTuple):
    """What a batch should become: float32 (titles, dim)."""

    targets: Tensor


class Regression:
    """Objective: each title has a vector to come near to.

    Args:
        targets: float32 (titles, dim).
        loss: "squared" or "cosine".
        batch: Titles a step.
    """

    def __init__(self, targets: np.ndarray, loss: Literal["squared", "cosine"], batch: int) -> None:
        self.targets, self.kind, self.batch = np.ascontiguousarray(targets, dtype=np.float32), loss, batch

    def plan_epoch(self, rows: np.ndarray, labels: Ragged, rng: np.random.Generator) -> list[_Plan]:
        """Every title once, in any order."""
        order = rng.permutation(rows)
        return [_Plan(order[start : start + self.batch]) for start in range(0, len(order), self.batch)]

    def collate(self, plan: _Plan, labels: Ragged, aired: np.ndarray) -> Wanted:
        """Targets of a batch."""
        return Wanted(torch.from_numpy(self.targets[plan.rows]))

    def parameters(self, labels: int, dim: int) -> dict[str, tuple[int, int]]:
        """None but the rows."""
        return {}

    def loss(self, vectors: Tensor, facts: Wanted, parameters: Mapping[str, Tensor]) -> Tensor:
        """Mean over the batch."""
        if self.kind == "squared":
            return (vectors - facts.targets).square().sum(1).mean() / 2
        return 1 - F.cosine_similarity(vectors, facts.targets, dim=1).mean()


class _Plan(NamedTuple):
    """Corpus rows of a batch: int64 (titles,)."""

    rows: np.ndarray


def _write_corpus(folder: Path, bags: Ragged, buckets: int) -> None:
    """The words as a corpus: every word a training title (of one label, which no one asks about), its n-grams its tokens."""
    n = len(bags)
    bags.save(folder, "tokens")
    Ragged(np.arange(n + 1), np.zeros(n, dtype=np.int32)).save(folder, "labels")
    single = {"split": np.full(n, TRAIN, dtype=np.int8), "oov": np.zeros(n, dtype=bool)}
    single |= {name: np.arange(n, dtype=np.int32) for name in ("show", "family")}
    single |= {"kinds": np.full(buckets, NGRAM, dtype=np.int8), "weights": np.ones(buckets, dtype=np.float32)}
    for name, array in single.items():
        np.save(folder / f"{name}.npy", array)
    (folder / "label_names.json").write_text(json.dumps(["word"]))
