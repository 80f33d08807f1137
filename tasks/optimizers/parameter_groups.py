"""Updates all that a step changes, gathered rows and dense parameters, each by the optimizer of its group.

A group is a pattern on names with an optimizer of its own; ``train.optimizer`` updates the rest. With
``per_row_steps`` each row counts its own steps in the state ``steps`` (tokens, 1), float32: exact up to 16
million touches.
"""

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from tasks.form import configurable, setting
from tasks.optimizers import Optimizer, RowwiseAdagrad
from tasks.optimizers.base import ParameterUpdate, State
from tasks.optimizers.clipping import Clipping, NoClipping
from tasks.optimizers.tuners import NoTuner, Tuner


@configurable
class ParameterGroup:
    """Parameters that are updated by an optimizer of their own."""

    pattern: str = setting(..., "Names of parameters, with *: rows (the embedding table), labels, sentence")
    optimizer: Optimizer = setting(RowwiseAdagrad(), "How these parameters are updated")


@configurable
class UpdateSettings:
    """How gradients become updates."""

    optimizer: Optimizer = setting(RowwiseAdagrad(), "How a row moves, given its gradient and its state")
    tuner: Tuner = setting(NoTuner(), "Sets the momentum optimizer's rate and momentum during training")
    clipping: Clipping = setting(NoClipping(), "Gradient clipping")
    per_row_steps: bool = setting(False, "Count a row's own touches in bias corrections, not all steps")
    groups: tuple[ParameterGroup, ...] = setting((), "Parameters with an optimizer of their own, by name")


class NonFiniteGradient(ArithmeticError):
    """A gradient of the parameter ``name`` holds NaN or infinity in ``rows``; nothing was updated."""

    def __init__(self, name: str, rows: list[int]) -> None:
        super().__init__(f"non-finite gradient for {name} in {len(rows)} rows, the first is {rows[0]}")
        self.name, self.rows = name, rows


@dataclass(frozen=True)
class RowUpdater:
    """What updates one table or dense parameter."""

    optimizer: Optimizer
    tuner: Tuner
    per_row_steps: bool

    def initial_state(self, rows: Tensor) -> State:
        """State before the first step, with one row for each row."""
        steps = {"steps": rows.new_zeros(len(rows), 1)} if self.per_row_steps else {}
        return self.optimizer.initial_state(rows) | self.tuner.initial_state(self.optimizer, rows) | steps


class ParameterGroups:
    """The tables and dense parameters of a run by name; ``updaters`` has their optimizers."""

    def __init__(self, names: Iterable[str], settings: UpdateSettings) -> None:
        self.settings, everything = settings, ", ".join(names := list(names))
        main = RowUpdater(settings.optimizer, settings.tuner, settings.per_row_steps)
        self.updaters = dict.fromkeys(names, main)
        for group in reversed(settings.groups):  # the first that matches counts
            matching = fnmatch.filter(names, group.pattern)
            if not matching:
                text = f"the pattern {group.pattern!r} of a parameter group matches nothing"
                raise ValueError(f"{text}; the parameters are {everything}")
            own = RowUpdater(group.optimizer, NoTuner(), settings.per_row_steps)
            self.updaters |= dict.fromkeys(matching, own)
        self._tuned = [name for name in names if self.updaters[name] is main]
        if not self._tuned and not isinstance(settings.tuner, NoTuner):
            text = f"the tuner {settings.tuner.name} tunes train.optimizer, but groups update all of"
            raise ValueError(f"{text} {everything}; remove a group, or the tuner")
        self._memory = settings.tuner.initial_memory()

    def update_(self, updates: Mapping[str, ParameterUpdate], factor: float, step: int) -> None:
        """Step ``step`` (from 1), in place, with learning rates times ``factor``; or NonFiniteGradient."""
        # One sum over all gradients says whether to look closer: 0.1 ms for 15,000 rows, a step takes 30.
        if not torch.isfinite(torch.stack([update.grad.sum() for update in updates.values()]).sum()):
            for name, update in updates.items():
                if rows := (~torch.isfinite(update.grad)).any(1).nonzero().squeeze(1).cpu().tolist():
                    raise NonFiniteGradient(name, rows)
        self.move_(updates, factor, step)

    def move_(self, updates: Mapping[str, ParameterUpdate], factor: float, step: int) -> None:
        """``update_`` by gradients that are known to be finite."""
        self.settings.clipping.clip_([update.grad for update in updates.values()])
        tuned = [updates[name] for name in self._tuned if name in updates]
        main = self.settings.optimizer
        main = self.settings.tuner.tune_(main, tuned, self._memory, step) if tuned else main
        for name, update in updates.items():
            optimizer = main if name in self._tuned else self.updaters[name].optimizer
            rows, grad, state = update.rows, update.grad, update.state
            rate = rows.new_ones(len(rows), 1) * update.weights * (optimizer.learning_rate * factor)
            steps = state["steps"].add_(1) if self.settings.per_row_steps else step
            optimizer.update_(rows, grad, state, rate, steps)

    def tensors(self) -> State:
        """What a checkpoint keeps beside the tables, by name; restored by ``copy_``."""
        return {f"tuner.{name}": tensor for name, tensor in self._memory.items()}


class DenseParameters:
    """Dense parameters with their state, updated like a table of which each step touches each row. A row is
    what the first axis counts: an output of a linear layer, one number of a bias.

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
        """Takes the gradients of the last backward pass off the parameters."""
        grads = {name: parameter.grad for name, parameter in self.parameters.items()}
        for parameter in self.parameters.values():
            parameter.grad = None
        own, state = self._rows, self._state
        named = {name: _as_rows(grad) for name, grad in grads.items() if grad is not None}
        return {name: ParameterUpdate(own[name], grad, state[name]) for name, grad in named.items()}

    def tensors(self) -> State:
        """Everything a checkpoint keeps, by name; restored by ``copy_``."""
        state = {f"{name}.state.{key}": own[key] for name, own in self._state.items() for key in own}
        return {f"{name}.rows": rows for name, rows in self._rows.items()} | state


def _as_rows(tensor: Tensor) -> Tensor:
    return tensor.reshape(1, 1) if tensor.ndim == 0 else tensor.view(len(tensor), -1)
