"""Updates embedding tables and dense parameters, each with the optimizer of its parameter group.

A parameter group consists of a pattern and an optimizer, which updates the parameters whose names match the
pattern. ``train.optimizer`` updates all other parameters. If ``per_row_steps`` is set, the optimizer state of
a parameter contains ``steps``, float32 (tokens, 1), the number of steps in which each row has occurred. This
number is exact up to 16 million.
"""

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from storage.lazy import Tensor, torch
from tasks.form import configurable, setting
from tasks.optimizers import Optimizer, RowwiseAdagrad
from tasks.optimizers.base import ParameterUpdate, State
from tasks.optimizers.clipping import Clipping, NoClipping
from tasks.optimizers.tuners import NoTuner, Tuner


@configurable
class ParameterGroup:
    """Setting: a separate optimizer for the parameters whose names match a pattern."""

    pattern: str = setting(..., "Pattern of parameter names, such as labels* or rows (the embedding table)")
    optimizer: Optimizer = setting(RowwiseAdagrad(), "Optimizer of these parameters")


@configurable
class UpdateSettings:
    """Settings that determine how gradients update parameters: optimizers, clipping and tuner."""

    optimizer: Optimizer = setting(RowwiseAdagrad(), "How rows are updated from their gradients and state")
    tuner: Tuner = setting(
        NoTuner(), "How learning rate and momentum of the momentum optimizer are adapted during training"
    )
    clipping: Clipping = setting(NoClipping(), "How gradients are limited before an update")
    per_row_steps: bool = setting(
        False, "Bias corrections use the number of steps in which a row has occurred instead of all steps"
    )
    groups: tuple[ParameterGroup, ...] = setting(
        (), "Separate optimizers for parameters, which are selected by patterns of names"
    )


class NonFiniteGradient(ArithmeticError):
    """Error: the gradient of a parameter contains NaN or infinity; nothing was updated.

    Attributes:
        name: Name of the parameter.
        rows: Numbers of the rows with a non-finite gradient.
    """

    def __init__(self, name: str, rows: list[int]) -> None:
        super().__init__(f"non-finite gradient for {name} in {len(rows)} rows, the first is {rows[0]}")
        self.name, self.rows = name, rows


@dataclass(frozen=True)
class RowUpdater:
    """Optimizer and tuner of a table or dense parameter."""

    optimizer: Optimizer
    tuner: Tuner
    per_row_steps: bool

    def initial_state(self, rows: Tensor) -> State:
        """Returns the state of optimizer and tuner of ``rows`` before the first step, as tensors by name."""
        steps = {"steps": rows.new_zeros(len(rows), 1)} if self.per_row_steps else {}
        return self.optimizer.initial_state(rows) | self.tuner.initial_state(self.optimizer, rows) | steps


class ParameterGroups:
    """Updates all tables and dense parameters of a training run.

    Args:
        names: Names of the tables and dense parameters.
        settings: Parameter groups, default optimizer, clipping and tuner.

    Attributes:
        updaters: Optimizer and tuner of each parameter, by the name of the parameter.
        learning_rate: Learning rate of ``train.optimizer`` in the last step, without the factor of the
            schedule.

    Raises:
        ValueError: A pattern matches no name, or no parameter has the optimizer that the tuner adapts.
    """

    def __init__(self, names: Iterable[str], settings: UpdateSettings) -> None:
        self.settings, names = settings, list(names)
        all_names = ", ".join(names)
        default_updater = RowUpdater(settings.optimizer, settings.tuner, settings.per_row_steps)
        self.updaters = dict.fromkeys(names, default_updater)
        for group in reversed(settings.groups):  # the first match takes precedence
            matching_names = fnmatch.filter(names, group.pattern)
            if not matching_names:
                raise ValueError(
                    f"the pattern {group.pattern!r} in train.groups matches no parameter; the "
                    f"parameters are {all_names}"
                )
            updater = RowUpdater(group.optimizer, NoTuner(), settings.per_row_steps)
            self.updaters |= dict.fromkeys(matching_names, updater)
        self._tuned_names = [name for name in names if self.updaters[name] is default_updater]
        if not self._tuned_names and not isinstance(settings.tuner, NoTuner):
            raise ValueError(
                f"the tuner {settings.tuner.name} tunes train.optimizer, but train.groups has other "
                f"optimizers for all parameters ({all_names}); remove a group, or the tuner"
            )
        self._tuner_memory = settings.tuner.initial_memory()
        self.learning_rate = settings.optimizer.learning_rate

    def update_(self, updates: Mapping[str, ParameterUpdate], factor: float, step: int) -> None:
        """Updates the parameters of a step in place.

        Args:
            updates: Rows, gradients and state of each parameter, by name.
            factor: Factor on all learning rates, from the schedule.
            step: Number of the step, from 1.

        Raises:
            NonFiniteGradient: A gradient contains NaN or infinity.
        """
        # The sum is not finite if any gradient is not. It takes 0.1 ms of a step of 30 ms with 15,000 rows.
        if not torch.isfinite(torch.stack([update.grad.sum() for update in updates.values()]).sum()):
            for name, update in updates.items():
                if rows := (~torch.isfinite(update.grad)).any(1).nonzero().squeeze(1).cpu().tolist():
                    raise NonFiniteGradient(name, rows)
        self.update_finite_(updates, factor, step)

    def update_finite_(self, updates: Mapping[str, ParameterUpdate], factor: float, step: int) -> None:
        """Updates the parameters of a step in place, without a check whether the gradients are finite."""
        self.settings.clipping.clip_([update.grad for update in updates.values()])
        tuned_updates = [updates[name] for name in self._tuned_names if name in updates]
        tuned_optimizer, tuner = self.settings.optimizer, self.settings.tuner
        if tuned_updates:
            tuned_optimizer = tuner.tune_(tuned_optimizer, tuned_updates, self._tuner_memory, step)
        self.learning_rate = tuned_optimizer.learning_rate
        for name, update in updates.items():
            optimizer = tuned_optimizer if name in self._tuned_names else self.updaters[name].optimizer
            rows, grad, state = update.rows, update.grad, update.state
            rate = rows.new_ones(len(rows), 1) * update.weights * (optimizer.learning_rate * factor)
            steps = state["steps"].add_(1) if self.settings.per_row_steps else step
            optimizer.update_(rows, grad, state, rate, steps)

    def tensors(self) -> State:
        """Returns the statistics of the tuner, as tensors by their names in a checkpoint."""
        return {f"tuner.{name}": tensor for name, tensor in self._tuner_memory.items()}


class DenseParameters:
    """Dense parameters and their optimizer state, updated like tables of which every step contains all rows.

    A row of a parameter is a slice along its first axis, such as the weights of one output of a linear layer,
    or a number of a bias vector.

        groups = ParameterGroups(["rows", *dict(module.named_parameters())], settings)
        dense = DenseParameters(dict(module.named_parameters()), groups)
        loss.backward()
        update = ParameterUpdate(rows.detach(), rows.grad, state)
        groups.update_({"rows": update, **dense.updates()}, 1.0, step)
    """

    def __init__(self, parameters: Mapping[str, Tensor], groups: ParameterGroups) -> None:
        self.parameters = {name: tensor for name, tensor in parameters.items() if tensor.requires_grad}
        self._rows = {name: _as_rows(tensor.detach()) for name, tensor in self.parameters.items()}
        self._state = {name: groups.updaters[name].initial_state(rows) for name, rows in self._rows.items()}

    def updates(self) -> dict[str, ParameterUpdate]:
        """Returns the update of each parameter that has a gradient, by name, and clears the gradients."""
        updates = {}
        for name, parameter in self.parameters.items():
            if parameter.grad is not None:
                grad = _as_rows(parameter.grad)
                updates[name] = ParameterUpdate(self._rows[name], grad, self._state[name])
            parameter.grad = None
        return updates

    def tensors(self) -> State:
        """Returns the parameters and their optimizer state, as tensors by their names in a checkpoint."""
        state = {f"{name}.state.{key}": state[key] for name, state in self._state.items() for key in state}
        return {f"{name}.rows": rows for name, rows in self._rows.items()} | state


def _as_rows(tensor: Tensor) -> Tensor:
    """Returns a view of a tensor as a matrix with a row for each element of its first axis."""
    return tensor.reshape(1, 1) if tensor.ndim == 0 else tensor.view(len(tensor), -1)
