"""Loops of the compiled training step (tasks/train/compiled_step.py), which numba compiles.

The arithmetic is in float32, and results are written to output arrays, which are arguments. Inner loops run
over dimensions or labels, so that LLVM vectorises them.
"""

from typing import NamedTuple, no_type_check

import numpy as np

from storage.shapes import Float32, Int32, Int64

SGD, ROWWISE_ADAGRAD, ADAM = range(3)  # update rules of ``update_``
MIN_NORM = np.float32(1e-12)  # vectors shorter than this become zero and get no gradient (encoder/bags.py)
LOG2E, ZERO, ONE = np.float32(np.log2(np.e)), np.float32(0), np.float32(1)
# 2^f ≈ Σ C_i f^i for f in [0, 1), with a relative error of 1e-7 (Chebyshev interpolation of degree six)
C0, C1, C2, C3 = (np.float32(value) for value in (1.0000000026, 0.6931469287, 0.2402305020, 0.0554804263))
C4, C5, C6 = (np.float32(value) for value in (0.0096845805, 0.0012387821, 0.0002187750))


class Entries(NamedTuple):
    """Entries of a batch (an entry is a token of a title), grouped by token."""

    ids: Int64[np.ndarray, " unique"]  # distinct token ids
    offsets: Int32[np.ndarray, " unique+1"]  # offsets of the entries of each id
    titles: Int32[np.ndarray, " any"]  # title of each entry
    weights: Float32[np.ndarray, " any"]  # weight of each entry: α_kind · powers[n], see ``group_by_row``


@no_type_check
def group_by_row(tokens, kinds, title_offsets, alpha, powers, entries):
    """Groups the entries of a batch by row instead of by title; writes all fields of ``entries`` but the ids.

    Args:
        tokens: Position of the row of each entry in the distinct rows of the batch.
        kinds: Token kind of each entry.
        title_offsets: Offsets of the entries of each title, (titles + 1,).
        alpha: Weight α of each token kind.
        powers: powers[n] is the factor on the weight of a token if n tokens of its title have its kind.
        entries: Entries to write.
    """
    _, row_offsets, titles, weights = entries
    kind_counts, kind_weights = np.zeros(len(alpha), np.int64), np.empty(len(alpha), np.float32)
    row_offsets[:] = 0
    for entry in range(len(tokens)):
        row_offsets[tokens[entry] + 1] += 1
    for row in range(1, len(row_offsets)):
        row_offsets[row] += row_offsets[row - 1]
    for title in range(len(title_offsets) - 1):
        begin, end = title_offsets[title], title_offsets[title + 1]
        kind_counts[:] = 0
        for entry in range(begin, end):
            kind_counts[kinds[entry]] += 1
        for kind in range(len(alpha)):
            kind_weights[kind] = alpha[kind] * powers[kind_counts[kind]]
        for entry in range(begin, end):
            # The offset of a row moves from its first position to the first position of the next row.
            position = row_offsets[tokens[entry]]
            row_offsets[tokens[entry]] = position + 1
            titles[position], weights[position] = title, kind_weights[kinds[entry]]
    for row in range(len(row_offsets) - 1, 0, -1):
        row_offsets[row] = row_offsets[row - 1]
    row_offsets[0] = 0


@no_type_check
def sum_rows(rows, entries, sums):
    """Writes the weighted sum of the rows of each title to ``sums``, (titles, dim).

    Reading the rows in the order of the table is twice as fast as reading them title by title.
    """
    ids, row_offsets, titles, weights = entries
    sums[:] = ZERO
    for number in range(len(ids)):
        row = rows[ids[number]]
        for entry in range(row_offsets[number], row_offsets[number + 1]):
            title_sum, weight = sums[titles[entry]], weights[entry]
            for axis in range(len(row)):
                title_sum[axis] += weight * row[axis]


@no_type_check
def make_unit(vectors, factors):
    """Normalises vectors in place; writes 1 / norm of each vector to ``factors``, or 0 if norm < MIN_NORM."""
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
def unit_backward(grads, units, factors, vector_grads):
    """Computes the backward pass of ``make_unit``: writes factor · (g − (g·u) u) to ``vector_grads``.

    g is the gradient with respect to a unit vector u of ``units``. ``factors`` is an output of ``make_unit``.
    Returns the sum of squares of ``vector_grads``.
    """
    square_sum = np.float64(0)
    for number in range(len(grads)):
        grad, unit_vector, vector_grad = grads[number], units[number], vector_grads[number]
        projection, square = ZERO, ZERO
        for axis in range(len(grad)):
            projection += grad[axis] * unit_vector[axis]
        for axis in range(len(grad)):
            value = factors[number] * (grad[axis] - projection * unit_vector[axis])
            vector_grad[axis] = value
            square += value * value
        square_sum += square
    return square_sum


@no_type_check
def sum_of_squares(grads):
    """Returns the sum of squares of ``grads``, which is not finite if any element is not finite."""
    square_sum = np.float64(0)
    for number in range(len(grads)):
        grad, square = grads[number], ZERO
        for axis in range(len(grad)):
            square += grad[axis] * grad[axis]
        square_sum += square
    return square_sum


@no_type_check
def cross_entropy_(cosines, temperatures, targets):
    """Returns the mean label loss (objectives/label.py) of n titles; replaces ``cosines`` by its gradient.

    The gradient is (p − t) / n with p = softmax(cosines / τ) and the shares t of the labels of a title. τ is
    ``temperatures[1]`` for titles with context tokens and ``temperatures[0]`` for others. ``cosines`` has the
    shape (titles, labels). ``targets`` contains the fields of LabelTargets.

    The softmax does not subtract the maximum, because exp((cosine − 1) / τ) cannot overflow. This number is
    a normal float if 2 / τ < 87.
    """
    titles, labels, shares, aired = targets
    num_titles, num_labels, entry, loss = len(cosines), cosines.shape[1], 0, np.float64(0)
    bits = np.empty(num_labels, np.int32)
    powers_of_two = bits.view(np.float32)  # 2^k, written as exponent bits
    title_share = ONE / np.float32(num_titles)
    for title in range(num_titles):
        row = cosines[title]
        title_temperature = temperatures[1] if aired[title] else temperatures[0]
        scale, first_entry, exp_sum = LOG2E / title_temperature, entry, ZERO
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
            exp_sum += row[label]
        factor = title_share / exp_sum
        for label in range(num_labels):
            row[label] *= factor
        logarithm = title_temperature * np.log(exp_sum)
        for position in range(first_entry, entry):
            loss += shares[position] * logarithm
            row[labels[position]] -= shares[position] * title_share
    return loss / num_titles


@no_type_check
def update_(arrays, row_weights, entries, grads, rule, constants):
    """Updates the rows of ``entries.ids`` and their optimizer state by the update rule ``rule``.

    The gradient of a row is Σ weight · grads[title] over its entries. ``arrays`` are the rows, the
    accumulator of row-wise Adagrad (tokens, 1) or the first moment of Adam, and the second moment of Adam.
    ``row_weights`` multiply the learning rate of each row. ``constants`` is the result of
    compiled_step._Parameter._constants.
    """
    rows, first, second = arrays
    ids, row_offsets, titles, weights = entries
    rate, epsilon, new_first_share, beta2, new_second_share, correction = constants
    grad = np.empty(rows.shape[1], np.float32)
    for number in range(len(ids)):
        row_id, row = ids[number], rows[ids[number]]
        grad[:] = ZERO
        for entry in range(row_offsets[number], row_offsets[number + 1]):
            weight, title_grad = weights[entry], grads[titles[entry]]
            for axis in range(len(grad)):
                grad[axis] += weight * title_grad[axis]
        step_size = rate * row_weights[row_id]
        if rule == ADAM:
            first_moment, second_moment = first[row_id], second[row_id]
            for axis in range(len(grad)):
                first_moment[axis] += new_first_share * (grad[axis] - first_moment[axis])
                second_moment[axis] = beta2 * second_moment[axis] + new_second_share * grad[axis] * grad[axis]
                row[axis] -= (
                    step_size * first_moment[axis] / (np.sqrt(second_moment[axis]) / correction + epsilon)
                )
        else:
            if rule == ROWWISE_ADAGRAD:
                square = ZERO
                for axis in range(len(grad)):
                    square += grad[axis] * grad[axis]
                first[row_id, 0] += square / np.float32(len(grad))
                step_size /= np.sqrt(first[row_id, 0]) + epsilon
            for axis in range(len(grad)):
                row[axis] -= step_size * grad[axis]
