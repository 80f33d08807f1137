"""Key-value memory. Each slot has a key (a unit vector), a value (a label) and an age.

A query is the vector of a title, which is stored with a label of the title. The queries of a batch are
written one after the other, and each query sees the slots that earlier queries have changed. A search has two
steps. First, the products of a block of queries and all keys are computed in bfloat16, and the slots with the
largest products become candidates. Second, the candidates, and all slots that the batch has changed, are
compared by float32 products, so that the result does not depend on the size of a block. A thread computes the
products of the next block while the current block is written.
"""

import functools
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from storage.arrays import Ragged
from storage.lazy import Tensor, functional, torch
from storage.shapes import Float32, Int64
from tasks.train.memory.loops import LANES, SCALE, BatchState, Queries, Slots, compile_loops
from tasks.train.memory.rules import HitOrMiss, Rule

EMPTY = -1  # value of an empty slot
BLOCK_QUERIES = 128  # number of queries in a block; its products take 2 MB with 8,192 slots
# Error of a product of unit vectors in bfloat16: 2⁻⁸ from rounding its factors, 2⁻⁹ from rounding the result.
BFLOAT16_ERROR = 6.5e-3
ROUNDING_ERROR = 2**-9  # error of rounding a float32 product to bfloat16
POLICIES = ("oldest", "circular", "averaging")  # the position of a policy is its number in rules.py


class WriteResult(NamedTuple):
    """Slots that were found and written for a batch of queries, as slot numbers (-1: none).

    The nearest slots are those in the memory as it was before the batch.
    """

    same_label_slots: Int64[Tensor, " queries"]  # nearest slot with the label of the query
    other_label_slots: Int64[Tensor, " queries"]  # nearest slot with a label that the title does not have
    slots: Int64[Tensor, " queries"]  # slot that the query has written
    keys_before: Float32[Tensor, "slots dim"]  # keys of all slots before the batch


class Memory(NamedTuple):
    """Slots of a key-value memory, as tensors on any device."""

    keys: Float32[Tensor, "slots dim"]  # unit norm; zero if empty
    values: Int64[Tensor, " slots"]  # label, or EMPTY
    ages: Int64[Tensor, " slots"]  # number of queries since the slot was last written
    hits: Int64[Tensor, " slots"]  # number of hits since the slot was last replaced
    clock: Int64[Tensor, " 2"]  # number of written batches, number of replaced slots

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
        other_labels: tuple[Tensor, Tensor] | None = None,
        label_count: int | None = None,
    ) -> WriteResult:
        """Writes a batch of queries to the memory in place, one after the other.

        Args:
            queries: Vectors of titles, with unit norm; they get no gradient.
            labels: Label to store with each query; queries with label EMPTY are skipped.
            rule: Rule that selects the slot to write.
            other_labels: Offsets, int64 (queries + 1,), and ids, int64, of the other labels of each title.
                ``other_label_slots`` of the result are not slots with these labels.
            label_count: Number of labels, among which AlwaysUpdate divides the slots equally; None: the
                number of labels that occur.
        """
        device, slot_count = self.keys.device, len(self.values)
        vectors, query_labels = queries.detach().float().contiguous(), labels.cpu().numpy()
        has_label, ragged_labels = query_labels != EMPTY, Ragged.from_rows([()] * len(query_labels), np.int64)
        if other_labels is not None:
            ragged_labels = Ragged(*(tensor.cpu().numpy() for tensor in other_labels))
        ragged_labels = ragged_labels.take(np.flatnonzero(has_label))
        if not has_label.all():
            vectors = vectors[torch.from_numpy(has_label).to(device)]
        host_queries = _queries_on_host(vectors, query_labels[has_label], ragged_labels)
        num_labels = max([int(query_labels.max(initial=0)) + 1, int(self.values.max()) + 1, label_count or 0])
        # If the memory is on the CPU, these arrays share memory with its tensors.
        keys, values, ages, hits, clock = (tensor.cpu().numpy() for tensor in self)
        noise = _age_noise(rule, seed=int(clock[0]), count=slot_count)
        host_slots = Slots(
            keys=keys,
            values=values,
            hits=hits,
            priorities=ages * SCALE + noise,
            noise=noise,
            last_query=np.full(slot_count, EMPTY),
            slots_per_label=np.bincount(values[values != EMPTY], minlength=num_labels),
            counters=np.array([clock[1], (values == EMPTY).sum()]),
        )
        policy, max_slots = 0, max(1, slot_count // (label_count or num_labels))
        if isinstance(rule, HitOrMiss):
            policy, max_slots = POLICIES.index(rule.policy), 0
        keys_before = self.keys.clone()
        _write_blocks(host_slots, host_queries, policy, max_slots, keys_before, vectors)
        last_query, total = host_slots.last_query, len(host_queries.labels)
        ages[:] = np.where(last_query == EMPTY, ages + total, total - 1 - last_query)
        clock[:] = clock[0] + 1, host_slots.counters[0]
        nearest_slots, slots = np.full((len(query_labels), 2), EMPTY), np.full(len(query_labels), EMPTY)
        nearest_slots[has_label], slots[has_label] = host_queries.nearest_slots, host_queries.slots
        if device.type != "cpu":
            for tensor, array in zip(self, (keys, values, ages, hits, clock), strict=True):
                tensor.copy_(torch.from_numpy(array))
        same_label_slots, other_label_slots, written_slots = (
            torch.from_numpy(array).to(device) for array in (*nearest_slots.T.copy(), slots)
        )
        return WriteResult(same_label_slots, other_label_slots, written_slots, keys_before)


def _queries_on_host(vectors: Tensor, labels: np.ndarray, other_labels: Ragged) -> Queries:
    """Copies queries to the host, with EMPTY as the slots that are found for them."""
    query_count = len(labels)
    return Queries(
        vectors=vectors.cpu().numpy(),
        labels=labels,
        other_labels=other_labels.values,
        other_offsets=other_labels.offsets,
        nearest_slots=np.full((query_count, 2), EMPTY),
        products=np.full((query_count, 2), EMPTY, dtype=np.float32),
        slots=np.full(query_count, EMPTY),
    )


def _age_noise(rule: Rule, seed: int, count: int) -> Int64[np.ndarray, " slots"]:
    """Draws the noise on the ages of slots, multiplied by SCALE; zeros if the rule has no noise."""
    max_noise = rule.age_noise if isinstance(rule, HitOrMiss) else 0.0
    noise = np.random.default_rng(seed).uniform(-max_noise, max_noise, count)
    return np.round(noise * SCALE).astype(np.int64)


def _write_blocks(
    slots: Slots, queries: Queries, policy: int, max_slots_per_label: int, keys: Tensor, vectors: Tensor
) -> None:
    """Writes the queries to the slots, block by block. A thread computes the scores of the next block.

    ``keys`` are the keys before the batch and ``vectors`` the queries, on the device of the memory.
    """
    from tasks.neighbours.on_gpu import torch_tolerance

    if not len(vectors):
        return
    slot_count, (search_block, write_block) = len(slots.values), compile_loops()
    in_bfloat16 = keys.device.type == "cpu" and _multiplies_bfloat16()
    dtype, padding = torch.bfloat16 if in_bfloat16 else torch.float32, -slot_count % LANES
    tolerance = np.float32(2 * (BFLOAT16_ERROR if in_bfloat16 else torch_tolerance() + ROUNDING_ERROR))
    padded_keys, query_vectors = functional.pad(keys.to(dtype), (0, 0, 0, padding)).T, vectors.to(dtype)
    values_before = np.pad(slots.values.astype(np.int32), (0, padding), constant_values=-1)
    batch = BatchState(
        keys_before=keys.cpu().numpy(),
        values_before=values_before,
        current_values=values_before.copy(),
        changed_slots=np.zeros(slot_count + 1, dtype=np.int64),
        priority_order=np.append(np.argsort(-slots.priorities, kind="stable"), 0),
    )
    score_buffers = torch.empty(2, BLOCK_QUERIES, slot_count + padding, dtype=torch.bfloat16)

    def score_block(first_query: int) -> np.ndarray:
        block = query_vectors[first_query : first_query + BLOCK_QUERIES]
        buffer = score_buffers[first_query // BLOCK_QUERIES % 2, : len(block)]
        if in_bfloat16:
            torch.mm(block, padded_keys, out=buffer)
        else:
            buffer.copy_(block @ padded_keys)
        scores = buffer.view(torch.int16).numpy().view(np.uint16)
        search_block(queries, batch, first_query, scores, tolerance)
        return scores

    first_queries = range(0, len(vectors), BLOCK_QUERIES)
    with ThreadPoolExecutor(1) as executor:
        future = executor.submit(score_block, 0)
        for first_query in first_queries:
            scores = future.result()
            if first_query != first_queries[-1]:
                future = executor.submit(score_block, first_query + BLOCK_QUERIES)
            write_block(slots, queries, batch, first_query, scores, tolerance, policy, max_slots_per_label)


@functools.cache
def _multiplies_bfloat16() -> bool:
    """Returns whether the processor has instructions for matrix products in bfloat16."""
    capabilities = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))
