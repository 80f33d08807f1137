"""Compiled training loops of L1 logistic regression (logistic.py) for both solvers.

``beta`` selects the solver when a loop is compiled: a number for FTRL-proximal (``ftrl.py``), None for
proximal SGD (``proximal.py``). There are two training loops, because the processor vectorizes the innermost
loop, which runs over the features of a sample if there is one label, and else over the labels. With one label
and 72 features per sample, the loop for several labels takes 1.7 to 1.9 times as long as the other loop.

Arguments of both loops:

    samples     offsets, feature ids and values of the samples; offsets and ids of their labels
    order       numbers of the samples to visit, int64 (visits,)
    rate        learning rate
    threshold   α t (FTRL) or S (proximal SGD) at the first visit
    growth      increase of the threshold per visit
    max_length  maximum number of features per sample
    records     float32 (features, record size), changed in place
    state       float32 (2, labels): z and √n of the intercepts (FTRL), or the intercepts and zeros; changed
                in place once per block, to avoid contention between threads

Threads that share the records may be several blocks apart. If ``last`` of a row (``proximal.py``) exceeds S
of this thread, ``last`` does not change, because the row would otherwise be shrunk twice. Updates are added
to the current record, because another thread may have changed the record since it was read.
"""

from typing import no_type_check

import numpy as np

# Factor on the learning rate of the intercept, which every sample changes. With the factor 1, the noise of
# the intercept caused most of the suboptimality after 10 to 20 passes, up to .0016 of the objective. The
# factor in scikit-learn's SGDClassifier is .01.
INTERCEPT_RATE = 0.1


@no_type_check
def train_single_label(samples, order, rate, threshold, growth, max_length, records, state, beta):
    """Trains on a block of samples with one label; the module docstring lists the arguments."""
    offsets, ids, values, label_offsets, _ = samples
    zero, one, rate = np.float32(0), np.float32(1), np.float32(rate)
    intercept_factor = np.float32(INTERCEPT_RATE)
    inverse_rate, intercept_rate = one / rate, rate * intercept_factor
    weights, sums, roots = np.empty((3, max_length), np.float32)
    first_z, first_root = state[0, 0], state[1, 0]
    # z and √n of the intercept (FTRL), or the intercept itself and 0 (proximal SGD).
    intercept_z, intercept_root = first_z, first_root
    for visit, row in enumerate(order):
        features, value = ids[offsets[row] : offsets[row + 1]], values[offsets[row] : offsets[row + 1]]
        cutoff = np.float32(threshold + visit * growth)
        if beta is None:
            margin = intercept_z
            for index in range(len(features)):
                record = records[features[index]]
                pending = max(cutoff - record[1], zero)
                weights[index] = max(record[0] - pending, zero) + min(record[0] + pending, zero)
            for index in range(len(features)):
                margin += weights[index] * value[index]
        else:
            intercept = -intercept_z * intercept_rate / (beta + intercept_root)
            margin = intercept
            for index in range(len(features)):
                record = records[features[index]]
                sums[index], roots[index] = record[0], record[1]
            for index in range(len(features)):
                shrunk = max(sums[index] - cutoff, zero) + min(sums[index] + cutoff, zero)
                weights[index] = -shrunk * rate / (beta + roots[index])
                margin += weights[index] * value[index]
        error = one / (one + np.exp(-margin))
        if label_offsets[row] < label_offsets[row + 1]:
            error -= one
        if beta is None:
            error *= rate
            for index in range(len(features)):
                record = records[features[index]]
                pending = max(cutoff - record[1], zero)
                shrunk = max(record[0] - pending, zero) + min(record[0] + pending, zero)
                record[0], record[1] = shrunk - error * value[index], max(record[1], cutoff)
            intercept_z -= intercept_factor * error
        else:
            for index in range(len(features)):
                gradient, old_root = error * value[index], roots[index]
                roots[index] = np.sqrt(old_root * old_root + gradient * gradient) - old_root
                sums[index] = gradient - roots[index] * inverse_rate * weights[index]
            for index in range(len(features)):
                record = records[features[index]]
                record[0] += sums[index]
                record[1] += roots[index]
            new_root = np.sqrt(intercept_root * intercept_root + error * error)
            intercept_z += error - (new_root - intercept_root) / intercept_rate * intercept
            intercept_root = new_root
    state[0, 0] += intercept_z - first_z
    state[1, 0] += intercept_root - first_root


@no_type_check
def train_several_labels(samples, order, rate, threshold, growth, max_length, records, state, beta):
    """Trains on a block of samples with several labels; the module docstring lists the arguments."""
    offsets, ids, values, label_offsets, label_ids = samples
    zero, one, rate = np.float32(0), np.float32(1), np.float32(rate)
    intercept_factor, labels = np.float32(INTERCEPT_RATE), state.shape[1]
    inverse_rate, intercept_rate = one / rate, rate * intercept_factor
    weights = np.empty((max_length, labels), np.float32)
    error, intercepts = np.empty((2, labels), np.float32)
    initial_state, new_state = state.copy(), state.copy()  # other threads may change ``state`` meanwhile
    for visit, row in enumerate(order):
        features, value = ids[offsets[row] : offsets[row + 1]], values[offsets[row] : offsets[row + 1]]
        cutoff = np.float32(threshold + visit * growth)
        for label in range(labels):
            intercepts[label] = new_state[0, label]
            if beta is not None:
                intercepts[label] = -new_state[0, label] * intercept_rate / (beta + new_state[1, label])
            error[label] = intercepts[label]  # holds the margin at first, then the error
        for index in range(len(features)):
            record, factor, row_weights = records[features[index]], value[index], weights[index]
            if beta is None:
                pending = max(cutoff - record[labels], zero)
                record[labels] = max(record[labels], cutoff)
                for label in range(labels):
                    weight = max(record[label] - pending, zero) + min(record[label] + pending, zero)
                    record[label] = weight
                    error[label] += weight * factor
            else:
                sums, roots = record[:labels], record[labels:]
                for label in range(labels):
                    shrunk = max(sums[label] - cutoff, zero) + min(sums[label] + cutoff, zero)
                    row_weights[label] = -shrunk * rate / (beta + roots[label])
                    error[label] += row_weights[label] * factor
        for label in range(labels):
            error[label] = one / (one + np.exp(-error[label]))
        for index in range(label_offsets[row], label_offsets[row + 1]):
            error[label_ids[index]] -= one
        for label in range(labels):
            if beta is None:
                error[label] *= rate
                new_state[0, label] -= intercept_factor * error[label]
            else:
                new_root = np.sqrt(new_state[1, label] * new_state[1, label] + error[label] * error[label])
                step = (new_root - new_state[1, label]) / intercept_rate
                new_state[0, label] += error[label] - step * intercepts[label]
                new_state[1, label] = new_root
        for index in range(len(features)):
            record, factor, row_weights = records[features[index]], value[index], weights[index]
            if beta is None:
                for label in range(labels):
                    record[label] -= error[label] * factor
            else:
                sums, roots = record[:labels], record[labels:]
                for label in range(labels):
                    gradient, root = error[label] * factor, roots[label]
                    new_root = np.sqrt(root * root + gradient * gradient)
                    sums[label] += gradient - (new_root - root) * inverse_rate * row_weights[label]
                    roots[label] = new_root
    for label in range(labels):
        state[0, label] += new_state[0, label] - initial_state[0, label]
        state[1, label] += new_state[1, label] - initial_state[1, label]
