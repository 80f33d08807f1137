"""Compiled loops of the dual cached SVM (dual_cached.py).

Visiting sample i performs one step of dual coordinate descent (Hsieh et al. A Dual Coordinate Descent Method
for Large-scale Linear SVM. ICML 2008, algorithm 1), here with x_i followed by a 1 for the intercept:

    G = y_i wᵀx_i − 1 + D α_i,   α_i ← min(max(α_i − G / (‖x_i‖² + D), 0), U),   w ← w + Δα_i y_i x_i

G is the gradient with respect to α_i, and y_i is the label.

D and U are 0 and C for the hinge loss, and 1 / 2C and infinity for the squared hinge loss.
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
        offsets: int64 (rows + 1,), position of the first value of each row, then the number of values.
        ids: uint32 (values,); unsigned, so numba omits the check for negative indices.
        values: float32 (values,).
        labels: int8 (rows,), -1 or 1.
        samples: int64 (rows,), sample number in the file.
        norms: float64 (rows,), ‖x‖² with the intercept's 1.
        slacks: float32 (rows,), absolute gradient if it pushes α_i against a bound, else 0.
    """

    offsets: np.ndarray
    ids: np.ndarray
    values: np.ndarray
    labels: np.ndarray
    samples: np.ndarray
    norms: np.ndarray
    slacks: np.ndarray


class DualState(NamedTuple):
    """Variables of the dual problem, which a visit changes in place, and constants of the loss.

    Attributes:
        alphas: α, float32 (samples,).
        weights: w, float64 (features + 1,); the last entry is the intercept.
        diagonal: D, the diagonal term of the dual.
        upper: U, the upper bound of α_i.
    """

    alphas: np.ndarray
    weights: np.ndarray
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


def visit_rows(rows: SampleRows, order: np.ndarray, state: DualState) -> tuple[float, float]:
    """Performs a dual step on each row in ``order``.

    Returns the change of Σ (α − ½Dα²) and the largest projected gradient. The projected gradient of α_i is
    the absolute value of its gradient, or 0 if the gradient pushes α_i against a bound.
    """
    offsets, ids, values, labels, samples, norms, slacks = rows
    alphas, weights, diagonal, upper = state
    intercept = len(weights) - 1
    dual_change = max_violation = 0.0
    for index in range(len(order)):
        if index + 2 * PREFETCH_ROWS < len(order):
            row = order[index + 2 * PREFETCH_ROWS]
            prefetch(offsets, row)
            prefetch(labels, row)
            prefetch(samples, row)
            prefetch(norms, row)
            prefetch(slacks, row)
        if index + PREFETCH_ROWS < len(order):
            row = order[index + PREFETCH_ROWS]
            for position in range(offsets[row], offsets[row + 1], 16):  # 64 bytes
                prefetch(ids, position)
                prefetch(values, position)
        row = order[index]
        begin, end = offsets[row], offsets[row + 1]
        score = weights[intercept]
        for position in range(begin, end):
            score += weights[ids[position]] * values[position]
        label, old_alpha = labels[row], alphas[samples[row]]
        curvature = norms[row] + diagonal
        gradient = label * score - 1.0 + diagonal * old_alpha
        new_alpha = np.float32(min(max(old_alpha - gradient / curvature, 0.0), upper))
        change = np.float64(new_alpha) - np.float64(old_alpha)
        if change != 0.0:
            step = change * label
            for position in range(begin, end):
                weights[ids[position]] += step * values[position]
            weights[intercept] += step
            alphas[samples[row]] = new_alpha
            dual_change += change * (1.0 - diagonal * (old_alpha + 0.5 * change))
        if old_alpha == 0.0:
            projected = max(-gradient, 0.0)
        elif old_alpha == upper:
            projected = max(gradient, 0.0)
        else:
            projected = abs(gradient)
        max_violation = max(max_violation, projected)
        gradient += change * curvature
        slacks[row] = gradient if new_alpha == 0.0 else -gradient if new_alpha == upper else 0.0
    return float(dual_change), max_violation


def sum_losses(rows: SampleRows, weights: np.ndarray, squared: bool) -> float:
    """Writes the norm of each row to ``rows.norms`` and returns the sum of the losses of the rows."""
    offsets, ids, values, labels, _, norms, _ = rows
    loss_sum = 0.0
    for row in range(len(labels)):
        score, norm = weights[len(weights) - 1], 1.0
        for position in range(offsets[row], offsets[row + 1]):
            score += weights[ids[position]] * values[position]
            norm += np.float64(values[position]) * np.float64(values[position])
        norms[row] = norm
        loss = max(1.0 - labels[row] * score, 0.0)
        loss_sum += loss * loss if squared else loss
    return loss_sum


def copy_rows(source: SampleRows, selection: np.ndarray, target: SampleRows, count: int) -> None:
    """Copies ``source[selection]`` to ``target``, after its first ``count`` rows.

    If ``source`` is ``target``, ``count`` must be 0 and ``selection`` ascending; all other rows are removed.
    """
    end = target.offsets[count]
    for row in selection:
        for position in range(source.offsets[row], source.offsets[row + 1]):
            target.ids[end], target.values[end] = source.ids[position], source.values[position]
            end += 1
        target.labels[count], target.samples[count] = source.labels[row], source.samples[row]
        target.norms[count], target.slacks[count] = source.norms[row], source.slacks[row]
        count += 1
        target.offsets[count] = end
