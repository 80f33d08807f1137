"""Key-value memory. Each slot has a key (a unit vector), a value (a label) and an age.

A query is the vector of a title, to be stored with a label. The queries of a batch are written one after the
other, and each query sees the slots that earlier queries have changed. A search has two steps. First, the
products of a block of queries and all keys are computed in bfloat16, and the slots with the largest products
become candidates. Second, the candidates, and all slots that the batch has changed, are compared by float32
products, so that the result does not depend on the size of a block. A thread computes the products of the
next block while the current block is written.
"""

import functools
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from storage.arrays import Ragged
from storage.lazy import Tensor, functional, torch
from storage.shapes import Float32, Int64
from tasks.compiled import compiled
from tasks.train.memory.loops import LANES, SCALE, Queries, Slots, process_block
from tasks.train.memory.rules import HitOrMiss, Rule

EMPTY = -1  # value of an empty slot
CHUNK = 128  # queries per block of scores: 2 MB at 8,192 slots
# Error of a product of unit vectors in bfloat16: 2⁻⁸ from rounding its factors, 2⁻⁹ from rounding the result.
BFLOAT16_ERROR = 6.5e-3
ROUNDING_ERROR = 2**-9  # error of rounding a float32 product to bfloat16
POLICIES = ("oldest", "circular", "averaging")  # the index of a policy is its number in rules.py


class WriteResult(NamedTuple):
    """Result of writing a batch of queries to the memory. Contains slot numbers, or -1 for none."""

    nearest_same: Int64[Tensor, " queries"]  # nearest slot before the batch of the label of the query
    nearest_other: Int64[Tensor, " queries"]  # nearest slot before the batch of a label that the title lacks
    slots: Int64[Tensor, " queries"]  # slot that was written
    keys_before: Float32[Tensor, "slots dim"]  # keys of all slots before the batch


class Memory(NamedTuple):
    """Slots of a key-value memory, as tensors on any device."""

    keys: Float32[Tensor, "slots dim"]  # unit norm; zero if empty
    values: Int64[Tensor, " slots"]  # label, or EMPTY
    ages: Int64[Tensor, " slots"]  # queries since the slot was written
    hits: Int64[Tensor, " slots"]  # hits since the slot was last replaced
    clock: Int64[Tensor, " 2"]  # batches written, slots replaced

    @staticmethod
    def empty(slots: int, dim: int) -> "Memory":
        """Creates a memory of empty slots."""
        zeros = torch.zeros(slots, dtype=torch.int64)
        clock = torch.zeros(2, dtype=torch.int64)
        return Memory(torch.zeros(slots, dim), zeros + EMPTY, zeros, zeros.clone(), clock)

    def write_(
        self,
        queries: Float32[Tensor, "queries dim"],
        labels: Int64[Tensor, " queries"],
        rule: Rule,
        *,
        others: tuple[Tensor, Tensor] | None = None,
        label_count: int | None = None,
    ) -> WriteResult:
        """Writes a batch of queries to the memory in place, one after the other.

        Args:
            queries: Vectors of titles, with unit norm; they get no gradient.
            labels: Label to store with each query; queries with label EMPTY are skipped.
            rule: Selects the slot to write.
            others: Offsets, int64 (queries + 1,), and ids, int64, of the further labels of each title. A slot
                with one of these labels is not a slot of another label.
            label_count: Number of labels, to which AlwaysUpdate assigns equal numbers of slots; None: the
                number of labels that occur.
        """
        device, count = self.keys.device, len(self.values)
        vectors, query_labels = queries.detach().float().contiguous(), labels.cpu().numpy()
        has_label, other_labels = query_labels != EMPTY, Ragged.from_rows([()] * len(query_labels), np.int64)
        if others is not None:
            other_labels = Ragged(*(part.cpu().numpy() for part in others))
        other_labels = other_labels.take(np.flatnonzero(has_label))
        near_slots, slots = np.full((len(query_labels), 2), EMPTY), np.full(len(query_labels), EMPTY)
        if not has_label.all():
            vectors = vectors[torch.from_numpy(has_label).to(device)]
        results = near_slots[has_label], near_slots[has_label].astype(np.float32), slots[has_label]
        query_arrays = vectors.cpu().numpy(), query_labels[has_label], other_labels.values
        host_queries = Queries(*query_arrays, other_labels.offsets, *results)
        num_labels = max([int(query_labels.max(initial=0)) + 1, int(self.values.max()) + 1, label_count or 0])
        # If the memory is on the CPU, these arrays share memory with its tensors.
        keys, values, ages, hits, clock = (part.cpu().numpy() for part in self)
        noise = np.zeros(count, dtype=np.int64)
        if isinstance(rule, HitOrMiss) and rule.age_noise:
            age_noise = np.random.default_rng(int(clock[0])).uniform(-rule.age_noise, rule.age_noise, count)
            noise = np.round(age_noise * SCALE).astype(np.int64)
        state = np.array([clock[1], (values == EMPTY).sum()])
        slots_per_label = np.bincount(values[values != EMPTY], minlength=num_labels)
        written = np.full(count, EMPTY)
        slot_arrays = Slots(keys, values, hits, ages * SCALE + noise, noise, written, slots_per_label, state)
        hit_or_miss = isinstance(rule, HitOrMiss)
        policy = POLICIES.index(rule.policy) if hit_or_miss else 0
        quota = 0 if hit_or_miss else max(1, count // (label_count or num_labels))
        keys_before = self.keys.clone()
        _write(slot_arrays, host_queries, policy, quota, keys_before, vectors)
        total = len(host_queries.labels)
        ages[:] = np.where(written == EMPTY, ages + total, total - 1 - written)
        clock[:] = clock[0] + 1, state[0]
        near_slots[has_label], slots[has_label] = host_queries.near, host_queries.slots
        if device.type != "cpu":
            for part, updated in zip(self, (keys, values, ages, hits, clock), strict=True):
                part.copy_(torch.from_numpy(updated))
        nearest_same, nearest_other, slots = (
            torch.from_numpy(array).to(device) for array in (*near_slots.T.copy(), slots)
        )
        return WriteResult(nearest_same, nearest_other, slots, keys_before)


def _write(slots: Slots, queries: Queries, policy: int, quota: int, keys: Tensor, vectors: Tensor) -> None:
    from tasks.neighbours.on_gpu import torch_tolerance

    count, loop = len(slots.values), compiled(process_block, fastmath=True)
    in_bfloat16 = keys.device.type == "cpu" and _multiplies_bfloat16()
    dtype, padding = torch.bfloat16 if in_bfloat16 else torch.float32, -count % LANES
    tolerance = np.float32(2 * (BFLOAT16_ERROR if in_bfloat16 else torch_tolerance() + ROUNDING_ERROR))
    padded_keys, query_vectors = functional.pad(keys.to(dtype), (0, 0, 0, padding)).T, vectors.to(dtype)
    keys_before = keys.cpu().numpy()
    start_values = np.pad(slots.values.astype(np.int32), (0, padding), constant_values=-1)
    current_values, changed_slots = start_values.copy(), np.zeros(count + 1, dtype=np.int64)
    order = np.append(np.argsort(-slots.priorities, kind="stable"), 0)
    tiles = torch.empty(2, CHUNK, count + padding, dtype=torch.bfloat16)
    arrays = slots, queries, policy, quota, keys_before, start_values, current_values, changed_slots, order

    def score_chunk(first: int) -> np.ndarray:
        chunk = query_vectors[first : first + CHUNK]
        tile = tiles[first // CHUNK % 2, : len(chunk)]
        if in_bfloat16:
            torch.mm(chunk, padded_keys, out=tile)
        else:
            tile.copy_(chunk @ padded_keys)
        scores = tile.view(torch.int16).numpy().view(np.uint16)
        loop(*arrays, first, scores, tolerance, True)
        return scores

    starts = range(0, len(vectors), CHUNK)
    with ThreadPoolExecutor(1) as executor:  # scores the next block while the current one is written
        futures = [executor.submit(score_chunk, first) for first in starts[:1]]
        for first in starts:
            scores = futures.pop().result()
            futures += [executor.submit(score_chunk, begin) for begin in starts[first // CHUNK + 1 :][:1]]
            loop(*arrays, first, scores, tolerance, False)


@functools.cache
def _multiplies_bfloat16() -> bool:
    capabilities = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))
