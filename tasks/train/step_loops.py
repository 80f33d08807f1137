"""Loops of the compiled training step (tasks/train/compiled_step.py), which numba compiles.

The arithmetic is in float32, and results are written to output arrays, which are arguments. Inner loops run
over dimensions or labels, so that LLVM vectorises them.
"""

from typing import no_type_check

import numpy as np

SGD, ROWWISE_ADAGRAD, ADAM = range(3)  # update rules of ``update_``
MIN_NORM = np.float32(1e-12)  # vectors shorter than this become zero and get no gradient (encoder/bags.py)
LOG2E, ZERO, ONE = np.float32(np.log2(np.e)), np.float32(0), np.float32(1)
# 2^f ≈ Σ C_i f^i for f in [0, 1), with a relative error of 1e-7 (Chebyshev interpolation of degree six)
C0, C1, C2, C3 = (np.float32(value) for value in (1.0000000026, 0.6931469287, 0.2402305020, 0.0554804263))
C4, C5, C6 = (np.float32(value) for value in (0.0096845805, 0.0012387821, 0.0002187750))


@no_type_check
def group_by_row(tokens, kinds, offsets, alpha, powers, starts, titles, weights):
    """Groups the entries (tokens of titles) of a batch by row instead of by title.

    Args:
        tokens: Position of the row of each entry in the distinct rows of the batch.
        kinds: Token kind of each entry.
        offsets: Offsets of the entries of each title, (titles + 1,).
        alpha: Weight α of each token kind.
        powers: powers[n] is the factor on the weight of a token if n tokens of its title have its kind.
        starts: Output, int32 (distinct rows + 1,): offsets of the entries of each row.
        titles: Output, int32 (entries,): title of each entry.
        weights: Output, float32 (entries,): weight α_kind · powers[n] of each entry.
    """
    kind_counts, kind_weights = np.zeros(len(alpha), np.int64), np.empty(len(alpha), np.float32)
    starts[:] = 0
    for entry in range(len(tokens)):
        starts[tokens[entry] + 1] += 1
    for row in range(1, len(starts)):
        starts[row] += starts[row - 1]
    for title in range(len(offsets) - 1):
        begin, end = offsets[title], offsets[title + 1]
        kind_counts[:] = 0
        for entry in range(begin, end):
            kind_counts[kinds[entry]] += 1
        for kind in range(len(alpha)):
            kind_weights[kind] = alpha[kind] * powers[kind_counts[kind]]
        for entry in range(begin, end):
            position = starts[tokens[entry]]  # next free entry of the row; finally the start of the next row
            starts[tokens[entry]] = position + 1
            titles[position], weights[position] = title, kind_weights[kinds[entry]]
    for row in range(len(starts) - 1, 0, -1):
        starts[row] = starts[row - 1]
    starts[0] = 0


@no_type_check
def sum_rows(rows, ids, starts, titles, weights, sums):
    """Writes the weighted sum of the rows of each title to ``sums``, (titles, dim).

    The function reads the rows in the order of the table, which is twice as fast as title by title. ``ids``
    are the distinct rows of the batch; ``starts``, ``titles`` and ``weights`` are the outputs of
    group_by_row.
    """
    sums[:] = ZERO
    for number in range(len(ids)):
        row = rows[ids[number]]
        for entry in range(starts[number], starts[number + 1]):
            title_sum, weight = sums[titles[entry]], weights[entry]
            for axis in range(len(row)):
                title_sum[axis] += weight * row[axis]


@no_type_check
def make_unit(vectors, factors):
    """Normalises vectors in place, and writes 1 / norm of each vector (0 below MIN_NORM) to ``factors``."""
    for number in range(len(vectors)):
        vector, square = vectors[number], ZERO
        for axis in range(len(vector)):
            square += vector[axis] * vector[axis]
        norm = np.sqrt(square)
        factor = ZERO if norm < MIN_NORM else ONE / norm
        for axis in range(len(vector)):
            vector[axis] *= factor
        factors[number] = factor


@no_type_check
def unit_backward(grads, units, factors, result):
    """Computes the backward pass of ``make_unit``: writes factor · (g − (g·u) u) to ``result``.

    g is the gradient of the unit vector u of a vector, and ``factors`` are those of ``make_unit``. Returns
    the sum of squares of ``result``.
    """
    square_sum = np.float64(0)
    for number in range(len(grads)):
        grad, unit_vector, result_row, factor = grads[number], units[number], result[number], factors[number]
        projection, square = ZERO, ZERO
        for axis in range(len(grad)):
            projection += grad[axis] * unit_vector[axis]
        for axis in range(len(grad)):
            value = factor * (grad[axis] - projection * unit_vector[axis])
            result_row[axis] = value
            square += value * value
        square_sum += square
    return square_sum


@no_type_check
def sum_of_squares(grads):
    """Returns the sum of squares of ``grads``, which is not finite if any element is not finite."""
    total = np.float64(0)
    for number in range(len(grads)):
        grad, square = grads[number], ZERO
        for axis in range(len(grad)):
            square += grad[axis] * grad[axis]
        total += square
    return total


@no_type_check
def cross_entropy_(cosines, temperature, aired_temperature, aired, titles, labels, shares):
    """Returns the mean label loss (objectives/label.py) of n titles; replaces ``cosines`` by its gradient.

    The gradient is (p − t) / n with p = softmax(cosines / τ) and the shares t of the labels of a title. τ is
    ``aired_temperature`` for titles with context tokens and ``temperature`` for others. ``cosines`` has the
    shape (titles, labels); ``aired``, ``titles``, ``labels`` and ``shares`` are the fields of LabelTargets.

    The softmax does not subtract the maximum, because exp((cosine − 1) / τ) cannot overflow. This number is
    a normal float if 2 / τ < 87.
    """
    count, num_labels, entry, loss = len(cosines), cosines.shape[1], 0, np.float64(0)
    bits = np.empty(num_labels, np.int32)
    powers_of_two = bits.view(np.float32)  # 2^k, written as exponent bits
    share_of_title = ONE / np.float32(count)
    for title in range(count):
        row = cosines[title]
        title_temperature = aired_temperature if aired[title] else temperature
        scale, first_entry, total = LOG2E / title_temperature, entry, ZERO
        while entry < len(titles) and titles[entry] == title:
            loss -= shares[entry] * (row[labels[entry]] - ONE)
            entry += 1
        for label in range(num_labels):
            exponent = (row[label] - ONE) * scale
            floor = np.floor(exponent)
            fraction = exponent - floor
            bits[label] = (np.int32(floor) + np.int32(127)) << np.int32(23)
            upper_terms = C3 + fraction * (C4 + fraction * (C5 + fraction * C6))
            row[label] = C0 + fraction * (C1 + fraction * (C2 + fraction * upper_terms))
        for label in range(num_labels):
            row[label] *= powers_of_two[label]
            total += row[label]
        factor = share_of_title / total
        for label in range(num_labels):
            row[label] *= factor
        logarithm = title_temperature * np.log(total)
        for position in range(first_entry, entry):
            loss += shares[position] * logarithm
            row[labels[position]] -= shares[position] * share_of_title
    return loss / count


@no_type_check
def update_(rows, first, second, ids, row_weights, starts, titles, weights, grads, rule, constants):
    """Updates the rows of ``ids`` and their optimizer state by the update rule ``rule``.

    The gradient of a row is Σ weight · grads[title] over its entries. ``first`` is the accumulator of
    row-wise Adagrad (tokens, 1) or the first moment of Adam, and ``second`` is the second moment of Adam.
    ``row_weights`` multiply the learning rate of each row. ``constants`` is the result of
    compiled_step._Parameter._constants.
    """
    rate, epsilon, new_first_share, beta2, new_second_share, correction = constants
    grad = np.empty(rows.shape[1], np.float32)
    for number in range(len(ids)):
        row_id, row = ids[number], rows[ids[number]]
        grad[:] = ZERO
        for entry in range(starts[number], starts[number + 1]):
            weight, title_grad = weights[entry], grads[titles[entry]]
            for axis in range(len(grad)):
                grad[axis] += weight * title_grad[axis]
        step_size = rate * row_weights[row_id]
        if rule == ADAM:
            mean, squares = first[row_id], second[row_id]
            for axis in range(len(grad)):
                mean[axis] += new_first_share * (grad[axis] - mean[axis])
                squares[axis] = beta2 * squares[axis] + new_second_share * grad[axis] * grad[axis]
                row[axis] -= step_size * mean[axis] / (np.sqrt(squares[axis]) / correction + epsilon)
        else:
            if rule == ROWWISE_ADAGRAD:
                square = ZERO
                for axis in range(len(grad)):
                    square += grad[axis] * grad[axis]
                first[row_id, 0] += square / np.float32(len(grad))
                step_size /= np.sqrt(first[row_id, 0]) + epsilon
            for axis in range(len(grad)):
                row[axis] -= step_size * grad[axis]
