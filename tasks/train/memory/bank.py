"""The memory: slots, each with a unit key, a value (a label) and an age.

A batch of queries is written one after the other: what a query finds is what the ones before it have left.
The nearest slots are found by one product of all queries with the keys at the start, kept in bfloat16 (and
computed in it where the processor can), which leaves a few candidates; these, and the slots that the batch
has changed, are compared by float32 products of their own. So the result does not depend on how queries are
blocked. A thread multiplies the next queries while the last ones are written.

Without numba the same is done by NumPy, a query at a time.
"""

import functools
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from storage.shapes import Float32, Int64
from tasks.compiled import available, compiled
from tasks.neighbours.rescoring import product_tolerance
from tasks.train.memory.loops import LANES, SCALE, Queries, Slots, visit, write
from tasks.train.memory.rules import HitOrMiss, Rule

EMPTY = -1  # the value of an empty slot
CHUNK = 128  # queries whose scores are held at once: 2 MB at 8,192 slots
BFLOAT16 = 6.5e-3  # error of a product of unit vectors: 2⁻⁸ of its factors, 2⁻⁹ of itself, and their product
ROUNDED = 2**-9  # of a product to bfloat16
POLICIES = ("oldest", "circular", "averaging")  # by number, as the loops know them


class Written(NamedTuple):
    """What was found and done, one entry a query; -1 where there was nothing."""

    same: Int64[Tensor, " queries"]  # nearest slot of the query's label, as the slots were at the start
    other: Int64[Tensor, " queries"]  # nearest slot of a label that it does not have
    slots: Int64[Tensor, " queries"]  # the slot that was written
    start: Float32[Tensor, "slots dim"]  # the keys before


class Memory(NamedTuple):
    """The slots; tensors on any device."""

    keys: Float32[Tensor, "slots dim"]  # unit norm; zero where empty
    values: Int64[Tensor, " slots"]  # label, EMPTY where none
    ages: Int64[Tensor, " slots"]  # queries since it was written
    hits: Int64[Tensor, " slots"]  # hits since it was last replaced
    clock: Int64[Tensor, " 2"]  # batches written, slots replaced

    @staticmethod
    def empty(slots: int, dim: int) -> "Memory":
        """No slot is taken."""
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
    ) -> Written:
        """Writes unit queries one after the other, in place.

        Args:
            queries: Titles; no gradient comes back.
            labels: The label each is kept under; a query of label EMPTY is passed over.
            rule: Which slot is written.
            others: Offsets, int64 (queries + 1,), and labels, int64, that the titles have beside it; their
                slots are no negatives.
            label_count: Labels there are; AlwaysUpdate divides the slots among them.
        """
        device, count = self.keys.device, len(self.values)
        vectors, own = queries.detach().float().contiguous(), labels.cpu().numpy()
        offsets, further = (
            (np.zeros(len(own) + 1, np.int64), np.zeros(0, np.int64))
            if others is None
            else [part.cpu().numpy() for part in others]
        )
        asked = own != EMPTY
        near, slots = np.full((len(own), 2), EMPTY), np.full(len(own), EMPTY)
        kept = np.repeat(asked, np.diff(offsets))
        offsets = np.concatenate([[0], np.cumsum(np.diff(offsets)[asked])])
        if not asked.all():
            vectors = vectors[torch.from_numpy(asked).to(device)]
        found = near[asked], near[asked].astype(np.float32), slots[asked]
        host = Queries(vectors.cpu().numpy(), own[asked], further[kept], offsets, *found)
        labels_here = max([int(own.max(initial=0)) + 1, int(self.values.max()) + 1, label_count or 0])
        keys, values, ages, hits, clock = (part.cpu().numpy() for part in self)  # on the CPU the same memory
        noise = np.zeros(count, dtype=np.int64)
        if isinstance(rule, HitOrMiss) and rule.age_noise:
            drawn = np.random.default_rng(int(clock[0])).uniform(-rule.age_noise, rule.age_noise, count)
            noise = np.round(drawn * SCALE).astype(np.int64)
        state = np.array([clock[1], (values == EMPTY).sum()])
        held = np.bincount(values[values != EMPTY], minlength=labels_here)
        written = np.full(count, EMPTY)
        view = Slots(keys, values, hits, ages * SCALE + noise, noise, written, held, state)
        by_hits = isinstance(rule, HitOrMiss)
        policy = POLICIES.index(rule.policy) if by_hits else 0
        quota = 0 if by_hits else max(1, count // (label_count or labels_here))
        start = self.keys.clone()
        if available():
            _visit(view, host, policy, quota, start, vectors)
        else:
            write(view, host, policy, quota)
        total = len(host.labels)
        ages[:] = np.where(written == EMPTY, ages + total, total - 1 - written)
        clock[:] = clock[0] + 1, state[0]
        near[asked], slots[asked] = host.near, host.slots
        if device.type != "cpu":
            for part, now in zip(self, (keys, values, ages, hits, clock), strict=True):
                part.copy_(torch.from_numpy(now))
        same, other, slots = (torch.from_numpy(own).to(device) for own in (*near.T.copy(), slots))
        return Written(same, other, slots, start)


def _visit(view: Slots, host: Queries, policy: int, quota: int, keys: Tensor, vectors: Tensor) -> None:
    count, loop = len(view.values), compiled(visit, fastmath=True)
    half = keys.device.type == "cpu" and _multiplies_bfloat16()
    kind, behind = torch.bfloat16 if half else torch.float32, -count % LANES
    band = np.float32(2 * (BFLOAT16 if half else product_tolerance() + ROUNDED))
    base, asked = F.pad(keys.to(kind), (0, 0, 0, behind)).T, vectors.to(kind)
    start, before = keys.cpu().numpy(), np.pad(view.values.astype(np.int32), (0, behind), constant_values=-1)
    current, changed = before.copy(), np.zeros(count + 1, dtype=np.int64)
    order = np.append(np.argsort(-view.priorities, kind="stable"), 0)
    tiles = torch.empty(2, CHUNK, count + behind, dtype=torch.bfloat16)
    arrays = view, host, policy, quota, start, before, current, changed, order

    def look_ahead(first: int) -> np.ndarray:
        some = asked[first : first + CHUNK]
        tile = tiles[first // CHUNK % 2, : len(some)]
        if half:
            torch.mm(some, base, out=tile)
        else:
            tile.copy_(some @ base)
        scores = tile.view(torch.int16).numpy().view(np.uint16)
        loop(*arrays, first, scores, band, True)
        return scores

    firsts = range(0, len(vectors), CHUNK)
    with ThreadPoolExecutor(1) as ahead:  # products and what is near at the start, while the last are written
        found = [ahead.submit(look_ahead, first) for first in firsts[:1]]
        for first in firsts:
            scores = found.pop().result()
            found += [ahead.submit(look_ahead, after) for after in firsts[first // CHUNK + 1 :][:1]]
            loop(*arrays, first, scores, band, False)


@functools.cache
def _multiplies_bfloat16() -> bool:
    known = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(known.get("avx512_bf16") or known.get("amx_bf16"))
