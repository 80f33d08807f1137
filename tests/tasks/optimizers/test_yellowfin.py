"""YellowFin against a plain loop in float64 that keeps the whole gradient of every step, zeros and all."""

import math

import numpy as np
import pytest
import torch

from storage.tables import Resident
from tasks.optimizers import SGD, Adam, Momentum
from tasks.optimizers.base import ParameterUpdate
from tasks.optimizers.parameter_groups import ParameterGroup, ParameterGroups
from tasks.optimizers.tuners import YellowFin
from tasks.train.settings import TrainSettings

TOKENS, DIM, STEPS, DENSE = 30, 4, 120, (3, 2)
BETA, WINDOW = 0.99, 5


def tuned(
    gradients: list[np.ndarray], touched: list[np.ndarray], sparsity: bool
) -> list[tuple[float, float]]:
    """Computes rate and momentum of each step except the first by the formulas, from dense gradients."""
    mean, averages, found = np.zeros_like(gradients[0]), {}, []

    def average(name: str, value: float) -> float:
        averages[name] = BETA * averages.get(name, 0.0) + (1 - BETA) * value
        return averages[name] / (1 - BETA**step)

    for step, gradient in enumerate(gradients, start=1):
        window = [float((one**2).sum()) for one in gradients[max(0, step - WINDOW) : step]]
        share = average("share", touched[step - 1].mean()) if sparsity else 1.0
        h_min, h_max = (
            math.exp(average("low", math.log(min(window)))) * share,
            average("high", max(window)) * share,
        )
        square = average("square", window[-1])
        average("norm", math.sqrt(window[-1]))
        mean = BETA * mean + (1 - BETA) * gradient
        variance = (square - float((mean**2).sum()) / (1 - BETA**step) ** 2) * share
        distance = average("distance", averages["norm"] / averages["square"]) / math.sqrt(share)
        p = distance**2 * h_min**2 / (2 * max(variance, 1e-15))
        roots = np.roots([1, 0, p, p])
        root = float(roots[np.abs(roots.imag).argmin()].real) + 1
        assert root**2 * distance**2 * h_min**2 == pytest.approx(
            (1 - root) ** 3 * 2 * variance * root, rel=1e-6
        )  # the derivative of what is minimised is zero
        spread = math.sqrt(h_max / h_min)
        root = max(root, (spread - 1) / (spread + 1))
        found.append(((1 - root) ** 2 / h_min * min(1.0, step / (10 * WINDOW)), root**2))
    return found[1:]


def world(seed: int = 4) -> tuple[list[torch.Tensor], list[torch.Tensor], list[torch.Tensor]]:
    """Makes the ids, their gradients and the gradient of a dense parameter, for every step."""
    generator = torch.Generator().manual_seed(seed)
    ids = [torch.randperm(TOKENS, generator=generator)[:7].sort().values for _ in range(STEPS)]
    common = torch.randn(TOKENS, DIM, generator=generator)
    grads = [common[chosen] + 0.7 * torch.randn(7, DIM, generator=generator) for chosen in ids]
    return ids, grads, [1 + 0.5 * torch.randn(*DENSE, generator=generator) for _ in range(STEPS)]


@pytest.mark.parametrize("sparsity", [True, False])
def test_yellowfin_equals_a_loop_over_complete_gradients(sparsity: bool):
    ids, grads, dense_grads = world()
    tuner, optimizer = (
        YellowFin(window=WINDOW, beta=BETA, sparsity_debias=sparsity),
        Momentum(learning_rate=0.01, momentum=0.3),
    )
    groups = ParameterGroups(["rows", "dense"], TrainSettings(optimizer=optimizer, tuner=tuner, groups=()))
    rows, dense = torch.ones(TOKENS, DIM), torch.ones(*DENSE)
    table, dense_state = (
        Resident(rows.clone(), groups.updaters["rows"].initial_state(rows)),
        groups.updaters["dense"].initial_state(dense),
    )

    whole, touched = [], []
    for chosen, grad, dense_grad in zip(ids, grads, dense_grads, strict=True):
        gradient = np.zeros((TOKENS, DIM))
        gradient[chosen.numpy()] = grad.double().numpy()
        whole.append(np.concatenate([gradient.ravel(), dense_grad.double().numpy().ravel()]))
        mask = np.zeros((TOKENS, DIM))
        mask[chosen.numpy()] = 1
        touched.append(np.concatenate([mask.ravel(), np.ones(dense_grad.numel())]))
    expected = [(0.01, 0.3), *tuned(whole, touched, sparsity)]

    place, velocity = np.ones_like(whole[0]), np.zeros_like(whole[0])
    for step, (chosen, grad, dense_grad) in enumerate(zip(ids, grads, dense_grads, strict=True), start=1):
        some, state = table.gather(chosen)
        groups.update_(
            {
                "rows": ParameterUpdate(some, grad.clone(), state, table_rows=TOKENS),
                "dense": ParameterUpdate(dense, dense_grad.clone(), dense_state),
            },
            0.5,
            step,
        )
        table.write_back(chosen, some, state)
        rate, momentum = expected[step - 1]
        velocity = np.where(touched[step - 1], momentum * velocity + whole[step - 1], velocity)
        place = place - touched[step - 1] * 0.5 * rate * velocity
        ours = torch.cat([table.rows.flatten(), dense.flatten()]).double().numpy()
        np.testing.assert_allclose(ours, place, rtol=1e-5, atol=1e-5, err_msg=f"step {step}")
    assert len({round(momentum, 3) for _, momentum in expected}) > 20  # it tuned


def test_it_minimizes_a_noisy_quadratic_without_a_learning_rate():
    generator = torch.Generator().manual_seed(1)
    target, rows = torch.randn(20, 3, generator=generator), torch.zeros(20, 3)
    groups = ParameterGroups(
        ["rows"], TrainSettings(optimizer=Momentum(learning_rate=1e-4), tuner=YellowFin(beta=0.99), groups=())
    )
    state = groups.updaters["rows"].initial_state(rows)
    for step in range(1, 1001):
        grad = 8 * (rows - target) + 0.1 * torch.randn(20, 3, generator=generator)
        groups.update_({"rows": ParameterUpdate(rows, grad, state)}, 1.0, step)
    assert (rows - target).abs().max() < 0.1


@pytest.mark.parametrize("optimizer", [SGD(), Adam()])
def test_another_optimizer_is_refused(optimizer):
    groups = ParameterGroups(["rows"], TrainSettings(optimizer=optimizer, tuner=YellowFin(), groups=()))
    with pytest.raises(
        ValueError,
        match=f"requires the optimizer momentum, got '{optimizer.name}'; set train.optimizer=momentum",
    ):
        groups.updaters["rows"].initial_state(torch.ones(2, 2))


def test_other_parameter_groups_are_not_tuned():
    groups = ParameterGroups(
        ["rows", "head.bias"],
        TrainSettings(
            optimizer=Momentum(),
            groups=(ParameterGroup(pattern="head.*", optimizer=SGD(learning_rate=1.0)),),
            tuner=YellowFin(),
        ),
    )
    rows, bias = torch.ones(2, 2), torch.ones(2, 1)
    updates = {
        name: ParameterUpdate(tensor, torch.ones_like(tensor), groups.updaters[name].initial_state(tensor))
        for name, tensor in (("rows", rows), ("head.bias", bias))
    }
    assert set(updates["head.bias"].state) == set() and set(updates["rows"].state) == {
        "velocity",
        "grad_mean",
        "seen",
    }
    for step in (1, 2):
        for update in updates.values():
            update.grad = torch.ones_like(update.rows)
        groups.update_(updates, 1.0, step)
    assert bias.flatten().tolist() == [-1.0, -1.0]


def test_a_step_that_moves_nothing_under_the_main_optimizer_tunes_nothing():
    """Where groups move all there is, there was a division by zero in the first step."""
    by_sgd = (ParameterGroup(pattern="bias", optimizer=SGD(learning_rate=1.0)),)
    with pytest.raises(
        ValueError, match=r"the tuner yellowfin tunes train\.optimizer, but .* for all parameters \(bias\)"
    ):
        ParameterGroups(["bias"], TrainSettings(optimizer=Momentum(), groups=by_sgd, tuner=YellowFin()))
    rows = torch.zeros(2, 3)
    ParameterGroups(
        ["rows", "bias"], TrainSettings(optimizer=Momentum(), groups=by_sgd, tuner=YellowFin())
    ).update_({"bias": ParameterUpdate(rows, torch.ones(2, 3), {})}, 1.0, 1)
    assert torch.equal(rows, -torch.ones(2, 3))
