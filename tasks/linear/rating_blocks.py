"""Ratings in the order in which they are learnt: blocks that stay in cache and that threads can share out.

Users and items are cut into ``BLOCKS`` parts each, which makes BLOCKS² blocks of ratings. Stage s holds the
blocks (p, p + s mod BLOCKS): no two of them have a row in common, so they are learnt in any order, or at the
same time, with the same result to the bit. An epoch is its stages one after the other.

    users   dealt to the parts by falling number of ratings, so that blocks are of a size
    items   cut by popularity into parts of as many ratings: the frequent ones share a small part
    inside  by ``TILE`` users, whose rows stay in the first cache while their ratings run, in random order;
            the rows of items stay in the second

Gemulla, Nijkamp, Haas, Sismanis. Large-Scale Matrix Factorization with Distributed Stochastic Gradient
Descent. KDD 2011, section 4 (stages that share no row). Liu, Wang, Smola. Fast Differentially Private Matrix
Factorization. RecSys 2015, section 4 (popular items in cache).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from storage.arrays import offsets_of, stable_order

BLOCKS = 8  # of 128 factors 16 take 1.1 times as long, 32 1.25: a user has fewer ratings in a block
TILE = 8  # one user takes 1.3 times as long of 16 factors: each step waits for the row of the one before


@dataclass(frozen=True)
class RatingBlocks:
    """Ratings sorted by stage, block and tile.

    Attributes:
        users: Rows of users, int32 (ratings,).
        items: Rows of items, int32 (ratings,).
        values: float32 (ratings,).
        offsets: Where each block begins, stage by stage: int64 (BLOCKS² + 1,).
    """

    users: np.ndarray
    items: np.ndarray
    values: np.ndarray
    offsets: np.ndarray

    def stages(self) -> Iterator[list[tuple[np.ndarray, np.ndarray, np.ndarray]]]:
        """For each stage its blocks: users, items and values."""
        for begin in range(0, BLOCKS**2, BLOCKS):
            bounds = self.offsets[begin : begin + BLOCKS + 1]
            blocks = [slice(*ends) for ends in pairwise(bounds)]
            yield [(self.users[block], self.items[block], self.values[block]) for block in blocks]


def in_blocks(
    users: np.ndarray, items: np.ndarray, values: np.ndarray, rng: np.random.Generator
) -> RatingBlocks:
    """Sorts ratings: rows of users and of items, both integers (ratings,), and float32 (ratings,)."""
    user_part, item_part = _dealt(np.bincount(users)).take(users), _cut(np.bincount(items)).take(items)
    block = (item_part - user_part) % BLOCKS * BLOCKS + user_part
    tiles = int(users.max()) // (BLOCKS * TILE) + 1
    key = block * tiles + users // (BLOCKS * TILE)
    order = rng.permutation(len(users))
    order = order.take(stable_order(key.take(order), BLOCKS**2 * tiles))
    return RatingBlocks(
        users.take(order).astype(np.int32, copy=False),
        items.take(order).astype(np.int32, copy=False),
        values.take(order).astype(np.float32, copy=False),
        offsets_of(np.bincount(block, minlength=BLOCKS**2)),
    )


def _dealt(counts: np.ndarray) -> np.ndarray:
    """The part of each row, int32 (rows,): rows by falling count, one to each part in turn."""
    parts = np.empty(len(counts), np.int32)
    parts[np.argsort(-counts, kind="stable")] = np.arange(len(counts), dtype=np.int32) % BLOCKS
    return parts


def _cut(counts: np.ndarray) -> np.ndarray:
    """The part of each row, int32 (rows,): rows by falling count, as many ratings to each part."""
    parts = np.empty(len(counts), np.int32)
    order = np.argsort(-counts, kind="stable")
    until = counts.take(order).cumsum()
    parts[order] = (until - 1) * BLOCKS // until[-1]
    return parts
