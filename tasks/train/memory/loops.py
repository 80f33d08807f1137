"""Loops that search the key-value memory (bank.py) for queries and write queries to it, compiled by numba.

A batch of queries is processed in blocks. For each query of a block, ``search_block`` finds two slots in the
memory as it was before the batch: the nearest slot with the label of the query, and the nearest slot with a
label that the title does not have. ``write_block`` then writes the queries one after the other. If several
slots are equally near, the slot with the lowest number is selected.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple, no_type_check

import numpy as np

from storage.shapes import Float32, Int32, Int64
from tasks.compiled import compiled, has_numba
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
    """Queries of a batch, and the slots that the loops find for them."""

    vectors: Float32[np.ndarray, "queries dim"]
    labels: Int64[np.ndarray, " queries"]  # label to store with each query
    other_labels: Int64[np.ndarray, " entries"]  # other labels of the title of each query
    other_offsets: Int64[np.ndarray, " queries+1"]  # offsets of each query in the other labels
    # Nearest slot with the label, and nearest slot with a label that the title does not have; -1: none
    nearest_slots: Int64[np.ndarray, "queries 2"]
    products: Float32[np.ndarray, "queries 2"]  # dot products of the query and the keys of the nearest slots
    slots: Int64[np.ndarray, " queries"]  # slot that the query has written, or -1


class BatchState(NamedTuple):
    """Slots before the batch, and which slots the batch has changed so far."""

    keys_before: Float32[np.ndarray, "slots dim"]
    values_before: Int32[np.ndarray, " padded_slots"]  # padded with -1 to a multiple of LANES
    current_values: Int32[np.ndarray, " padded_slots"]  # like values_before, but -1 for changed slots
    changed_slots: Int64[np.ndarray, " slots+1"]  # changed slots; the last entry counts them
    # Slots by descending priority before the batch; the last entry is the first index whose slot may be
    # unchanged.
    priority_order: Int64[np.ndarray, " slots+1"]


@functools.cache
def compile_loops() -> tuple[Callable[..., None], Callable[..., None]]:
    """Compiles ``search_block`` and ``write_block``, with the functions that they call."""
    if has_numba():
        from numba.extending import register_jitable

        # Only an inlined search is vectorised. Inlining the other functions would count references per query.
        register_jitable(inline="always")(_search_slots)
        for function in (_choose_slot, _oldest_slot, _write_slot):
            register_jitable(fastmath={"reassoc", "contract", "nsz"})(function)
    return compiled(search_block, fastmath=True), compiled(write_block, fastmath=True)


@no_type_check
def search_block(queries, batch, first_query, scores, tolerance):
    """Stores the nearest slots before the batch, and their products, in ``queries`` for a block of queries.

    Args:
        queries: All queries of the batch.
        batch: Slots before the batch.
        first_query: Number of the first query of the block.
        scores: uint16 (block, padded slots), bfloat16 products of the queries and ``keys_before``, as bits.
        tolerance: Twice the maximum error of a score. Slots whose score is within ``tolerance`` of the best
            score are compared by float32 products.
    """
    values, masked_values = batch.values_before, np.empty_like(batch.values_before)
    best = np.empty((2, LANES), dtype=np.float32)
    for row in range(len(scores)):
        number = first_query + row
        first_entry, end_entry = queries.other_offsets[number], queries.other_offsets[number + 1]
        visible_values = values
        if first_entry < end_entry:
            visible_values = masked_values
            masked_values[:] = values
            for entry in range(first_entry, end_entry):
                other_label = queries.other_labels[entry]
                for slot in range(len(values)):
                    masked_values[slot] = -1 if values[slot] == other_label else masked_values[slot]
        query, label = queries.vectors[number], np.int32(queries.labels[number])
        nearest, products = queries.nearest_slots[number], queries.products[number]
        _search_slots(
            query, label, scores[row], visible_values, batch.keys_before, tolerance, best, nearest, products
        )


@no_type_check
def write_block(slots, queries, batch, first_query, scores, tolerance, policy, max_slots_per_label):
    """Writes a block of queries, for which ``search_block`` has found the nearest slots, to the memory.

    Args:
        slots: Slots to update.
        queries: All queries of the batch.
        batch: Slots before the batch, and the changed slots, which are updated.
        first_query: Number of the first query of the block.
        scores, tolerance: As in ``search_block``.
        policy: OLDEST, CIRCULAR or AVERAGING.
        max_slots_per_label: Maximum for the rule AlwaysUpdate; 0 for HitOrMiss.
    """
    best = np.empty((2, LANES), dtype=np.float32)
    nearest, products = np.empty(2, np.int64), np.empty(2, np.float32)
    current_values, changed_slots = batch.current_values, batch.changed_slots
    for row in range(len(scores)):
        number = first_query + row
        query, label = queries.vectors[number], np.int32(queries.labels[number])
        nearest[:], products[:] = queries.nearest_slots[number], queries.products[number]
        # The nearest slots before the batch are still the nearest of the slots that did not change, unless
        # they changed themselves. Slots with other labels of the title were not searched.
        if (
            queries.other_offsets[number] < queries.other_offsets[number + 1]
            or (nearest[0] >= 0 and current_values[nearest[0]] < 0)
            or (nearest[1] >= 0 and current_values[nearest[1]] < 0)
        ):
            _search_slots(
                query, label, scores[row], current_values, slots.keys, tolerance, best, nearest, products
            )
        for position in range(changed_slots[-1]):
            slot = changed_slots[position]
            key, product = slots.keys[slot], np.float32(0)
            for axis in range(len(query)):
                product += query[axis] * key[axis]
            is_other = 0 if slots.values[slot] == label else 1
            if product > products[is_other] or (product == products[is_other] and slot < nearest[is_other]):
                products[is_other], nearest[is_other] = product, slot
        is_hit = nearest[0] >= 0 and (
            nearest[1] < 0
            or products[0] > products[1]
            or (products[0] == products[1] and nearest[0] < nearest[1])
        )
        slot, replaces = _choose_slot(slots, batch, label, nearest[0], is_hit, policy, max_slots_per_label)
        queries.slots[number] = slot
        if slot < 0:
            continue
        _write_slot(slots, slot, query, label, replaces, is_hit)
        slots.priorities[slot] = slots.noise[slot] - (number + 1) * SCALE
        if slots.last_query[slot] < 0:
            changed_slots[changed_slots[-1]] = slot
            changed_slots[-1] += 1
            current_values[slot] = -1
        slots.last_query[slot] = number


@no_type_check
def _search_slots(query, label, score_bits, values, keys, tolerance, best, nearest, products):
    """Searches the nearest slot with the label of the query, and the nearest slot with another label.

    Writes the slots to ``nearest`` and their products to ``products``, (2,); -1 if there is no slot.
    ``score_bits`` is a row of ``scores``. Slots whose entry in ``values`` is -1 are not searched.
    ``best`` is a scratch buffer, float32 (2, LANES).
    """
    best_same, best_other = best
    group_count = len(values) // LANES
    best_same[:], best_other[:] = NO_SCORE, NO_SCORE
    for group in range(group_count):  # slot = group · LANES + lane
        first_slot = group * LANES
        for lane in range(LANES):
            bits = np.uint32(score_bits[first_slot + lane])
            score = np.uint32(bits << BFLOAT16_SHIFT).view(np.float32)
            value = values[first_slot + lane]
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
            is_other = 0 if values[slot] == label else 1
            if values[slot] < 0 or score < (min_other_score if is_other else min_same_score):
                continue
            key, product = keys[slot], np.float32(0)
            for axis in range(len(query)):
                product += query[axis] * key[axis]
            if product > products[is_other] or (product == products[is_other] and slot < nearest[is_other]):
                products[is_other], nearest[is_other] = product, slot


@no_type_check
def _choose_slot(slots, batch, label, nearest_same, is_hit, policy, max_slots_per_label):
    """Returns the slot to write (-1: none), and whether the query replaces its content."""
    empty_slots = slots.counters[1]
    if max_slots_per_label > 0:
        if empty_slots == 0 or slots.slots_per_label[label] >= max_slots_per_label:
            return nearest_same, False
        slot = 0
        while slots.values[slot] >= 0:
            slot += 1
        return slot, True
    if is_hit or (policy == AVERAGING and empty_slots == 0 and nearest_same >= 0):
        return nearest_same, False
    if policy == CIRCULAR:
        return slots.counters[0] % len(slots.values), True
    return _oldest_slot(slots, batch), True


@no_type_check
def _oldest_slot(slots, batch):
    """Returns the slot with the highest priority; of several such slots, the one with the lowest number."""
    slot_count, changed_slots, priority_order = len(slots.values), batch.changed_slots, batch.priority_order
    next_index = priority_order[slot_count]
    while next_index < slot_count and slots.last_query[priority_order[next_index]] >= 0:
        next_index += 1
    priority_order[slot_count] = next_index
    slot = priority_order[min(next_index, slot_count - 1)]
    for position in range(changed_slots[slot_count]):
        other_slot = changed_slots[position]
        difference = slots.priorities[other_slot] - slots.priorities[slot]
        slot = other_slot if difference > 0 or (difference == 0 and other_slot < slot) else slot
    return slot


@no_type_check
def _write_slot(slots, slot, query, label, replaces, is_hit):
    """Replaces the content of a slot by the query, or moves its key towards the query."""
    if replaces:
        if slots.values[slot] < 0:
            slots.counters[1] -= 1
        else:
            slots.slots_per_label[slots.values[slot]] -= 1
        slots.keys[slot] = query
        slots.values[slot], slots.hits[slot] = label, 0
        slots.counters[0] += 1
        slots.slots_per_label[label] += 1
        return
    key, squared_norm = slots.keys[slot], 0.0  # of query + key
    for axis in range(len(query)):
        squared_norm += np.float64(query[axis] + key[axis]) ** 2
    norm = np.sqrt(squared_norm)
    if norm > MIN_NORM:
        for axis in range(len(query)):
            key[axis] = np.float32((query[axis] + key[axis]) / norm)
    if is_hit:
        slots.hits[slot] += 1
