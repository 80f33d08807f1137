"""Loops of the dual cached SVM, to be compiled.

A visit of sample i is one step of dual coordinate descent (Hsieh et al. A Dual Coordinate Descent Method for
Large-scale Linear SVM. ICML 2008, algorithm 1), here with x_i followed by a 1 for the intercept:

    G = y_i wᵀx_i − 1,   α_i ← min(max(α_i − G / ‖x_i‖², 0), C),   w ← w + Δα_i y_i x_i
"""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

AHEAD = (
    4  # rows; rows in random order leave the processor nothing to foresee: 8.2 ns a value without, 3.9 with
)


class Rows(NamedTuple):
    """Rows in memory.

    Attributes:
        begins: int64 (rows,), where the row's ids and values begin.
        ends: int64 (rows,), where they end.
        ids: uint32 (values,); numba need not ask whether an index counts from the end.
        values: float32 (values,).
        labels: int8 (rows,), -1 or 1.
        samples: int64 (rows,), the row's number in the file.
        norms: float64 (rows,), ‖x‖² with the intercept's 1.
        slacks: float32 (rows,), how far the gradient holds α at its bound; 0 where α is free to move.
    """

    begins: np.ndarray
    ends: np.ndarray
    ids: np.ndarray
    values: np.ndarray
    labels: np.ndarray
    samples: np.ndarray
    norms: np.ndarray
    slacks: np.ndarray


def _prefetch(_: Any, array: Any, index: Any) -> Any:
    """Asks for the cache line of ``array[index]``, without waiting for it."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        data = context.make_array(signature.args[0])(context, builder, given[0]).data
        place = builder.bitcast(builder.gep(data, [given[1]]), pointer)
        builder.call(function, [place, number(0), number(3), number(1)])  # to read, soon and often, data
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


prefetch: Any = intrinsic(_prefetch)


def visit(
    rows: Rows, order: np.ndarray, alphas: np.ndarray, weights: np.ndarray, cost: np.float32
) -> tuple[float, float]:
    """A step for each row of ``order``; returns ΣΔα and the largest projected gradient."""
    begins, ends, ids, values, labels, samples, norms, slacks = rows
    intercept = len(weights) - 1
    total = violation = 0.0
    for place in range(len(order)):
        if place + 2 * AHEAD < len(order):
            row = order[place + 2 * AHEAD]
            prefetch(begins, row)
            prefetch(ends, row)
            prefetch(labels, row)
            prefetch(samples, row)
            prefetch(norms, row)
            prefetch(slacks, row)
        if place + AHEAD < len(order):
            row = order[place + AHEAD]
            for position in range(begins[row], ends[row], 16):  # 64 bytes
                prefetch(ids, position)
                prefetch(values, position)
        row = order[place]
        begin, end = begins[row], ends[row]
        score = weights[intercept]
        for position in range(begin, end):
            score += weights[ids[position]] * values[position]
        label, before = labels[row], alphas[samples[row]]
        gradient = label * score - 1.0
        after = np.float32(min(max(before - gradient / norms[row], 0.0), cost))
        change = np.float64(after) - np.float64(before)
        if change != 0.0:
            step = change * label
            for position in range(begin, end):
                weights[ids[position]] += step * values[position]
            weights[intercept] += step
            alphas[samples[row]] = after
            total += change
        if before == 0.0:
            projected = max(-gradient, 0.0)
        elif before == cost:
            projected = max(gradient, 0.0)
        else:
            projected = abs(gradient)
        violation = max(violation, projected)
        gradient += change * norms[row]
        slacks[row] = gradient if after == 0.0 else -gradient if after == cost else 0.0
    return total, violation


def measure(rows: Rows, weights: np.ndarray) -> float:
    """Fills the norms; returns the sum of the rows' hinge losses."""
    begins, ends, ids, values, labels, _, norms, _ = rows
    loss = 0.0
    for row in range(len(begins)):
        score, norm = weights[len(weights) - 1], 1.0
        for position in range(begins[row], ends[row]):
            score += weights[ids[position]] * values[position]
            norm += np.float64(values[position]) * np.float64(values[position])
        norms[row] = norm
        loss += max(1.0 - labels[row] * score, 0.0)
    return loss


def append(held: Rows, count: int, used: int, rows: Rows, wanted: np.ndarray) -> None:
    """Copies rows to the end of those held: ``count`` of them, of ``used`` values."""
    for place in range(len(wanted)):
        row = wanted[place]
        held.begins[count] = used
        for position in range(rows.begins[row], rows.ends[row]):
            held.ids[used] = rows.ids[position]
            held.values[used] = rows.values[position]
            used += 1
        held.ends[count] = used
        held.labels[count], held.samples[count] = rows.labels[row], rows.samples[row]
        held.norms[count], held.slacks[count] = rows.norms[row], rows.slacks[row]
        count += 1


def move_together(held: Rows, kept: np.ndarray) -> None:
    """Moves the kept rows, in their order, to the beginning."""
    used = 0
    for place in range(len(kept)):
        row = kept[place]
        begin, end = held.begins[row], held.ends[row]
        held.begins[place] = used
        for position in range(begin, end):
            held.ids[used] = held.ids[position]
            held.values[used] = held.values[position]
            used += 1
        held.ends[place] = used
        held.labels[place], held.samples[place] = held.labels[row], held.samples[row]
        held.norms[place], held.slacks[place] = held.norms[row], held.slacks[row]
