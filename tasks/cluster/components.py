"""Connected components of pairs that come piece by piece, in memory that grows with the titles alone."""

from __future__ import annotations

import numpy as np

KEPT = 1 << 21  # pairs that wait, 8 bytes each, before they are joined


class Links:
    """Pairs of near titles, boiled down as they come: at most ``KEPT`` wait, and those of titles that are not core yet.

    A title that is core stays core, so a pair of two such joins their components at once and is forgotten. What is left
    has an end with fewer than min_samples pairs so far: min_samples times the titles, whatever eps is.

    Args:
        titles: Number of titles.
        min_samples: Titles within eps, itself included, that make a title core.
    """

    def __init__(self, titles: int, min_samples: int) -> None:
        self.counts = np.zeros(titles, dtype=np.int64)
        self.components = np.arange(titles, dtype=np.int32)
        self.min_samples = min_samples
        self.pending: list[tuple[np.ndarray, np.ndarray]] = []
        self.waiting, self.most = 0, KEPT

    def count(self, first: int, found: np.ndarray) -> None:
        """Adds near titles found of the titles from ``first`` on."""
        self.counts[first : first + len(found)] += found

    def add(self, left: np.ndarray, right: np.ndarray) -> None:
        """Takes pairs of near titles, each once or twice; a title and itself is no pair."""
        kept = left != right
        self.pending.append((left[kept].astype(np.int32), right[kept].astype(np.int32)))
        self.waiting += len(self.pending[-1][0])
        if self.waiting > self.most:
            self._boil_down()
            self.most = 2 * self.waiting + KEPT

    def _boil_down(self) -> None:
        core = self.counts >= self.min_samples
        left, right = (np.concatenate([pair[side] for pair in self.pending]) if self.pending else np.zeros(0, np.int32) for side in (0, 1))
        self.components = merge(self.components, *(self.components[side[core[left] & core[right]]] for side in (left, right)))
        open_ = ~(core[left] & core[right])
        self.pending = [(left[open_], right[open_])]
        self.waiting = int(open_.sum())

    def finish(self) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]:
        """Core titles (bool), the component of each title, and pairs of a title that is not core with a core one near it."""
        self._boil_down()
        core = self.counts >= self.min_samples
        left, right = self.pending[0]
        there, here = core[right] & ~core[left], core[left] & ~core[right]
        return core, self.components, (np.concatenate([left[there], right[here]]), np.concatenate([right[there], left[here]]))


def merge(components: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Components after joining pairs of them; each is named by its lowest member.

    Args:
        components: int32, shape (nodes,), the lowest member of each node's component.
        left: Components, shape (pairs,).
        right: Components to join them with, shape (pairs,).
    """
    keys = np.minimum(left, right).astype(np.int64) * len(components) + np.maximum(left, right)
    keys.sort()
    pairs = np.divmod(keys[np.flatnonzero(np.diff(keys, prepend=-1))], max(len(components), 1))
    root = np.arange(len(components), dtype=components.dtype)
    while True:
        low, high = root[pairs[0]], root[pairs[1]]
        if (low == high).all():
            return root[components]
        np.minimum.at(root, np.maximum(low, high), np.minimum(low, high))
        while (root[root] != root).any():
            root = root[root]
