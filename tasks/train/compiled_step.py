"""The training step of tasks/train/step.py as machine code, for the settings that most runs have: the label
objective and a resident table on a CPU. Its numbers are the mechanism's to rounding (1e-5 of a step).

What it saves: no row, state or gradient is gathered, scattered or kept, as a row's gradient is summed from
the titles that hold it and moves it at once; the softmax runs in place. The products are BLAS's, by torch.
Loops release the interpreter and change the table in place. The key of an artifact does
not tell which step ran; its details do.

A step with a gradient that is not finite changes nothing and is left to the mechanism, which explains it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from storage.formats.corpus import OpenCorpus
from storage.tables import Resident, Table
from tasks.compiled import available, compiled
from tasks.encoder import Bag
from tasks.encoder.bags import LAYER, Bags
from tasks.loading.loader import Batch
from tasks.optimizers import SGD, Adam, Optimizer, RowwiseAdagrad
from tasks.optimizers.clipping import NoClipping
from tasks.optimizers.parameter_groups import DenseParameters, ParameterGroups
from tasks.optimizers.tuners import NoTuner
from tasks.train import step_loops
from tasks.train.objectives import Label
from tasks.train.settings import TrainSettings

COOLEST = 0.03  # temperature at which exp(−2 / τ) is still a normal float32
FEWEST = 80_000  # titles shown: each saves some 6 µs, loading the machine code takes .5 s
RULES = {SGD: step_loops.SGD, RowwiseAdagrad: step_loops.ROWWISE_ADAGRAD, Adam: step_loops.ADAM}

Entries = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
Owner = tuple[
    int, int
]  # number of an owner, and of how many: the owner of a row is its id modulo their number


def unsupported_reason(
    settings: TrainSettings, groups: ParameterGroups, device: torch.device, resident: bool
) -> str:
    """Why the compiled step does not know these settings, in a few words; "" where it does."""
    objective, rules = settings.objective, (updater.optimizer for updater in groups.updaters.values())
    unknown = sorted({rule.name for rule in rules if type(rule) not in RULES})
    reasons = {
        "numba is not installed": not available(),
        f"the table is {settings.table.name} on {device}": not resident or device.type != "cpu",
        f"the objective is {objective.name}": type(objective) is not Label,
        f"the encoder is {settings.encoder.name}": type(settings.encoder) is not Bag,
        f"the optimizer is {', '.join(unknown)}": unknown,
        f"the tuner is {settings.tuner.name}": not isinstance(settings.tuner, NoTuner),
        f"clipping is {settings.clipping.name}": not isinstance(settings.clipping, NoClipping),
        f"precision is {settings.precision}": settings.precision == "bfloat16",
        "rows count their own steps": settings.per_row_steps,
        f"a temperature is below {COOLEST}": type(objective) is Label
        and min(objective.temperature, objective.context_temperature) < COOLEST,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


class _Run:
    """The loops by name, compiled at the first use."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return compiled(getattr(step_loops, name), fastmath=True)


_run = _Run()


class _Parameter:
    """A table or dense parameter, its state and its rule, as the loops take them."""

    def __init__(
        self, rows: Tensor, state: Mapping[str, Tensor], weights: Tensor, optimizer: Optimizer
    ) -> None:
        self._optimizer, self._rule = optimizer, RULES[type(optimizer)]
        first, second = state.get("first", state.get("sum")), state.get("second")
        absent = torch.zeros(0, 1)
        tensors = (rows, *(absent if own is None else own for own in (first, second)))
        self.arrays, self._weights = [tensor.numpy() for tensor in tensors], weights.numpy()
        every = np.arange(len(rows) + 1, dtype=np.int32)  # a dense parameter's rows have one gradient each
        self._entries = every[:-1].astype(np.int64), every, every[:-1], np.ones(len(rows), dtype=np.float32)

    def update_(
        self, grads: np.ndarray, factor: float, step: int, owner: Owner, entries: Entries | None = None
    ) -> None:
        """Moves the owner's rows by one step, all or those of ``entries``."""
        ids, *others = entries or self._entries
        numbers = tuple(map(np.float32, self._numbers(factor, step)))
        arguments = self._weights, *others, grads, self._rule, numbers
        _run.update_(*self.arrays, ids, *arguments, *owner)

    def _numbers(self, factor: float, step: int) -> Sequence[float]:
        """Rate, ε and what else the rule needs, as in tasks/optimizers."""
        rule = self._optimizer
        rate, epsilon = rule.learning_rate * factor, getattr(rule, "epsilon", 0.0)
        if not isinstance(rule, Adam):
            return rate, epsilon, 0.0, 0.0, 0.0, 1.0
        root = (1 - rule.beta2**step) ** 0.5
        return rate / (1 - rule.beta1**step), epsilon, 1 - rule.beta1, rule.beta2, 1 - rule.beta2, root


class _Layered(NamedTuple):
    """Titles with their sentence part: unit vectors (titles, dim), and factors (titles,) of gradients."""

    vectors: np.ndarray
    factors: np.ndarray
    part: np.ndarray  # normalise(W x)
    part_factors: np.ndarray


class Gradients(NamedTuple):
    """What a batch asks for. Arrays are used again by the next batch."""

    loss: float
    entries: Entries  # ids of rows, and for each where its entries start; the entries' titles and values
    titles: np.ndarray  # float32 (titles, dim)
    labels: np.ndarray  # float32 (labels, dim)
    layer: np.ndarray | None  # float32 (dim, features)


class CompiledStep:
    """The step over the tensors of a learner, which it changes in place.

    Args:
        settings: That ``unsupported_reason`` has nothing against.
        groups: Optimizers by parameter.
        tensors: Rows, labels, sentence layer, their state, and ``touched``, by their names in a checkpoint.
        weights: Factor on each row's step, float32 (tokens, 1).
        longest: Most tokens of a title.
        rooms: Memory to work in, by name; what is missing or too small is allocated.
    """

    def __init__(
        self,
        settings: TrainSettings,
        groups: ParameterGroups,
        tensors: Mapping[str, Tensor],
        weights: Tensor,
        longest: int,
        rooms: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        assert isinstance(settings.objective, Label)
        self._encoder, self._rows = settings.encoder, tensors["rows"].numpy()
        self._touched = tensors["touched"].numpy()
        objective, counts = settings.objective, torch.arange(longest + 1).clamp(min=1).float()
        self._temperatures = np.float32(objective.temperature), np.float32(objective.context_temperature)
        self._alpha = settings.encoder.weights().numpy()
        self._powers = counts.pow(-settings.encoder.length_power).numpy()
        self._labels, self._layer = (tensors[f"{name}.rows"].numpy() for name in ("labels", LAYER))
        self._rooms = dict(rooms or {})
        self.parameters = {}
        for name, updater in groups.updaters.items():
            prefix, rows = ("", "rows") if name == "rows" else (f"{name}.", f"{name}.rows")
            prefix += "state."
            state = {key.removeprefix(prefix): own for key, own in tensors.items() if key.startswith(prefix)}
            factors = weights.squeeze(1) if name == "rows" else torch.ones(len(tensors[rows]))
            self.parameters[name] = _Parameter(tensors[rows], state, factors, updater.optimizer)

    def step(self, batch: Batch, factor: float, step: int) -> Tensor | None:
        """Step number ``step`` (from 1) with learning rates times ``factor``; the loss, a float64 number, or
        None where a gradient is not finite.
        """
        gradients = self.gradients(batch)
        if gradients is None:
            return None
        self.apply(gradients, factor, step)
        return torch.tensor(gradients.loss, dtype=torch.float64)

    def apply(self, gradients: Gradients, factor: float, step: int, owner: Owner = (0, 1)) -> None:
        """Moves the owner's rows."""
        own, (_, entries, titles, labels, layer) = self.parameters, gradients
        self._touched[entries[0]] = True
        own["rows"].update_(titles, factor, step, owner, entries)
        own["labels"].update_(labels, factor, step, owner)
        if layer is not None:
            own[LAYER].update_(layer, factor, step, owner)

    def gradients(self, batch: Batch) -> Gradients | None:
        """Those of a batch, which change nothing; None where one is not finite."""
        bags, targets, room = batch.bags, batch.groups, self._room
        ids, tokens, kinds, _, offsets, _ = (tensor.numpy() for tensor in bags)
        titles, (labels, dim) = len(offsets) - 1, self._labels.shape
        starts, owners = (
            room("starts", len(ids) + 1, dtype=torch.int32),
            room("owners", len(tokens), dtype=torch.int32),
        )
        entries = ids, starts, owners, room("values", len(tokens))
        _run.by_row(tokens, kinds, offsets, self._alpha, self._powers, *entries[1:])
        bag, bag_factors = room("bag", titles, dim), room("bag_factors", titles)
        _run.sum_rows(self._rows, *entries, bag)
        _run.make_unit(bag, bag_factors)
        vectors, layered = bag, None
        if bags.dense.shape[1]:
            layered = self._with_sentences(bag, bags)
            vectors = layered.vectors
        units, unit_factors = room("units", labels, dim), room("unit_factors", labels)
        np.copyto(units, self._labels)
        _run.make_unit(units, unit_factors)
        excess = self._product(vectors, units.T, "excess")
        facts = (targets.aired, targets.titles, targets.labels, targets.shares)
        loss = _run.softmax(excess, *self._temperatures, *(tensor.numpy() for tensor in facts))
        of_labels = self._product(excess.T, vectors, "of_labels")
        size = _run.through_unit(of_labels, units, unit_factors, of_labels)
        grads, of_layer = self._product(excess, units, "grads"), None
        if layered:
            size += _run.through_unit(grads, vectors, layered.factors, grads)
            part = layered.part
            size += _run.through_unit(grads, part, layered.part_factors, part)
            of_layer = self._product(part.T, bags.dense.numpy(), "of_layer")
            size += _run.sum_of_squares(of_layer)
        size += _run.through_unit(grads, bag, bag_factors, grads)
        return Gradients(loss, entries, grads, of_labels, of_layer) if np.isfinite(size) else None

    def _with_sentences(self, bag: np.ndarray, bags: Bags) -> _Layered:
        """Unit bags, (titles, dim), and β · |x| · normalise(W x), at unit norm."""
        titles, dim = bag.shape
        vectors, factors = self._room("vectors", titles, dim), self._room("factors", titles)
        part_factors = self._room("part_factors", titles)
        part = self._product(bags.dense.numpy(), self._layer.T, "part")
        _run.make_unit(part, part_factors)
        scales = self._encoder.sentence_scales(bags).numpy()
        np.add(bag, np.multiply(scales, part, out=vectors), out=vectors)
        _run.make_unit(vectors, factors)
        part_factors *= scales[:, 0]
        return _Layered(vectors, factors, part, part_factors)

    def _product(self, left: np.ndarray, right: np.ndarray, name: str) -> np.ndarray:
        """The product, in the room of that name."""
        product = self._room(name, left.shape[0], right.shape[1])
        torch.mm(torch.from_numpy(left), torch.from_numpy(right), out=torch.from_numpy(product))
        return product

    def _room(self, name: str, *shape: int, dtype: torch.dtype = torch.float32) -> np.ndarray:
        """Memory of this shape, of any values: the same again where it suffices."""
        size = math.prod(shape)
        if name not in self._rooms or len(self._rooms[name]) < size:
            self._rooms[name] = torch.empty(size * 5 // 4, dtype=dtype).numpy()  # aligned to 64 bytes
        return self._rooms[name][:size].reshape(shape)


def max_title_tokens(corpus: OpenCorpus) -> int:
    """Most tokens of a title."""
    return int(corpus.tokens.lengths.max(initial=0))


class _Learner(Protocol):
    settings: TrainSettings
    groups: ParameterGroups
    table: Table
    dense: DenseParameters
    weights: Tensor
    touched: Tensor


def choose_step(
    learner: _Learner, corpus: OpenCorpus, wanted: bool | None
) -> tuple[CompiledStep | None, str]:
    """The compiled step where it is wanted or, if None, known and faster; and a line for the log.

    Raises:
        ValueError: It is wanted, and does not know the settings.
    """
    settings, table, shown = learner.settings, learner.table, len(corpus.training)
    reason = unsupported_reason(settings, learner.groups, table.device, isinstance(table, Resident))
    shown *= settings.epochs
    if wanted and reason:
        raise ValueError(f"the compiled step was asked for, but {reason}")
    if wanted is None and not reason and shown < FEWEST:
        reason = f"only {shown:,} titles are shown, {FEWEST:,} are worth loading it"
    if wanted is False or reason:
        return None, f"training by torch's autograd: {reason or 'as asked'}"
    assert isinstance(table, Resident)
    tensors = table.tensors() | learner.dense.tensors() | {"touched": learner.touched}
    step = CompiledStep(settings, learner.groups, tensors, learner.weights, max_title_tokens(corpus))
    return step, "training by the compiled step"
