"""Compiled loops of the dual cached SVM (dual_cached.py).

Visiting sample i performs one step of dual coordinate descent (Hsieh et al. A Dual Coordinate Descent Method
for Large-scale Linear SVM. ICML 2008, algorithm 1), here with x_i followed by a 1 for the intercept:

    G = y_i wᵀx_i − 1 + D α_i,   α_i ← min(max(α_i − G / (‖x_i‖² + D), 0), U),   w ← w + Δα_i y_i x_i

G is the gradient with respect to α_i, and y_i is the label.

``Loss`` holds D and U: 0 and C for the hinge loss, 1 / 2C and infinity for the squared hinge loss.
"""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

PREFETCH_ROWS = 4  # rows to prefetch; saves 4.3 of 8.2 ns per value if rows are visited in random order


class SampleRows(NamedTuple):
    """Samples of the dual cached SVM in memory, one per row.

    Attributes:
        begins: int64 (rows,), first position of the row's ids and values.
        ends: int64 (rows,), end (exclusive) of the positions of the row.
        ids: uint32 (values,); unsigned, so numba omits the check for negative indices.
        values: float32 (values,).
        labels: int8 (rows,), -1 or 1.
        samples: int64 (rows,), sample number in the file.
        norms: float64 (rows,), ‖x‖² with the intercept's 1.
        slacks: float32 (rows,), absolute gradient if it pushes α_i against a bound, else 0.
    """

    begins: np.ndarray
    ends: np.ndarray
    ids: np.ndarray
    values: np.ndarray
    labels: np.ndarray
    samples: np.ndarray
    norms: np.ndarray
    slacks: np.ndarray


class Loss(NamedTuple):
    """Loss function of the dual cached SVM, with its constants D and U in the dual.

    Attributes:
        squared: Whether the hinge loss is squared.
        diagonal: D, the diagonal term of the dual.
        upper: U, the upper bound of α_i.
    """

    squared: bool
    diagonal: np.float32
    upper: np.float32


def _prefetch(_: Any, array: Any, index: Any) -> Any:
    """Prefetches the cache line of ``array[index]``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), pointer)
        read, high_locality, data_cache = number(0), number(3), number(1)
        builder.call(function, [address, read, high_locality, data_cache])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


prefetch: Any = intrinsic(_prefetch)


def visit_rows(
    rows: SampleRows, order: np.ndarray, alphas: np.ndarray, weights: np.ndarray, loss: Loss
) -> tuple[float, float]:
    """Performs a dual step on each row in ``order``.

    Returns the change of Σ (α − ½Dα²) and the largest projected gradient. The projected gradient of α_i is
    the absolute value of its gradient, or 0 if the gradient pushes α_i against a bound.
    """
    begins, ends, ids, values, labels, samples, norms, slacks = rows
    intercept = len(weights) - 1
    dual_change = max_violation = 0.0
    for index in range(len(order)):
        if index + 2 * PREFETCH_ROWS < len(order):
            row = order[index + 2 * PREFETCH_ROWS]
            prefetch(begins, row)
            prefetch(ends, row)
            prefetch(labels, row)
            prefetch(samples, row)
            prefetch(norms, row)
            prefetch(slacks, row)
        if index + PREFETCH_ROWS < len(order):
            row = order[index + PREFETCH_ROWS]
            for position in range(begins[row], ends[row], 16):  # 64 bytes
                prefetch(ids, position)
                prefetch(values, position)
        row = order[index]
        begin, end = begins[row], ends[row]
        score = weights[intercept]
        for position in range(begin, end):
            score += weights[ids[position]] * values[position]
        label, old_alpha = labels[row], alphas[samples[row]]
        curvature = norms[row] + loss.diagonal
        gradient = label * score - 1.0 + loss.diagonal * old_alpha
        new_alpha = np.float32(min(max(old_alpha - gradient / curvature, 0.0), loss.upper))
        change = np.float64(new_alpha) - np.float64(old_alpha)
        if change != 0.0:
            step = change * label
            for position in range(begin, end):
                weights[ids[position]] += step * values[position]
            weights[intercept] += step
            alphas[samples[row]] = new_alpha
            dual_change += change * (1.0 - loss.diagonal * (old_alpha + 0.5 * change))
        if old_alpha == 0.0:
            projected = max(-gradient, 0.0)
        elif old_alpha == loss.upper:
            projected = max(gradient, 0.0)
        else:
            projected = abs(gradient)
        max_violation = max(max_violation, projected)
        gradient += change * curvature
        slacks[row] = gradient if new_alpha == 0.0 else -gradient if new_alpha == loss.upper else 0.0
    return float(dual_change), max_violation


def sum_losses(rows: SampleRows, weights: np.ndarray, squared: bool) -> float:
    """Writes the norm of each row to ``rows.norms`` and returns the sum of the losses of the rows."""
    begins, ends, ids, values, labels, _, norms, _ = rows
    loss_sum = 0.0
    for row in range(len(begins)):
        score, norm = weights[len(weights) - 1], 1.0
        for position in range(begins[row], ends[row]):
            score += weights[ids[position]] * values[position]
            norm += np.float64(values[position]) * np.float64(values[position])
        norms[row] = norm
        loss = max(1.0 - labels[row] * score, 0.0)
        loss_sum += loss * loss if squared else loss
    return loss_sum


def append_rows(
    cached: SampleRows, count: int, value_count: int, rows: SampleRows, selection: np.ndarray
) -> None:
    """Appends ``rows[selection]`` to ``cached``, which has ``count`` rows with ``value_count`` values."""
    for index in range(len(selection)):
        row = selection[index]
        cached.begins[count] = value_count
        for position in range(rows.begins[row], rows.ends[row]):
            cached.ids[value_count] = rows.ids[position]
            cached.values[value_count] = rows.values[position]
            value_count += 1
        cached.ends[count] = value_count
        cached.labels[count], cached.samples[count] = rows.labels[row], rows.samples[row]
        cached.norms[count], cached.slacks[count] = rows.norms[row], rows.slacks[row]
        count += 1


def compact_rows(rows: SampleRows, kept_rows: np.ndarray) -> None:
    """Moves the rows ``kept_rows`` (ascending numbers) to the beginning, and overwrites the other rows."""
    value_count = 0
    for target in range(len(kept_rows)):
        row = kept_rows[target]
        begin, end = rows.begins[row], rows.ends[row]
        rows.begins[target] = value_count
        for position in range(begin, end):
            rows.ids[value_count] = rows.ids[position]
            rows.values[value_count] = rows.values[position]
            value_count += 1
        rows.ends[target] = value_count
        rows.labels[target], rows.samples[target] = rows.labels[row], rows.samples[row]
        rows.norms[target], rows.slacks[target] = rows.norms[row], rows.slacks[row]
