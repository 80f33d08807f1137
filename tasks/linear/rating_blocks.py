"""Sorts ratings into blocks that fit in the cache and can be trained in parallel.

Users and items are divided into ``BLOCKS`` parts each, which gives BLOCKS² blocks of ratings. Stage s
consists of the blocks (p, p + s mod BLOCKS), of which no two have a user or an item in common. They can be
trained in any order, or in parallel, with the same result. The stages of an epoch are trained one after the
other.

    users   assigned to parts round-robin by descending number of ratings, so that blocks have similar sizes
    items   divided by popularity into parts with equally many ratings; parts of popular items are small
    tiles   inside a block, the ratings of ``TILE`` users in random order; their rows stay in the L1 cache and
            the rows of items in the L2 cache

Gemulla, Nijkamp, Haas, Sismanis. Large-Scale Matrix Factorization with Distributed Stochastic Gradient
Descent. KDD 2011, section 4 (stages that share no row). Liu, Wang, Smola. Fast Differentially Private Matrix
Factorization. RecSys 2015, section 4 (popular items in cache).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from storage.arrays import offsets_of

BLOCKS = 8  # with 128 factors, 16 blocks take 1.1 times as long and 32 blocks 1.25 times
TILE = 8  # users; with 1 and 16 factors, a pass takes 1.3 times as long: a step waits for the previous one


@dataclass(frozen=True)
class RatingBlocks:
    """Ratings sorted by stage (blocks without common rows), block (users × items) and tile (8 users).

    Attributes:
        users: User rows, int32 (ratings,).
        items: Item rows, int32 (ratings,).
        values: float32 (ratings,).
        offsets: int64 (BLOCKS² + 1,), first rating of each block, ordered by stage.
    """

    users: np.ndarray
    items: np.ndarray
    values: np.ndarray
    offsets: np.ndarray

    def stages(self) -> Iterator[list[tuple[np.ndarray, np.ndarray, np.ndarray]]]:
        """Iterates over the stages; each is a list of blocks (users, items, values)."""
        for begin in range(0, BLOCKS**2, BLOCKS):
            bounds = self.offsets[begin : begin + BLOCKS + 1]
            blocks = [slice(*ends) for ends in pairwise(bounds)]
            yield [(self.users[block], self.items[block], self.values[block]) for block in blocks]


def sort_into_blocks(
    users: np.ndarray, items: np.ndarray, values: np.ndarray, rng: np.random.Generator
) -> RatingBlocks:
    """Sorts ratings into blocks.

    Args:
        users: Row number of the user of each rating, integers (ratings,).
        items: Row number of the item of each rating, integers (ratings,).
        values: The ratings, float32 (ratings,).
        rng: Random generator of the order within tiles.
    """
    user_part, item_part = (
        _deal_by_count(np.bincount(users)).take(users),
        _cut_by_count(np.bincount(items)).take(items),
    )
    block = (item_part - user_part) % BLOCKS * BLOCKS + user_part
    tiles = int(users.max()) // (BLOCKS * TILE) + 1
    key = block * tiles + users // (BLOCKS * TILE)
    order = rng.permutation(len(users))
    order = order.take(key.take(order).argsort(kind="stable"))
    return RatingBlocks(
        users.take(order).astype(np.int32, copy=False),
        items.take(order).astype(np.int32, copy=False),
        values.take(order).astype(np.float32, copy=False),
        offsets_of(np.bincount(block, minlength=BLOCKS**2)),
    )


def _deal_by_count(counts: np.ndarray) -> np.ndarray:
    """Assigns rows to parts round-robin, by descending number of ratings. Returns int32 (rows,)."""
    parts = np.empty(len(counts), np.int32)
    parts[np.argsort(-counts, kind="stable")] = np.arange(len(counts), dtype=np.int32) % BLOCKS
    return parts


def _cut_by_count(counts: np.ndarray) -> np.ndarray:
    """Assigns rows to parts with equally many ratings, popular rows first. Returns int32 (rows,)."""
    parts = np.empty(len(counts), np.int32)
    order = np.argsort(-counts, kind="stable")
    cumulative = counts.take(order).cumsum()
    parts[order] = (cumulative - 1) * BLOCKS // cumulative[-1]
    return parts
