"""Loops of the compiled step (tasks/train/compiled_step.py), for numba. Numbers are float32, results are
written into arrays that are given. Inner loops run over dimensions or labels, so that they become vectors.
"""

from typing import no_type_check

import numpy as np

SGD, ROWWISE_ADAGRAD, ADAM = range(3)  # rules that ``update_`` knows
SMALLEST = np.float32(1e-12)  # norms below it count as zero and pass no gradient, as in tasks/encoder/bags.py
LOG2E, ZERO, ONE = np.float32(np.log2(np.e)), np.float32(0), np.float32(1)
# 2^f = Σ C_i f^i for f in [0, 1), relative error 1e-7 (Chebyshev interpolation of degree six)
C0, C1, C2, C3 = (np.float32(own) for own in (1.0000000026, 0.6931469287, 0.2402305020, 0.0554804263))
C4, C5, C6 = (np.float32(own) for own in (0.0096845805, 0.0012387821, 0.0002187750))


@no_type_check
def by_row(tokens, kinds, offsets, alpha, powers, starts, titles, values):
    """Entries by row instead of by title: where each row's start, int32 (unique+1,), and of each entry the
    title, int32, and the value α_kind · powers[n_kind].
    """
    counts, weights = np.zeros(len(alpha), np.int64), np.empty(len(alpha), np.float32)
    starts[:] = 0
    for entry in range(len(tokens)):
        starts[tokens[entry] + 1] += 1
    for row in range(1, len(starts)):
        starts[row] += starts[row - 1]
    for title in range(len(offsets) - 1):
        begin, end = offsets[title], offsets[title + 1]
        counts[:] = 0
        for entry in range(begin, end):
            counts[kinds[entry]] += 1
        for kind in range(len(alpha)):
            weights[kind] = alpha[kind] * powers[counts[kind]]
        for entry in range(begin, end):
            place = starts[tokens[entry]]  # of the row's next entry; in the end, where the next row starts
            starts[tokens[entry]] = place + 1
            titles[place], values[place] = title, weights[kinds[entry]]
    for row in range(len(starts) - 1, 0, -1):
        starts[row] = starts[row - 1]
    starts[0] = 0


@no_type_check
def sum_rows(rows, ids, starts, titles, values, sums):
    """Titles' weighted sums of rows, in the order of the table: half the time of title by title."""
    sums[:] = ZERO
    for number in range(len(ids)):
        row = rows[ids[number]]
        for entry in range(starts[number], starts[number + 1]):
            own, value = sums[titles[entry]], values[entry]
            for place in range(len(row)):
                own[place] += value * row[place]


@no_type_check
def make_unit(vectors, factors):
    """Brings vectors to unit norm; ``factors`` gets 1 / norm, or 0 of a vector that counts as zero."""
    for number in range(len(vectors)):
        own, square = vectors[number], ZERO
        for place in range(len(own)):
            square += own[place] * own[place]
        norm = np.sqrt(square)
        factor = ZERO if norm < SMALLEST else ONE / norm
        for place in range(len(own)):
            own[place] *= factor
        factors[number] = factor


@no_type_check
def through_unit(grads, units, factors, result):
    """Gradients of vectors from those of their unit vectors: factor · (g − (g·u) u); the sum of squares."""
    total = np.float64(0)
    for number in range(len(grads)):
        grad, unit, own, factor = grads[number], units[number], result[number], factors[number]
        along, square = ZERO, ZERO
        for place in range(len(grad)):
            along += grad[place] * unit[place]
        for place in range(len(grad)):
            moved = factor * (grad[place] - along * unit[place])
            own[place] = moved
            square += moved * moved
        total += square
    return total


@no_type_check
def sum_of_squares(grads):
    """Of all numbers: not finite where one of them is not."""
    total = np.float64(0)
    for number in range(len(grads)):
        own, square = grads[number], ZERO
        for place in range(len(own)):
            square += own[place] * own[place]
        total += square
    return total


@no_type_check
def softmax(cosines, temperature, aired_temperature, aired, titles, labels, shares):
    """Turns cosines (titles, labels) into (p − t) / n, where p is the softmax over τ; returns the mean loss.

    exp((cosine − 1) / τ) needs no largest cosine: 2 / τ must be below 87.
    """
    count, width, entry, loss = len(cosines), cosines.shape[1], 0, np.float64(0)
    bits = np.empty(width, np.int32)
    powers = bits.view(np.float32)  # 2^k, by its exponent bits
    share_of_title = ONE / np.float32(count)
    for title in range(count):
        own = cosines[title]
        heat = aired_temperature if aired[title] else temperature
        scale, first, whole = LOG2E / heat, entry, ZERO
        while entry < len(titles) and titles[entry] == title:
            loss -= shares[entry] * (own[labels[entry]] - ONE)
            entry += 1
        for label in range(width):
            power = (own[label] - ONE) * scale
            floor = np.floor(power)
            rest = power - floor
            bits[label] = (np.int32(floor) + np.int32(127)) << np.int32(23)
            high = C3 + rest * (C4 + rest * (C5 + rest * C6))
            own[label] = C0 + rest * (C1 + rest * (C2 + rest * high))
        for label in range(width):
            own[label] *= powers[label]
            whole += own[label]
        factor = share_of_title / whole
        for label in range(width):
            own[label] *= factor
        logarithm = heat * np.log(whole)
        for place in range(first, entry):
            loss += shares[place] * logarithm
            own[labels[place]] -= shares[place] * share_of_title
    return loss / count


@no_type_check
def update_(
    rows, first, second, ids, row_weights, starts, titles, values, grads, rule, numbers, owner, owners
):
    """Moves the rows of ``ids`` that belong to an owner, ``id mod owners``, and their state; a row's gradient
    is Σ value · grads[title] over its entries.

    ``first`` is row-wise Adagrad's accumulator (tokens, 1) or Adam's first moment, ``second`` its second.
    """
    rate, epsilon, to_first, keep_second, to_second, root = numbers
    grad = np.empty(rows.shape[1], np.float32)
    for number in range(len(ids)):
        row, own = ids[number], rows[ids[number]]
        if row % owners != owner:
            continue
        grad[:] = ZERO
        for entry in range(starts[number], starts[number + 1]):
            value, of_title = values[entry], grads[titles[entry]]
            for place in range(len(grad)):
                grad[place] += value * of_title[place]
        pace = rate * row_weights[row]
        if rule == ADAM:
            mean, squares = first[row], second[row]
            for place in range(len(grad)):
                mean[place] += to_first * (grad[place] - mean[place])
                squares[place] = keep_second * squares[place] + to_second * grad[place] * grad[place]
                own[place] -= pace * mean[place] / (np.sqrt(squares[place]) / root + epsilon)
        else:
            if rule == ROWWISE_ADAGRAD:
                square = ZERO
                for place in range(len(grad)):
                    square += grad[place] * grad[place]
                first[row, 0] += square / np.float32(len(grad))
                pace /= np.sqrt(first[row, 0]) + epsilon
            for place in range(len(grad)):
                own[place] -= pace * grad[place]
