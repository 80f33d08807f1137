"""Groups of parameters with separate optimizers, dense parameters, and the check for finite gradients.

tests/tasks/recurrent/test_training.py trains rows and dense layers together.
"""

import pytest
import torch
from torch import nn

from tasks.optimizers import SGD, Adam
from tasks.optimizers.base import ParameterUpdate
from tasks.optimizers.parameter_groups import (
    DenseParameters,
    NonFiniteGradient,
    ParameterGroup,
    ParameterGroups,
)
from tasks.train.settings import TrainSettings


def test_dense_parameters_equal_torch_bitwise():
    """Parameters of zero to three axes, updated by Adam."""
    shapes, generator = {"scale": (), "bias": (3,), "weight": (4, 3), "kernel": (2, 3, 2)}, torch.Generator()
    start = {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    parameters, expected = (
        {name: nn.Parameter(tensor.clone()) for name, tensor in start.items()} for _ in range(2)
    )
    settings = TrainSettings(optimizer=Adam(learning_rate=0.0625), groups=())
    groups = ParameterGroups(list(shapes), settings)
    dense = DenseParameters(parameters, groups)
    optimizer = torch.optim.Adam(expected.values(), lr=0.0625, foreach=False)
    for step in range(1, 6):
        for name, shape in shapes.items():
            grad = torch.randn(shape, generator=generator)
            parameters[name].grad, expected[name].grad = grad, grad.clone()
        groups.update_(dense.updates(), 1.0, step)
        optimizer.step()
    for name, parameter in parameters.items():
        assert torch.equal(parameter, expected[name]) and parameter.grad is None, name
    assert dense.tensors()["scale.rows"].shape == (1, 1) and "kernel.state.first" in dense.tensors()


def test_the_first_pattern_that_matches_applies():
    groups = ParameterGroup(pattern="*.bias*", optimizer=Adam()), ParameterGroup(pattern="gru.*")
    names = ["rows", "gru.weight", "gru.bias_hh", "head.bias", "head.weight"]
    updaters = ParameterGroups(names, TrainSettings(optimizer=SGD(), groups=groups)).updaters
    chosen = [updaters[name].optimizer.name for name in names]
    assert chosen == ["sgd", "rowwise_adagrad", "adam", "adam", "sgd"]


def test_a_pattern_that_matches_nothing_is_refused():
    with pytest.raises(
        ValueError,
        match=r"the pattern 'grue\.\*' in train.groups matches no parameter; the parameters are rows, gru\.b",
    ):
        ParameterGroups(
            ["rows", "gru.bias"], TrainSettings(optimizer=SGD(), groups=(ParameterGroup(pattern="grue.*"),))
        )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("spoilt", ["rows", "gru.weight"])
def test_nothing_is_updated_when_one_gradient_is_not_finite(spoilt: str, value: float):
    groups = ParameterGroups(
        ["rows", "gru.weight"], TrainSettings(optimizer=Adam(), per_row_steps=True, groups=())
    )
    updates = {}
    for name in ("rows", "gru.weight"):
        rows = torch.ones(4, 3)
        updates[name] = ParameterUpdate(rows, torch.ones(4, 3), groups.updaters[name].initial_state(rows))
    updates[spoilt].grad[[1, 3], [0, 2]] = value
    with pytest.raises(
        NonFiniteGradient,
        match=f"non-finite gradient for {spoilt} in 2 rows, the first is 1",
    ) as caught:
        groups.update_(updates, 1.0, 1)
    assert caught.value.rows == [1, 3]
    for update in updates.values():
        assert torch.equal(update.rows, torch.ones(4, 3)) and all(
            not tensor.any() for tensor in update.state.values()
        )


def test_gradients_whose_sum_alone_is_too_large_pass():
    groups, rows = (
        ParameterGroups(["rows"], TrainSettings(optimizer=Adam(learning_rate=0.5), groups=())),
        torch.zeros(4, 3),
    )
    groups.update_(
        {
            "rows": ParameterUpdate(
                rows, torch.full((4, 3), 2e38), groups.updaters["rows"].initial_state(rows)
            )
        },
        1.0,
        1,
    )
    assert torch.isfinite(rows).all()
