"""The objective label compared with its formula."""

import math

import numpy as np
import pytest
import torch

from storage.arrays import Ragged
from tasks.train.objectives.label import Label, LabelPlan

LABELS = Ragged.from_rows(
    [[number % 5] if number % 3 else [number % 5, 5 + number % 2] for number in range(23)]
)
OBJECTIVE = Label(batch_size=7, temperature=0.3, context_temperature=0.15)


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def unit(rows: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.normalize(rows, dim=1)


def test_a_title_without_tokens_gives_no_gradient():
    targets, labels = (
        OBJECTIVE.collate(LabelPlan(np.array([0])), LABELS, np.array([False])),
        random(7, 3, seed=1).requires_grad_(),
    )
    loss = OBJECTIVE.loss(torch.zeros(1, 3, dtype=torch.float64), targets, {"labels": labels})
    (grad,) = torch.autograd.grad(loss, labels)
    assert loss.item() == pytest.approx(0.3 * math.log(7)) and not grad.any()


def test_collate_shares_a_title_among_its_categories():
    targets = OBJECTIVE.collate(LabelPlan(np.array([1, 0, 3])), LABELS, np.array([True, False, False]))
    assert targets.titles.tolist() == [0, 1, 1, 2, 2] and targets.labels.tolist() == [1, 0, 5, 3, 6]
    assert targets.shares.tolist() == [1, 0.5, 0.5, 0.5, 0.5]
    assert targets.aired.tolist() == [True, False, False]


@pytest.mark.parametrize("temperature", [0.4, 0.005])
def test_loss_and_gradient_equal_autograd(temperature: float):
    objective, aired = (
        Label(temperature=temperature, context_temperature=temperature / 2),
        np.arange(9) % 3 == 0,
    )
    targets = OBJECTIVE.collate(LabelPlan(np.arange(9)), LABELS, aired)
    temperatures = torch.from_numpy(np.where(aired, temperature / 2, temperature))
    weight = targets.shares.double() * temperatures[targets.titles]

    def plain(vectors: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        logs = torch.log_softmax(vectors @ unit(labels).T / temperatures.unsqueeze(1), 1)
        return -(logs[targets.titles, targets.labels] * weight).sum() / len(vectors)

    leaves = [random(9, 4).mul_(3).requires_grad_(), random(7, 4, seed=1).mul_(5).requires_grad_()]
    ours = objective.loss(unit(leaves[0]), targets, {"labels": leaves[1]}) * 3
    theirs = plain(unit(leaves[0]), leaves[1]) * 3
    torch.testing.assert_close(ours, theirs)
    for found, expected in zip(
        torch.autograd.grad(ours, leaves), torch.autograd.grad(theirs, leaves), strict=True
    ):
        torch.testing.assert_close(found, expected, atol=1e-12, rtol=1e-9)
