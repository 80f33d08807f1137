"""Writes queries into the memory one after the other: by NumPy, a query at a time, and as loops to be
compiled, which are given scores that may be a little wrong.

Both change ``Slots`` in place and find, for each query, the nearest slot of its label and the nearest of a
label that its title does not have, as the slots were at the start; ties go to the lowest slot.
"""

from typing import NamedTuple, no_type_check

import numpy as np

from storage.shapes import Float32, Int64
from tasks.train.memory.rules import AVERAGING, CIRCULAR

SCALE = 1 << 20  # priorities are ages with noise, in this part of a query
LANES = 64  # columns of slots whose best scores are kept: few hold a candidate
NONE, LEAST = np.float32(-4), np.float32(-2)  # below any product of unit vectors
SIXTEEN = np.uint32(16)  # a bfloat16 is the upper half of a float32
PARALLEL = 1e-6  # a sum q + K this short has no direction: the slot stays


class Slots(NamedTuple):
    """The memory and what is counted while a batch is written; ages are brought up to date at its end."""

    keys: Float32[np.ndarray, "slots dim"]
    values: Int64[np.ndarray, " slots"]  # label, -1 where empty
    hits: Int64[np.ndarray, " slots"]
    priorities: Int64[np.ndarray, " slots"]  # (age at the start − now + noise) · SCALE
    noise: Int64[np.ndarray, " slots"]  # the same part of it
    written: Int64[np.ndarray, " slots"]  # the query that wrote it last, -1: none of this batch
    held: Int64[np.ndarray, " labels"]  # slots of each label
    state: Int64[np.ndarray, " 2"]  # slots replaced since the first batch, empty slots


class Queries(NamedTuple):
    """The titles of a batch, and what is found of them."""

    vectors: Float32[np.ndarray, "queries dim"]
    labels: Int64[np.ndarray, " queries"]  # the one each is kept under
    others: Int64[np.ndarray, " entries"]  # its other labels
    offsets: Int64[np.ndarray, " queries+1"]  # where they are
    near: Int64[np.ndarray, "queries 2"]  # nearest slot of the label, of no label of its: -1: none
    products: Float32[np.ndarray, "queries 2"]  # theirs with the query
    slots: Int64[np.ndarray, " queries"]  # the slot written, -1: none


def write(slots: Slots, queries: Queries, policy: int, quota: int) -> None:
    """Writes by NumPy; ``quota``: slots of a label (AlwaysUpdate), or 0 (HitOrMiss)."""
    keys, values, start, start_values = slots.keys, slots.values, slots.keys.copy(), slots.values.copy()
    for number, (query, label) in enumerate(zip(queries.vectors, queries.labels, strict=True)):
        others = queries.others[queries.offsets[number] : queries.offsets[number + 1]]
        scores = start @ query
        same = start_values == label
        other = (start_values >= 0) & ~same & ~np.isin(start_values, others)
        queries.near[number] = _nearest(scores, same), _nearest(scores, other)
        scores = keys @ query
        nearest, own = _nearest(scores, values >= 0), _nearest(scores, values == label)
        hit = own >= 0 and own == nearest
        if quota:
            replaces = bool(slots.state[1]) and slots.held[label] < quota
            slot = int((values < 0).argmax()) if replaces else own
        else:
            averages = policy == AVERAGING and not slots.state[1] and own >= 0
            replaces = not (hit or averages)
            in_turn = int(slots.state[0]) % len(keys)
            free = in_turn if policy == CIRCULAR else int(slots.priorities.argmax())
            slot = free if replaces else own
        queries.slots[number] = slot
        if slot < 0:
            continue
        if replaces:
            if values[slot] < 0:
                slots.state[1] -= 1
            else:
                slots.held[values[slot]] -= 1
            keys[slot], values[slot], slots.hits[slot] = query, label, 0
            slots.state[0] += 1
            slots.held[label] += 1
        else:
            moved = keys[slot] + query
            length = np.sqrt((moved.astype(np.float64) ** 2).sum())
            if length > PARALLEL:
                keys[slot] = moved / length
            slots.hits[slot] += hit
        slots.priorities[slot] = slots.noise[slot] - (number + 1) * SCALE
        slots.written[slot] = number


def _nearest(scores: np.ndarray, among: np.ndarray) -> int:
    return int(np.where(among, scores, -np.inf).argmax()) if among.any() else -1


@no_type_check  # numba compiles it as it stands
def visit(
    slots: Slots,
    queries: Queries,
    policy: int,
    quota: int,
    start: np.ndarray,
    values: np.ndarray,
    current: np.ndarray,
    changed: np.ndarray,
    order: np.ndarray,
    first: int,
    scores: np.ndarray,
    band: np.float32,
    ahead: bool,
) -> None:
    """``write`` for the queries from number ``first`` on, of which ``scores`` are known, in two calls: one
    ``ahead`` finds what is near at the start, and changes nothing else; the other writes them.

    Candidates are the slots whose score lies within ``band`` of the best, and those changed in this batch;
    they are compared by dot products of their own, which do not depend on how the scores were blocked.

    Args:
        slots: To be changed.
        queries: All of the batch.
        policy: OLDEST, CIRCULAR or AVERAGING.
        quota: Slots of a label, or 0.
        start: float32 (slots, dim), the keys before the batch.
        values: int32 (a multiple of LANES,), the values before it, -1 behind them.
        current: int32, the same, -1 for slots that were changed.
        changed: int64 (slots + 1,), the changed slots; the last entry counts them.
        order: int64 (slots + 1,), the slots by falling priority; the last entry counts those passed by.
        first: Number of the first query.
        scores: uint16 (some, a multiple of LANES), products of queries with ``start``, the bits of bfloat16.
        band: Twice the largest error of a score.
        ahead: Which of the two calls it is.
    """
    count, dim = slots.keys.shape
    of_label, of_rest = np.empty((2, LANES), dtype=np.float32)
    groups = len(values) // LANES
    hidden = np.empty_like(values)
    view, keys = (values, start) if ahead else (current, slots.keys)
    for row in range(len(scores)):
        number = first + row
        query, label, line = queries.vectors[number], np.int32(queries.labels[number]), scores[row]
        places, products = queries.near[number].copy(), queries.products[number].copy()
        several = queries.offsets[number] < queries.offsets[number + 1]
        seen = view
        if ahead and several:
            seen = hidden
            hidden[:] = values
            for entry in range(queries.offsets[number], queries.offsets[number + 1]):
                for slot in range(len(values)):
                    hidden[slot] = -1 if values[slot] == queries.others[entry] else hidden[slot]
        # the nearest at the start are the nearest still, unless they were changed
        moved = (places[0] >= 0 and current[places[0]] < 0) or (places[1] >= 0 and current[places[1]] < 0)
        if ahead or several or moved:
            of_label[:], of_rest[:] = NONE, NONE
            for group in range(groups):  # a lane is a column of these groups
                begin = group * LANES
                for lane in range(LANES):
                    score = np.uint32(np.uint32(line[begin + lane]) << SIXTEEN).view(np.float32)
                    value = seen[begin + lane]
                    same = score if value == label else NONE
                    rest = NONE if value == label or value < 0 else score
                    of_label[lane] = same if same > of_label[lane] else of_label[lane]
                    of_rest[lane] = rest if rest > of_rest[lane] else of_rest[lane]
            low_same, low_rest = max(of_label.max() - band, LEAST), max(of_rest.max() - band, LEAST)
            places[:], products[:] = -1, NONE
            for lane in range(LANES):
                if of_label[lane] < low_same and of_rest[lane] < low_rest:
                    continue
                for group in range(groups):
                    slot = group * LANES + lane
                    score = np.uint32(np.uint32(line[slot]) << SIXTEEN).view(np.float32)
                    side = 0 if seen[slot] == label else 1
                    if seen[slot] < 0 or score < (low_rest if side else low_same):
                        continue
                    key, product = keys[slot], np.float32(0)
                    for axis in range(dim):
                        product += query[axis] * key[axis]
                    if product > products[side] or (product == products[side] and slot < places[side]):
                        products[side], places[side] = product, slot
        if ahead:
            queries.near[number], queries.products[number] = places, products
            continue
        for position in range(changed[count]):
            slot = changed[position]
            key, product = slots.keys[slot], np.float32(0)
            for axis in range(dim):
                product += query[axis] * key[axis]
            side = 0 if slots.values[slot] == label else 1
            if product > products[side] or (product == products[side] and slot < places[side]):
                products[side], places[side] = product, slot
        own = places[0]
        hit = own >= 0 and (
            places[1] < 0
            or products[0] > products[1]
            or (products[0] == products[1] and places[0] < places[1])
        )
        slot, replaces = own, False
        if quota > 0:
            if slots.state[1] > 0 and slots.held[label] < quota:
                replaces, slot = True, 0
                while slots.values[slot] >= 0:
                    slot += 1
        elif not hit and not (policy == AVERAGING and slots.state[1] == 0 and own >= 0):
            replaces = True
            if policy == CIRCULAR:
                slot = slots.state[0] % count
            else:
                while order[count] < count and slots.written[order[order[count]]] >= 0:
                    order[count] += 1
                slot = order[min(order[count], count - 1)]
                for position in range(changed[count]):
                    place = changed[position]
                    apart = slots.priorities[place] - slots.priorities[slot]
                    slot = place if apart > 0 or (apart == 0 and place < slot) else slot
        queries.slots[number] = slot
        if slot < 0:
            continue
        if replaces:
            if slots.values[slot] < 0:
                slots.state[1] -= 1
            else:
                slots.held[slots.values[slot]] -= 1
            slots.keys[slot] = query
            slots.values[slot], slots.hits[slot] = label, 0
            slots.state[0] += 1
            slots.held[label] += 1
        else:
            length = 0.0
            for axis in range(dim):
                length += np.float64(query[axis] + slots.keys[slot, axis]) ** 2
            length = np.sqrt(length)
            if length > PARALLEL:
                for axis in range(dim):
                    slots.keys[slot, axis] = np.float32((query[axis] + slots.keys[slot, axis]) / length)
            if hit:
                slots.hits[slot] += 1
        slots.priorities[slot] = slots.noise[slot] - (number + 1) * SCALE
        if slots.written[slot] < 0:
            changed[changed[count]] = slot
            changed[count] += 1
            current[slot] = -1
        slots.written[slot] = number
