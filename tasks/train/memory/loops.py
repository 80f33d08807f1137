"""Loop that writes queries to the key-value memory (bank.py), compiled by numba.

The loop updates ``Slots`` in place. For each query, it also finds two slots in the memory as it was before
the batch: the nearest slot with the label of the query, and the nearest slot with a label that the title does
not have. If several slots are equally near, the loop selects the one with the lowest number.
"""

from typing import NamedTuple, no_type_check

import numpy as np

from storage.shapes import Float32, Int64
from tasks.train.memory.rules import AVERAGING, CIRCULAR

SCALE = 1 << 20  # priorities are (age in queries + noise) · SCALE, rounded to integers
LANES = 64  # slot s is in lane s % LANES; only lanes with a high best score are scanned a second time
NO_SCORE, MIN_SCORE = np.float32(-4), np.float32(-2)  # both below all products of unit vectors
BFLOAT16_SHIFT = np.uint32(16)  # a bfloat16 is the upper half of a float32
MIN_NORM = 1e-6  # if ‖q + K‖ is smaller, the direction of q + K is undefined, and the key does not change


class Slots(NamedTuple):
    """Arrays and counters of the memory while a batch is written. Ages are updated after the batch."""

    keys: Float32[np.ndarray, "slots dim"]
    values: Int64[np.ndarray, " slots"]  # label, or -1 for an empty slot
    hits: Int64[np.ndarray, " slots"]  # number of hits since the slot was last replaced
    priorities: Int64[np.ndarray, " slots"]  # (age at the start of the batch + noise) · SCALE
    noise: Int64[np.ndarray, " slots"]  # noise in the priority, multiplied by SCALE
    last_query: Int64[np.ndarray, " slots"]  # last query of this batch that wrote the slot, or -1
    slots_per_label: Int64[np.ndarray, " labels"]  # number of slots with each label
    counters: Int64[np.ndarray, " 2"]  # number of slots replaced since the first batch; number of empty slots


class Queries(NamedTuple):
    """Queries of a batch, and the slots that the loop finds for them."""

    vectors: Float32[np.ndarray, "queries dim"]
    labels: Int64[np.ndarray, " queries"]  # label to store with each query
    other_labels: Int64[np.ndarray, " entries"]  # other labels of the title of each query
    other_offsets: Int64[np.ndarray, " queries+1"]  # offsets of each query in the other labels
    # Nearest slot with the label, and nearest slot with a label that the title does not have; -1: none
    nearest_slots: Int64[np.ndarray, "queries 2"]
    products: Float32[np.ndarray, "queries 2"]  # dot products of the query and the keys of the nearest slots
    slots: Int64[np.ndarray, " queries"]  # slot that the query has written, or -1


@no_type_check  # compiled by numba
def process_block(
    slots: Slots,
    queries: Queries,
    policy: int,
    max_slots_per_label: int,
    keys_before: np.ndarray,
    values_before: np.ndarray,
    current_values: np.ndarray,
    changed_slots: np.ndarray,
    priority_order: np.ndarray,
    first_query: int,
    scores: np.ndarray,
    tolerance: np.float32,
    find_only: bool,
) -> None:
    """Searches the nearest slots of a block of queries or, in a second call, writes the block to the memory.

    The first call, with ``find_only``, stores the nearest slots before the batch in ``queries``. The second
    call updates ``slots``. Both calls compute float32 products for the slots whose score is within
    ``tolerance`` of the best score. The second call also does so for the slots that this batch has changed.

    Args:
        slots: Slots to update.
        queries: All queries of the batch.
        policy: OLDEST, CIRCULAR or AVERAGING.
        max_slots_per_label: Maximum for the rule AlwaysUpdate; 0 for HitOrMiss.
        keys_before: float32 (slots, dim), keys before the batch.
        values_before: int32 (padded slots,), values before the batch, padded with -1 to a multiple of LANES.
        current_values: int32, like ``values_before``, but -1 for slots that this batch has changed.
        changed_slots: int64 (slots + 1,), slots that this batch has changed; the last entry counts them.
        priority_order: int64 (slots + 1,), slots by descending priority before the batch; the last entry is
            the first index whose slot may be unchanged.
        first_query: Number of the first query of the block.
        scores: uint16 (block, padded slots), bfloat16 products of the queries and ``keys_before``, as bits.
        tolerance: Twice the maximum error of a score.
        find_only: True in the first call, False in the second.
    """
    slot_count, dim = slots.keys.shape
    best_same, best_other = np.empty((2, LANES), dtype=np.float32)
    group_count = len(values_before) // LANES
    masked_values = np.empty_like(values_before)
    slot_values, keys = (values_before, keys_before) if find_only else (current_values, slots.keys)
    # relation: 0 for a slot with the label of the query, 1 for a slot with another label
    for row in range(len(scores)):
        query_number = first_query + row
        query, label = queries.vectors[query_number], np.int32(queries.labels[query_number])
        score_bits = scores[row]
        nearest, products = queries.nearest_slots[query_number].copy(), queries.products[query_number].copy()
        first_entry, end_entry = queries.other_offsets[query_number], queries.other_offsets[query_number + 1]
        has_other_labels = first_entry < end_entry
        visible_values = slot_values
        if find_only and has_other_labels:
            visible_values = masked_values
            masked_values[:] = values_before
            for entry in range(first_entry, end_entry):
                other_label = queries.other_labels[entry]
                for slot in range(len(values_before)):
                    masked_values[slot] = -1 if values_before[slot] == other_label else masked_values[slot]
        # The nearest slots before the batch are still the nearest of the slots that did not change, unless
        # they changed themselves.
        same_changed = nearest[0] >= 0 and current_values[nearest[0]] < 0
        other_changed = nearest[1] >= 0 and current_values[nearest[1]] < 0
        if find_only or has_other_labels or same_changed or other_changed:
            best_same[:], best_other[:] = NO_SCORE, NO_SCORE
            for group in range(group_count):  # slot = group · LANES + lane
                first_slot = group * LANES
                for lane in range(LANES):
                    bits = np.uint32(score_bits[first_slot + lane])
                    score = np.uint32(bits << BFLOAT16_SHIFT).view(np.float32)
                    value = visible_values[first_slot + lane]
                    same_score = score if value == label else NO_SCORE
                    other_score = NO_SCORE if value == label or value < 0 else score
                    best_same[lane] = same_score if same_score > best_same[lane] else best_same[lane]
                    best_other[lane] = other_score if other_score > best_other[lane] else best_other[lane]
            min_same_score = max(best_same.max() - tolerance, MIN_SCORE)
            min_other_score = max(best_other.max() - tolerance, MIN_SCORE)
            nearest[:], products[:] = -1, NO_SCORE
            for lane in range(LANES):
                if best_same[lane] < min_same_score and best_other[lane] < min_other_score:
                    continue
                for group in range(group_count):
                    slot = group * LANES + lane
                    score = np.uint32(np.uint32(score_bits[slot]) << BFLOAT16_SHIFT).view(np.float32)
                    relation = 0 if visible_values[slot] == label else 1
                    if visible_values[slot] < 0 or score < (min_other_score if relation else min_same_score):
                        continue
                    key, product = keys[slot], np.float32(0)
                    for axis in range(dim):
                        product += query[axis] * key[axis]
                    if product > products[relation] or (
                        product == products[relation] and slot < nearest[relation]
                    ):
                        products[relation], nearest[relation] = product, slot
        if find_only:
            queries.nearest_slots[query_number], queries.products[query_number] = nearest, products
            continue
        for position in range(changed_slots[slot_count]):
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
        if max_slots_per_label > 0:
            if slots.counters[1] > 0 and slots.slots_per_label[label] < max_slots_per_label:
                replaces, slot = True, 0
                while slots.values[slot] >= 0:
                    slot += 1
        elif not is_hit and not (policy == AVERAGING and slots.counters[1] == 0 and nearest_same >= 0):
            replaces = True
            if policy == CIRCULAR:
                slot = slots.counters[0] % slot_count
            else:
                next_index = priority_order[slot_count]
                while next_index < slot_count and slots.last_query[priority_order[next_index]] >= 0:
                    next_index += 1
                priority_order[slot_count] = next_index
                slot = priority_order[min(next_index, slot_count - 1)]
                for position in range(changed_slots[slot_count]):
                    other_slot = changed_slots[position]
                    difference = slots.priorities[other_slot] - slots.priorities[slot]
                    slot = other_slot if difference > 0 or (difference == 0 and other_slot < slot) else slot
        queries.slots[query_number] = slot
        if slot < 0:
            continue
        if replaces:
            if slots.values[slot] < 0:
                slots.counters[1] -= 1
            else:
                slots.slots_per_label[slots.values[slot]] -= 1
            slots.keys[slot] = query
            slots.values[slot], slots.hits[slot] = label, 0
            slots.counters[0] += 1
            slots.slots_per_label[label] += 1
        else:
            squared_norm = 0.0  # of query + key
            for axis in range(dim):
                squared_norm += np.float64(query[axis] + slots.keys[slot, axis]) ** 2
            norm = np.sqrt(squared_norm)
            if norm > MIN_NORM:
                for axis in range(dim):
                    slots.keys[slot, axis] = np.float32((query[axis] + slots.keys[slot, axis]) / norm)
            if is_hit:
                slots.hits[slot] += 1
        slots.priorities[slot] = slots.noise[slot] - (query_number + 1) * SCALE
        if slots.last_query[slot] < 0:
            changed_slots[changed_slots[slot_count]] = slot
            changed_slots[slot_count] += 1
            current_values[slot] = -1
        slots.last_query[slot] = query_number
