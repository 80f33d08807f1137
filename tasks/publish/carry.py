"""Yesterday's places as tonight's start, so that the map does not jump between nights.

A title that was there stands where it stood; a newcomer starts in the middle of its neighbours that were there. The
page says nothing of the scale that the layout's forces work in, so that one is taken at which the links and the pushes of
the old places agree best with them. After the forces have acted, the whole is shifted and stretched back onto the old places.
"""

from __future__ import annotations

import numpy as np

SCALES = np.geomspace(2, 200, 24)  # half-widths of the page that are tried, in units of the forces
PUSHERS = 10


def place_newcomers(start: np.ndarray, offsets: np.ndarray, targets: np.ndarray, pull: np.ndarray, rounds: int = 5) -> np.ndarray:
    """Places of all titles: those given, and for the others (NaN) the mean of their linked ones, else the middle.

    Args:
        start: Floats, shape (titles, 2), NaN for newcomers.
        offsets: Of each title's links, shape (titles + 1,).
        targets: Linked titles, shape (links,).
        pull: Strengths, shape (links,).
        rounds: A newcomer whose linked ones are newcomers too waits for them so often.
    """
    places = start.astype(np.float64).copy()
    heads = np.repeat(np.arange(len(places)), np.diff(offsets))
    for _ in range(rounds):
        missing = np.isnan(places[:, 0])
        if not missing.any():
            return places
        use = missing[heads] & ~missing[targets]
        weight = np.bincount(heads[use], pull[use], minlength=len(places))
        for axis in range(2):
            total = np.bincount(heads[use], pull[use] * places[targets[use], axis], minlength=len(places))
            places[:, axis] = np.where(missing & (weight > 0), total / np.maximum(weight, 1e-12), places[:, axis])
    places[np.isnan(places[:, 0])] = 0
    return places


def scale_of(places: np.ndarray, heads: np.ndarray, targets: np.ndarray, pull: np.ndarray, repulsion: float, generator: np.random.Generator) -> float:
    """The half-width of the page, in units of the forces, at which the layout's objective is greatest for these places."""
    near = ((places[heads] - places[targets]) ** 2).sum(axis=1)
    drawn = generator.integers(len(places), size=(PUSHERS, len(places)))
    far = ((places[None] - places[drawn]) ** 2).sum(axis=2) + 1e-9
    merits = [-(pull * np.log1p(scale**2 * near)).sum() + repulsion * np.log(scale**2 * far / (1 + scale**2 * far)).mean(axis=0).sum() for scale in SCALES]
    return float(SCALES[int(np.argmax(merits))])


def bring_back(places: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Places shifted and stretched so that those of old titles are, in the median, where they were; within -1 and 1.

    Args:
        places: Floats, shape (titles, 2).
        before: Shape (titles, 2), NaN for newcomers.
    """
    old = ~np.isnan(before[:, 0])
    centre, goal = np.median(places[old], axis=0), np.median(before[old], axis=0)
    spread, aimed = np.abs(places[old] - centre).mean(), np.abs(before[old] - goal).mean()
    moved = (places - centre) * (aimed / max(spread, 1e-12)) + goal
    return (moved / max(1.0, float(np.abs(moved).max(initial=0)))).astype(np.float32)
