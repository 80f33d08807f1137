"""Sorts ratings into blocks that fit in the cache and can be trained in parallel.

Users and items are divided into ``BLOCKS`` parts each, which gives BLOCKS² blocks of ratings. Stage s
consists of the blocks (user part p, item part p + s mod BLOCKS), for all p. No two blocks of a stage have a
user or an item in common. Therefore, they can be trained in any order, or in parallel, with the same result.
The stages of an epoch are trained one after the other.

    users   assigned to parts round-robin by descending number of ratings, so that blocks have similar sizes
    items   divided by popularity into parts with equally many ratings; parts of popular items are small
    tiles   inside a block, the ratings of ``TILE`` users in random order; the rows of these users stay in the
            L1 cache, and the rows of the items in the L2 cache

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
TILE = 8  # users per tile; with 1 user and 16 factors, a pass takes 1.3 times as long


@dataclass(frozen=True)
class RatingBlocks:
    """Ratings sorted by stage, block and tile, which the module docstring defines.

    Attributes:
        users: Row number of the user of each rating, int32 (ratings,).
        items: Row number of the item of each rating, int32 (ratings,).
        values: The ratings, float32 (ratings,).
        offsets: Position of the first rating of each block, then the number of ratings; int64 (BLOCKS² + 1,).
    """

    users: np.ndarray
    items: np.ndarray
    values: np.ndarray
    offsets: np.ndarray

    def stages(self) -> Iterator[list[tuple[np.ndarray, np.ndarray, np.ndarray]]]:
        """Yields the blocks of each stage. A block consists of the arrays users, items and values."""
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
    user_part = _assign_round_robin(np.bincount(users)).take(users)
    item_part = _divide_by_popularity(np.bincount(items)).take(items)
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


def _assign_round_robin(counts: np.ndarray) -> np.ndarray:
    """Returns the part of each row, int32 (rows,): round-robin, by descending number of ratings."""
    parts = np.empty(len(counts), np.int32)
    parts[np.argsort(-counts, kind="stable")] = np.arange(len(counts), dtype=np.int32) % BLOCKS
    return parts


def _divide_by_popularity(counts: np.ndarray) -> np.ndarray:
    """Returns the part of each row, int32 (rows,): popular rows first, with equally many ratings per part."""
    parts = np.empty(len(counts), np.int32)
    order = np.argsort(-counts, kind="stable")
    cumulative = counts.take(order).cumsum()
    parts[order] = (cumulative - 1) * BLOCKS // cumulative[-1]
    return parts
