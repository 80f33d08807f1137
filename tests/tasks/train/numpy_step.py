"""One training step in NumPy: what a step computes, and the reference of both backends.

A step has four parts: title vectors from token rows, the loss, its gradients, and the update of each
parameter. It covers the settings that both backends support: objective ``label``, encoder ``bag`` with the
sentence layer, and SGD, row-wise Adagrad or Adam. Arithmetic is in float64.
"""

from collections.abc import Mapping

import numpy as np

from tasks.encoder.bag import LAYER
from tasks.loading.loader import Batch
from tasks.optimizers import Adam, Optimizer, RowwiseAdagrad
from tasks.text.words import CONTEXT
from tasks.train.settings import TrainSettings


def numpy_step(
    tensors: dict[str, np.ndarray],
    optimizers: Mapping[str, Optimizer],
    token_weights: np.ndarray,
    batch: Batch,
    settings: TrainSettings,
    factor: float,
    step: int,
) -> float:
    """Performs step number ``step`` (from 1) in place and returns its loss.

    Args:
        tensors: Parameters and optimizer state, float64, by their names in a checkpoint.
        optimizers: Optimizer of each of "rows", "labels" and "sentence".
        token_weights: Factor on the step of each token, (tokens, 1).
        batch: Titles and their categories.
        settings: Encoder and objective.
        factor: Factor on the learning rates.
        step: Number of the step.
    """
    encoder, objective = settings.encoder, settings.objective
    ids, tokens, kinds, titles, offsets, x = (tensor.numpy() for tensor in batch.bags)
    n = len(offsets) - 1
    # Title vectors: v = unit(bag + β |x| unit(W x)), bag = unit(Σ value · row)
    alpha = encoder.kind_weights()
    counts = np.zeros((n, len(alpha)))
    np.add.at(counts, (titles, kinds), 1)
    values = (alpha[kinds] / counts[titles, kinds] ** encoder.length_power)[:, None]  # (entries, 1)
    bag, bag_scale = unit(segment_sum(values * tensors["rows"][ids[tokens]], titles, n))  # (titles, dim)
    aired = np.isin(np.arange(n), titles[kinds >= CONTEXT])
    beta = np.where(aired, encoder.sentence_context, encoder.sentence) * np.linalg.norm(x, axis=1)
    part, part_scale = unit(x @ tensors[f"{LAYER}.rows"].T)
    vectors, scale = unit(bag + beta[:, None] * part)
    # Loss: cross-entropy −τ Σ t log p of the categories, p = softmax(cosine / τ)
    labels, label_scale = unit(tensors["labels.rows"])
    is_aired = batch.targets.aired.numpy()[:, None]
    tau = np.where(is_aired, objective.context_temperature, objective.temperature)
    logits = vectors @ labels.T / tau  # (titles, labels)
    log_p = logits - np.log(np.exp(logits - logits.max(1)[:, None]).sum(1))[:, None] - logits.max(1)[:, None]
    target = np.zeros_like(log_p)
    np.add.at(
        target, (batch.targets.titles.numpy(), batch.targets.labels.numpy()), batch.targets.shares.numpy()
    )
    loss = -(tau * target * log_p).sum() / n
    # Gradients, from the loss back to the rows; τ cancels: dloss / dcosine = (p − t) / n
    excess = (np.exp(log_p) - target) / n
    label_grads = unit_backward(excess.T @ vectors, labels, label_scale)
    grads = unit_backward(excess @ labels, vectors, scale)
    layer_grads = unit_backward(beta[:, None] * grads, part, part_scale).T @ x
    bag_grads = unit_backward(grads, bag, bag_scale)
    row_grads = segment_sum(values * bag_grads[titles], tokens, len(ids))  # (unique, dim)
    # Updates: the rows of the batch, and all rows of the dense parameters
    update_rows_(tensors, "", ids, row_grads, optimizers["rows"], factor * token_weights[ids], step)
    for name, dense_grads in (("labels", label_grads), (LAYER, layer_grads)):
        rows = np.arange(len(dense_grads))
        update_rows_(tensors, f"{name}.", rows, dense_grads, optimizers[name], factor, step)
    return loss


def unit(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns unit vectors and 1 / norm, (rows, 1); zero vectors remain zero, with a scale of zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    scale = np.divide(1, norms, out=np.zeros_like(norms), where=norms >= 1e-12)
    return vectors * scale, scale


def unit_backward(grads: np.ndarray, units: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Gradient through ``unit``: the part perpendicular to the unit vector, times 1 / norm."""
    return scale * (grads - (grads * units).sum(1, keepdims=True) * units)


def segment_sum(values: np.ndarray, segment_ids: np.ndarray, num_segments: int) -> np.ndarray:
    """Sums values (entries, dim) per segment: (num_segments, dim)."""
    sums = np.zeros((num_segments, values.shape[1]))
    np.add.at(sums, segment_ids, values)
    return sums


def update_rows_(tensors, prefix, ids, grads, optimizer, factor, step) -> None:
    """Applies SGD, row-wise Adagrad or Adam to the rows ``ids`` of the parameter with this name prefix."""
    rows, rate = tensors[f"{prefix}rows"], optimizer.learning_rate * factor
    state = {name: tensors.get(f"{prefix}state.{name}") for name in ("sum", "first", "second")}
    if isinstance(optimizer, Adam):
        beta1, beta2, first, second = optimizer.beta1, optimizer.beta2, state["first"], state["second"]
        first[ids] = beta1 * first[ids] + (1 - beta1) * grads
        second[ids] = beta2 * second[ids] + (1 - beta2) * grads**2
        root = np.sqrt(second[ids] / (1 - beta2**step)) + optimizer.epsilon
        rows[ids] -= rate * (first[ids] / (1 - beta1**step)) / root
    elif isinstance(optimizer, RowwiseAdagrad):
        if grads.size:
            state["sum"][ids] += (grads**2).mean(1, keepdims=True)
        rows[ids] -= rate * grads / (np.sqrt(state["sum"][ids]) + optimizer.epsilon)
    else:
        rows[ids] -= rate * grads
