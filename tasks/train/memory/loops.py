"""Loop that writes queries to the key-value memory (bank.py), compiled by numba.

The loop updates ``Slots`` in place. For each query, it also finds two slots in the state before the batch:
the nearest slot with the label of the query, and the nearest slot with a label that the title does not have.
In a tie, the slot with the lowest number is chosen.
"""

from typing import NamedTuple, no_type_check

import numpy as np

from storage.shapes import Float32, Int64
from tasks.train.memory.rules import AVERAGING, CIRCULAR

SCALE = 1 << 20  # priorities are (age in queries + noise) · SCALE, rounded to integers
LANES = 64  # slot s is in lane s % LANES; only lanes whose best score is high are scanned a second time
NO_SCORE, MIN_SCORE = np.float32(-4), np.float32(-2)  # below every product of unit vectors
BFLOAT16_SHIFT = np.uint32(16)  # a bfloat16 is the upper half of a float32
MIN_NORM = 1e-6  # if q + K is shorter, its direction is undefined and the slot does not change


class Slots(NamedTuple):
    """Arrays and counters of the memory while a batch is written. Ages are updated after the batch."""

    keys: Float32[np.ndarray, "slots dim"]
    values: Int64[np.ndarray, " slots"]  # label, -1 if empty
    hits: Int64[np.ndarray, " slots"]
    priorities: Int64[np.ndarray, " slots"]  # (age at the start − now + noise) · SCALE
    noise: Int64[np.ndarray, " slots"]  # noise part of the priority
    written: Int64[np.ndarray, " slots"]  # last query of this batch that wrote the slot, or -1
    slots_per_label: Int64[np.ndarray, " labels"]  # number of slots with each label
    state: Int64[np.ndarray, " 2"]  # number of slots replaced since the first batch; number of empty slots


class Queries(NamedTuple):
    """Queries of a batch, and the slots that are found for them."""

    vectors: Float32[np.ndarray, "queries dim"]
    labels: Int64[np.ndarray, " queries"]  # label to store with each query
    others: Int64[np.ndarray, " entries"]  # other labels of the queries
    offsets: Int64[np.ndarray, " queries+1"]  # offsets of the other labels
    near: Int64[np.ndarray, "queries 2"]  # nearest slot with the label; with no label of the title; -1: none
    products: Float32[np.ndarray, "queries 2"]  # dot products of these slots and the query
    slots: Int64[np.ndarray, " queries"]  # slot written, or -1


@no_type_check  # compiled by numba
def process_block(
    slots: Slots,
    queries: Queries,
    policy: int,
    quota: int,
    start: np.ndarray,
    values: np.ndarray,
    current_values: np.ndarray,
    changed_slots: np.ndarray,
    order: np.ndarray,
    first_query: int,
    scores: np.ndarray,
    tolerance: np.float32,
    find_only: bool,
) -> None:
    """Searches slots for a block of queries or, in a second call, writes the block to the memory.

    The first call, with ``find_only``, stores the nearest slots before the batch in ``queries``. The second
    call updates ``slots``. In both, the slots whose score is within ``tolerance`` of the best score, and the
    slots that this batch has changed, are compared by float32 products.

    Args:
        slots: Slots to update.
        queries: All queries of the batch.
        policy: OLDEST, CIRCULAR or AVERAGING.
        quota: Maximum number of slots per label for the rule AlwaysUpdate; 0 for HitOrMiss.
        start: float32 (slots, dim), keys before the batch.
        values: int32 (a multiple of LANES,), values before the batch, padded with -1.
        current_values: int32, like ``values``, with -1 for changed slots.
        changed_slots: int64 (slots + 1,), slots changed in this batch; the last entry is their number.
        order: int64 (slots + 1,), slots by descending priority before the batch; the last entry is the
            index from which slots may still be unchanged.
        first_query: Index of the first query of the block.
        scores: uint16 (block, a multiple of LANES), bits of the bfloat16 products of queries and ``start``.
        tolerance: Twice the maximum error of a score.
        find_only: Whether this is the first call.
    """
    count, dim = slots.keys.shape
    best_same, best_other = np.empty((2, LANES), dtype=np.float32)
    groups = len(values) // LANES
    masked_values = np.empty_like(values)
    slot_values, keys = (values, start) if find_only else (current_values, slots.keys)
    for row in range(len(scores)):
        number = first_query + row
        query, label, line = queries.vectors[number], np.int32(queries.labels[number]), scores[row]
        nearest, products = queries.near[number].copy(), queries.products[number].copy()
        has_others = queries.offsets[number] < queries.offsets[number + 1]
        seen_values = slot_values
        if find_only and has_others:
            seen_values = masked_values
            masked_values[:] = values
            for entry in range(queries.offsets[number], queries.offsets[number + 1]):
                for slot in range(len(values)):
                    masked_values[slot] = -1 if values[slot] == queries.others[entry] else masked_values[slot]
        # the nearest slots before the batch are still the nearest unless they were changed
        same_changed = nearest[0] >= 0 and current_values[nearest[0]] < 0
        other_changed = nearest[1] >= 0 and current_values[nearest[1]] < 0
        if find_only or has_others or same_changed or other_changed:
            best_same[:], best_other[:] = NO_SCORE, NO_SCORE
            for group in range(groups):  # slot = group · LANES + lane
                begin = group * LANES
                for lane in range(LANES):
                    score = np.uint32(np.uint32(line[begin + lane]) << BFLOAT16_SHIFT).view(np.float32)
                    value = seen_values[begin + lane]
                    same_score = score if value == label else NO_SCORE
                    other_score = NO_SCORE if value == label or value < 0 else score
                    best_same[lane] = same_score if same_score > best_same[lane] else best_same[lane]
                    best_other[lane] = other_score if other_score > best_other[lane] else best_other[lane]
            min_same = max(best_same.max() - tolerance, MIN_SCORE)
            min_other = max(best_other.max() - tolerance, MIN_SCORE)
            nearest[:], products[:] = -1, NO_SCORE
            for lane in range(LANES):
                if best_same[lane] < min_same and best_other[lane] < min_other:
                    continue
                for group in range(groups):
                    slot = group * LANES + lane
                    score = np.uint32(np.uint32(line[slot]) << BFLOAT16_SHIFT).view(np.float32)
                    relation = 0 if seen_values[slot] == label else 1
                    if seen_values[slot] < 0 or score < (min_other if relation else min_same):
                        continue
                    key, product = keys[slot], np.float32(0)
                    for axis in range(dim):
                        product += query[axis] * key[axis]
                    if product > products[relation] or (
                        product == products[relation] and slot < nearest[relation]
                    ):
                        products[relation], nearest[relation] = product, slot
        if find_only:
            queries.near[number], queries.products[number] = nearest, products
            continue
        for position in range(changed_slots[count]):
            slot = changed_slots[position]
            key, product = slots.keys[slot], np.float32(0)
            for axis in range(dim):
                product += query[axis] * key[axis]
            relation = 0 if slots.values[slot] == label else 1
            if product > products[relation] or (product == products[relation] and slot < nearest[relation]):
                products[relation], nearest[relation] = product, slot
        nearest_same = nearest[0]
        is_hit = nearest_same >= 0 and (
            nearest[1] < 0
            or products[0] > products[1]
            or (products[0] == products[1] and nearest[0] < nearest[1])
        )
        slot, replaces = nearest_same, False
        if quota > 0:
            if slots.state[1] > 0 and slots.slots_per_label[label] < quota:
                replaces, slot = True, 0
                while slots.values[slot] >= 0:
                    slot += 1
        elif not is_hit and not (policy == AVERAGING and slots.state[1] == 0 and nearest_same >= 0):
            replaces = True
            if policy == CIRCULAR:
                slot = slots.state[0] % count
            else:
                while order[count] < count and slots.written[order[order[count]]] >= 0:
                    order[count] += 1
                slot = order[min(order[count], count - 1)]
                for position in range(changed_slots[count]):
                    other_slot = changed_slots[position]
                    difference = slots.priorities[other_slot] - slots.priorities[slot]
                    slot = other_slot if difference > 0 or (difference == 0 and other_slot < slot) else slot
        queries.slots[number] = slot
        if slot < 0:
            continue
        if replaces:
            if slots.values[slot] < 0:
                slots.state[1] -= 1
            else:
                slots.slots_per_label[slots.values[slot]] -= 1
            slots.keys[slot] = query
            slots.values[slot], slots.hits[slot] = label, 0
            slots.state[0] += 1
            slots.slots_per_label[label] += 1
        else:
            length = 0.0
            for axis in range(dim):
                length += np.float64(query[axis] + slots.keys[slot, axis]) ** 2
            length = np.sqrt(length)
            if length > MIN_NORM:
                for axis in range(dim):
                    slots.keys[slot, axis] = np.float32((query[axis] + slots.keys[slot, axis]) / length)
            if is_hit:
                slots.hits[slot] += 1
        slots.priorities[slot] = slots.noise[slot] - (number + 1) * SCALE
        if slots.written[slot] < 0:
            changed_slots[changed_slots[count]] = slot
            changed_slots[count] += 1
            current_values[slot] = -1
        slots.written[slot] = number
