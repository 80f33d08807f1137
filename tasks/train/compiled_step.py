"""Training step in machine code, compiled by numba: the backend "compiled" of train.backend.

The backend supports the label objective and a resident table on a CPU. Its result equals that of the backend
"torch" up to rounding (1e-5 of a step); tests/tasks/train/numpy_step.py is the reference of both backends. It
is faster because it does not copy rows, state and gradients to arrays of the batch. Instead, it sums the
gradient of a row over the titles that contain the token and applies the sum immediately. It also computes the
softmax in place. torch computes the matrix products. The loops release the GIL.

A step with a non-finite gradient changes nothing. The backend "torch" repeats this step and raises the error.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from storage.formats.corpus import OpenCorpus
from storage.tables import Resident, Table
from tasks.compiled import compiled, has_numba
from tasks.encoder.bag import LAYER, Bag
from tasks.encoder.bags import Bags, sentence_scales
from tasks.loading.loader import Batch
from tasks.optimizers import SGD, Adam, Optimizer, RowwiseAdagrad
from tasks.optimizers.clipping import NoClipping
from tasks.optimizers.parameter_groups import ParameterGroups
from tasks.optimizers.tuners import NoTuner
from tasks.train import step_loops
from tasks.train.objectives import Label
from tasks.train.runners import Hogwild
from tasks.train.settings import TrainSettings
from tasks.train.step_loops import Entries

MIN_TEMPERATURE = 0.03  # lowest τ for which exp(−2 / τ) is a normal float32
MIN_TITLES_SHOWN = 80_000  # loading the machine code takes 0.5 s, and a title then takes about 6 µs less
UPDATE_RULES = {SGD: step_loops.SGD, RowwiseAdagrad: step_loops.ROWWISE_ADAGRAD, Adam: step_loops.ADAM}


def unsupported_reason(
    settings: TrainSettings, groups: ParameterGroups, device: torch.device, is_resident: bool
) -> str:
    """Returns why the compiled step does not support the settings, or "" if it supports them."""
    objective, optimizers = settings.objective, (updater.optimizer for updater in groups.updaters.values())
    other_optimizers = [optimizer for optimizer in optimizers if type(optimizer) not in UPDATE_RULES]
    names = ", ".join(sorted({optimizer.name for optimizer in other_optimizers}))
    reasons = {
        "numba is not installed": not has_numba(),
        f"the table is {settings.table.name} on {device}": not is_resident or device.type != "cpu",
        f"the objective is {objective.name}": type(objective) is not Label,
        f"the encoder is {settings.encoder.name}": type(settings.encoder) is not Bag,
        f"the optimizer is {names}": names,
        f"the tuner is {settings.tuner.name}": not isinstance(settings.tuner, NoTuner),
        f"clipping is {settings.clipping.name}": not isinstance(settings.clipping, NoClipping),
        f"precision is {settings.precision}": settings.precision == "bfloat16",
        "train.per_row_steps is set": settings.per_row_steps,
        f"a temperature is below {MIN_TEMPERATURE}": type(objective) is Label
        and min(objective.temperature, objective.context_temperature) < MIN_TEMPERATURE,
    }
    return next((reason for reason, applies in reasons.items() if applies), "")


class _CompiledLoops:
    """Provides the functions of step_loops.py as attributes; compiles a function when it is first used."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return compiled(getattr(step_loops, name), fastmath=True)


_loops = _CompiledLoops()


class _Parameter:
    """Stores a table or dense parameter and its optimizer state, as NumPy views, and its update rule."""

    def __init__(
        self, rows: Tensor, state: Mapping[str, Tensor], weights: Tensor, optimizer: Optimizer
    ) -> None:
        self._optimizer, self._rule = optimizer, UPDATE_RULES[type(optimizer)]
        no_tensor = torch.zeros(0, 1)
        first, second = state.get("first", state.get("sum", no_tensor)), state.get("second", no_tensor)
        self._arrays = rows.numpy(), first.numpy(), second.numpy()
        self._weights = weights.numpy()
        # A dense parameter has one entry per row: row i has the i-th gradient with weight 1.
        offsets, ones = np.arange(len(rows) + 1, dtype=np.int32), np.ones(len(rows), dtype=np.float32)
        self._entries = Entries(offsets[:-1].astype(np.int64), offsets, titles=offsets[:-1], weights=ones)

    def update_(self, grads: np.ndarray, factor: float, step: int, entries: Entries | None = None) -> None:
        """Updates rows in place. The gradient of a row is the weighted sum of ``grads`` over its entries.

        If ``entries`` is None, all rows are updated, and row i has the gradient ``grads[i]``. ``factor``
        multiplies the learning rate, and ``step`` is the number of the step, from 1.
        """
        constants, entries = tuple(map(np.float32, self._constants(factor, step))), entries or self._entries
        _loops.update_(self._arrays, self._weights, entries, grads, self._rule, constants)

    def _constants(self, factor: float, step: int) -> Sequence[float]:
        """Returns the constants of the update rule, in the order that ``step_loops.update_`` expects."""
        optimizer = self._optimizer
        rate, epsilon = optimizer.learning_rate * factor, getattr(optimizer, "epsilon", 0.0)
        if not isinstance(optimizer, Adam):
            return rate, epsilon, 0.0, 0.0, 0.0, 1.0
        beta1, beta2 = optimizer.beta1, optimizer.beta2
        return rate / (1 - beta1**step), epsilon, 1 - beta1, beta2, 1 - beta2, (1 - beta2**step) ** 0.5


class _SentenceVectors(NamedTuple):
    """Title vectors with projected sentence features x, and intermediate results for the backward pass."""

    vectors: np.ndarray  # (titles, dim): normalise(bag + β · |x| · normalise(W x))
    factors: np.ndarray  # (titles,): 1 / norm before the normalisation
    projections: np.ndarray  # (titles, dim): normalise(W x)
    projection_factors: np.ndarray  # (titles,): β · |x| / |W x|


class Gradients(NamedTuple):
    """Loss and gradients of a batch. The next batch overwrites the arrays."""

    loss: float
    entries: Entries  # tokens of the titles of the batch
    title_sums: np.ndarray  # float32 (titles, dim): gradients of the sums of rows
    labels: np.ndarray  # float32 (labels, dim): gradients of the label vectors
    layer: np.ndarray | None  # float32 (dim, features): gradient of the sentence layer; None if there is none


class CompiledStep:
    """Compiled training step that updates the tensors of a trainer in place.

    Args:
        settings: Settings for which ``unsupported_reason`` returns "".
        groups: Optimizers of the parameters.
        tensors: Token rows, label vectors, sentence layer, their optimizer state, and ``touched`` (bool
            (tokens,): rows that occurred in any step), by their names in a checkpoint.
        weights: Factor on the learning rate of each token row, float32 (tokens, 1).
        max_tokens: Maximum number of tokens of a title.
    """

    def __init__(
        self,
        settings: TrainSettings,
        groups: ParameterGroups,
        tensors: Mapping[str, Tensor],
        weights: Tensor,
        max_tokens: int,
    ) -> None:
        assert isinstance(settings.objective, Label)
        self._encoder, self._rows = settings.encoder, tensors["rows"].numpy()
        self._touched = tensors["touched"].numpy()
        objective, token_counts = settings.objective, torch.arange(max_tokens + 1).clamp(min=1).float()
        self._temperatures = np.float32(objective.temperature), np.float32(objective.context_temperature)
        self._alpha = settings.encoder.kind_weights()
        self._powers = token_counts.pow(-settings.encoder.length_power).numpy()
        self._labels, self._layer = (tensors[f"{name}.rows"].numpy() for name in ("labels", LAYER))
        self._scratch: dict[str, np.ndarray] = {}
        self._parameters = {}
        for name, updater in groups.updaters.items():
            prefix, rows = ("", "rows") if name == "rows" else (f"{name}.", f"{name}.rows")
            prefix += "state."
            state = {key.removeprefix(prefix): tensors[key] for key in tensors if key.startswith(prefix)}
            factors = weights.squeeze(1) if name == "rows" else torch.ones(len(tensors[rows]))
            self._parameters[name] = _Parameter(tensors[rows], state, factors, updater.optimizer)

    def step(self, batch: Batch, factor: float, step: int) -> Tensor | None:
        """Performs step number ``step`` (from 1) with the learning rates multiplied by ``factor``.

        Returns:
            The mean loss, a float64 scalar; None if a gradient is not finite, and nothing was updated.
        """
        gradients = self.gradients(batch)
        if gradients is None:
            return None
        self.apply(gradients, factor, step)
        return torch.tensor(gradients.loss, dtype=torch.float64)

    def apply(self, gradients: Gradients, factor: float, step: int) -> None:
        """Updates the parameters in step number ``step``, with learning rates multiplied by ``factor``."""
        self._touched[gradients.entries.ids] = True
        self._parameters["rows"].update_(gradients.title_sums, factor, step, gradients.entries)
        self._parameters["labels"].update_(gradients.labels, factor, step)
        if gradients.layer is not None:
            self._parameters[LAYER].update_(gradients.layer, factor, step)

    def gradients(self, batch: Batch) -> Gradients | None:
        """Computes the gradients of a batch, without an update. Returns None if a gradient is not finite."""
        bags, targets, scratch = batch.bags, batch.targets, self._scratch_array
        ids, tokens, kinds, _, offsets, _ = (tensor.numpy() for tensor in bags)
        titles, (labels, dim) = len(offsets) - 1, self._labels.shape
        entries = Entries(
            ids,
            scratch("row_offsets", len(ids) + 1, dtype=torch.int32),
            scratch("titles", len(tokens), dtype=torch.int32),
            scratch("weights", len(tokens)),
        )
        _loops.group_by_row(tokens, kinds, offsets, self._alpha, self._powers, entries)
        bag, bag_factors = scratch("bag", titles, dim), scratch("bag_factors", titles)
        _loops.sum_rows(self._rows, entries, bag)
        _loops.make_unit(bag, bag_factors)
        vectors, sentence_vectors = bag, None
        if bags.features.shape[1]:
            sentence_vectors = self._add_sentences(bag, bags)
            vectors = sentence_vectors.vectors
        units, unit_factors = scratch("units", labels, dim), scratch("unit_factors", labels)
        np.copyto(units, self._labels)
        _loops.make_unit(units, unit_factors)
        cosine_grads = self._multiply(vectors, units.T, "cosine_grads")
        target_arrays = tuple(tensor.numpy() for tensor in targets)
        loss = _loops.cross_entropy_(cosine_grads, self._temperatures, target_arrays)
        label_grads = self._multiply(cosine_grads.T, vectors, "label_grads")
        squared_norm = _loops.unit_backward(label_grads, units, unit_factors, label_grads)
        grads, layer_grads = self._multiply(cosine_grads, units, "grads"), None
        if sentence_vectors:
            _, factors, projections, projection_factors = sentence_vectors
            squared_norm += _loops.unit_backward(grads, vectors, factors, grads)
            squared_norm += _loops.unit_backward(grads, projections, projection_factors, projections)
            layer_grads = self._multiply(projections.T, bags.features.numpy(), "layer_grads")
            squared_norm += _loops.sum_of_squares(layer_grads)
        squared_norm += _loops.unit_backward(grads, bag, bag_factors, grads)
        gradients = Gradients(loss, entries, grads, label_grads, layer_grads)
        return gradients if np.isfinite(squared_norm) else None

    def _add_sentences(self, bag: np.ndarray, bags: Bags) -> _SentenceVectors:
        """Returns normalise(bag + β · |x| · normalise(W x)) and intermediate results.

        ``bag`` contains the unit vector of the tokens of each title, (titles, dim). x are the sentence
        features of a title, W is the sentence layer, and β is the sentence weight of the encoder.
        """
        titles, dim = bag.shape
        vectors, factors = self._scratch_array("vectors", titles, dim), self._scratch_array("factors", titles)
        projection_factors = self._scratch_array("projection_factors", titles)
        projections = self._multiply(bags.features.numpy(), self._layer.T, "projections")
        _loops.make_unit(projections, projection_factors)
        scales = sentence_scales(self._encoder, bags).numpy()
        np.add(bag, np.multiply(scales, projections, out=vectors), out=vectors)
        _loops.make_unit(vectors, factors)
        projection_factors *= scales[:, 0]
        return _SentenceVectors(vectors, factors, projections, projection_factors)

    def _multiply(self, left: np.ndarray, right: np.ndarray, name: str) -> np.ndarray:
        """Computes ``left @ right`` in the scratch array with the name ``name``."""
        product = self._scratch_array(name, left.shape[0], right.shape[1])
        torch.mm(torch.from_numpy(left), torch.from_numpy(right), out=torch.from_numpy(product))
        return product

    def _scratch_array(self, name: str, *shape: int, dtype: torch.dtype = torch.float32) -> np.ndarray:
        """Returns an uninitialised array, if possible in the memory of the last array with this name."""
        count = math.prod(shape)
        if name not in self._scratch or len(self._scratch[name]) < count:
            self._scratch[name] = torch.empty(count * 5 // 4, dtype=dtype).numpy()  # aligned to 64 bytes
        return self._scratch[name][:count].reshape(shape)


def max_title_tokens(corpus: OpenCorpus) -> int:
    """Returns the largest number of tokens of a title in the corpus."""
    return int(corpus.tokens.lengths.max(initial=0))


def choose_backend(
    settings: TrainSettings, groups: ParameterGroups, table: Table, titles: int, resumed_backend: str = ""
) -> tuple[str, str]:
    """Chooses the backend of a run; "auto" selects the compiled step if it is supported and saves time.

    Args:
        settings: Settings of the run.
        groups: Optimizers of the parameters.
        table: Table of the token rows.
        titles: Number of training titles in an epoch.
        resumed_backend: Backend that wrote the checkpoint from which the run resumes; "" for a new run.

    Returns:
        The backend ("torch" or "compiled"), and a line for the log that states the reason.

    Raises:
        ValueError: The backend of the settings, or of the checkpoint, is not available.
    """
    backend, backend_reason = settings.backend, f"train.backend is {settings.backend}"
    if resumed_backend:
        if backend not in ("auto", resumed_backend):
            raise ValueError(f"the checkpoint has backend {resumed_backend}, but {backend_reason}")
        backend, backend_reason = resumed_backend, f"the checkpoint has backend {resumed_backend}"
    learners = settings.runner.learners if isinstance(settings.runner, Hogwild) else 0
    is_resident = bool(learners) or isinstance(table, Resident)  # learners copy the rows to shared memory
    reason = unsupported_reason(settings, groups, table.device, is_resident)
    if learners and (reason or backend == "torch"):
        reason = reason or backend_reason
        raise ValueError(f"train.runner is hogwild, but {reason}; choose train.runner=sequential")
    if learners:
        return "compiled", f"training with backend compiled in {learners} learners (hogwild)"
    if backend == "compiled" and reason:
        remedy = "" if resumed_backend else "; choose train.backend=auto"
        raise ValueError(f"{backend_reason}, but {reason}{remedy}")
    titles_shown = titles * settings.epochs
    if backend == "torch":
        reason = backend_reason
    elif backend == "auto" and not reason and titles_shown < MIN_TITLES_SHOWN:
        reason = f"training shows {titles_shown:,} titles; compiling saves time from {MIN_TITLES_SHOWN:,}"
    if reason:
        return "torch", f"training with backend torch: {reason}"
    return "compiled", "training with backend compiled"
