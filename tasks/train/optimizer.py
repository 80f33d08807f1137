"""One optimizer for all that a step may move: gathered rows of tables and dense parameters, each under its group's rule.

    parts = {"rows": Part(rows, grad, state, weights), "gru.bias": Part(…), …}
    check that all gradients are numbers ─▶ clip ─▶ tune the main rule ─▶ rule.update_ part by part

A group is a pattern on names with a rule of its own (``gru.*``, ``*.bias``); what no pattern matches moves under the
main rule. A dense parameter is a table of which every step touches every row, so the same rule serves it.

``step`` counts all steps, also for a row that is touched for the first time. With ``per_row_steps`` each row has its own
count, in a state tensor ``steps`` (tokens, 1), float32: exact up to 16 million touches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import torch
from torch import Tensor

from tasks.form import FORM
from tasks.train.clipping import Clipping, NoClipping
from tasks.train.parts import Part
from tasks.train.rules import RowwiseAdagrad, Rule
from tasks.train.tuners import AsSet, Tuner

_AS_THEY_ARE, _AS_SET = NoClipping(), AsSet()


@dataclass(frozen=True, kw_only=True)
class Group:
    """Parameters that move under a rule of their own."""

    __pydantic_config__ = FORM
    pattern: str = field(metadata={"description": "Names of parameters, with * for any text: rows (the embedding table), gru.*, *.bias"})
    rule: Rule = field(default=RowwiseAdagrad(), metadata={"description": "How these parameters move"})


class NotFinite(ArithmeticError):
    """A gradient that holds NaN or infinity; nothing has been moved.

    Attributes:
        part: Name of the table or parameter.
        rows: Which of its rows, as places in the part.
    """

    def __init__(self, part: str, rows: list[int]) -> None:
        super().__init__(f"the gradient of {part} holds NaN or infinity in {len(rows)} rows, the first is {rows[0]}; nothing was moved")
        self.part, self.rows = part, rows


@dataclass(frozen=True)
class Mover:
    """Moves one table or parameter: its rule, and what is kept of its rows beside the rule's state.

    Attributes:
        rule: How its rows move.
        tuner: What sets the rule's rate; none tunes the rule of a group.
        per_row_steps: Whether bias corrections count a row's touches instead of all steps.
    """

    rule: Rule
    tuner: Tuner
    per_row_steps: bool

    def initial_state(self, rows: Tensor) -> dict[str, Tensor]:
        """State before the first step, one row a row."""
        state = {**self.rule.initial_state(rows), **self.tuner.initial_state(self.rule, rows)}
        return {**state, "steps": rows.new_zeros(len(rows), 1)} if self.per_row_steps else state


class Optimizer:
    """Moves parts by the rules of their groups.

    Args:
        names: Of everything that will be moved.
        rule: Of what no group's pattern matches.
        groups: The first that matches a name counts.
        clipping: Of the whole gradient of a step.
        tuner: Of the main rule.
        per_row_steps: Whether bias corrections count a row's touches instead of all steps.

    Attributes:
        movers: One a name; their ``initial_state`` is what a table begins with.

    Raises:
        ValueError: A pattern that matches no name, or a tuner that has nothing to tune.
    """

    def __init__(
        self, names: Iterable[str] = ("rows",), *, rule: Rule, groups: Sequence[Group] = (), clipping: Clipping = _AS_THEY_ARE, tuner: Tuner = _AS_SET,
        per_row_steps: bool = False,
    ) -> None:  # fmt: skip
        names = list(names)
        for group in groups:
            if not any(fnmatchcase(name, group.pattern) for name in names):
                raise ValueError(f"the pattern {group.pattern!r} of a parameter group matches nothing; the parameters are {', '.join(names)}")
        own = {name: next((group.rule for group in groups if fnmatchcase(name, group.pattern)), None) for name in names}
        self.movers = {name: Mover(its or rule, _AS_SET if its else tuner, per_row_steps) for name, its in own.items()}
        self.rule, self.clipping, self.tuner, self.per_row_steps = rule, clipping, tuner, per_row_steps
        self._tuned = [name for name, its in own.items() if its is None]
        if not self._tuned and not isinstance(tuner, AsSet):
            raise ValueError(f"the tuner {tuner.name} sets the main rule's rate, and groups move all of {', '.join(names)}; take out a group, or the tuner")
        self._memory = tuner.initial_memory()

    def move_(self, parts: Mapping[str, Part], factor: float, step: int) -> None:
        """One step, in place.

        Args:
            parts: By name.
            factor: On the learning rate of every rule: the schedule's.
            step: Counts from 1.

        Raises:
            NotFinite: A gradient is no number; nothing has been moved.
        """
        _check(parts)
        self.clipping.clip_([part.grad for part in parts.values()])
        tuned = [parts[name] for name in self._tuned if name in parts]
        main = self.tuner.tune_(self.rule, tuned, self._memory, step) if tuned else self.rule
        for name, part in parts.items():
            rule = main if name in self._tuned else self.movers[name].rule
            rate = rule.learning_rate * factor
            rates = part.rows.new_full((len(part.rows), 1), rate) if part.weights is None else part.weights * rate
            rule.update_(part.rows, part.grad, part.state, rates, part.state["steps"].add_(1) if self.per_row_steps else step)

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint keeps beside the tables, by name; restored by ``copy_``."""
        return {f"tuner.{name}": tensor for name, tensor in self._memory.items()}


def _check(parts: Mapping[str, Part]) -> None:
    """One sum over all gradients says whether there is anything to look for (0.1 ms for 15,000 rows of 128, a step takes 30).

    Raises:
        NotFinite: There is.
    """
    if torch.isfinite(torch.stack([part.grad.sum() for part in parts.values()]).sum()):
        return
    for name, part in parts.items():
        rows = (~torch.isfinite(part.grad)).any(1).nonzero().squeeze(1)
        if len(rows):
            raise NotFinite(name, rows.tolist())
