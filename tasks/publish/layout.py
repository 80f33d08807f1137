"""Places in the plane for the map: neighbours in space stay neighbours, groups stand apart.

Linked titles attract each other, and each title is pushed by a few others drawn anew in every round, as in UMAP. With
the similarity of two places q = 1 / (1 + d²), the step of title i is the gradient of

    sum over links j:  p_ij log q_ij    +    REPULSION * mean over drawn j:  log(1 - q_ij)

p_ij falls with the distance beyond i's nearest neighbour, made symmetric and of sum 1 a title. All titles move at once,
with momentum: rows of links are contiguous, so a round is a dozen plain passes over arrays and no scatter. It starts
from principal components averaged over links a few times, a cheap stand-in for the graph's slowest eigenvectors.

References: L. McInnes, J. Healy, J. Melville, UMAP: uniform manifold approximation and projection for dimension
reduction, 2018, arXiv:1802.03426, section 3. We differ: full rounds instead of single links, q without the two fitted
exponents, and a weak pull to the middle that keeps unconnected parts on the page. On 21,800 English titles 23 % of the
ten nearest in the plane are among the 25 nearest in space (21 % with 10 drawn and a start a third as wide), in 5 CPU-s.
"""

from __future__ import annotations

import numpy as np

from tasks.publish.carry import bring_back, place_newcomers, scale_of

NEAREST = 12  # links a title starts; more blur the groups and cost time
DRAWN = 20  # titles that push each title in a round
REPULSION = 6.0
STEP = 0.35  # of the first round, falling to 0; from .5 on linked pairs overshoot each other
SMALL_STEP = 0.1  # of the first round after a night before
MOMENTUM = 0.8
GRAVITY = 2e-3
SPREAD = 0.2  # half-width of the start over the root of the titles, in units of the plane in which q falls to 1/2 at distance 1
LONGEST_STEP = 2.0


def lay_out(vectors: np.ndarray, ids: np.ndarray, cosines: np.ndarray, *, seed: int, rounds: int | None = None, before: np.ndarray | None = None) -> np.ndarray:
    """A place in the plane for each title.

    A title without neighbours stands where its principal components put it, inside the cloud of the others.

    Args:
        vectors: float32, shape (titles, dim).
        ids: Integers, shape (titles, k): nearest neighbours, nearest first, -1 where there is none.
        cosines: float32, shape (titles, k).
        seed: Of the draws; one seed gives one layout.
        rounds: How often all titles move; by default 500, fewer above 20,000 titles; with ``before`` a quarter of it.
        before: Floats, shape (titles, 2): where titles stood the night before, NaN for newcomers. Used when at least half
            of the titles were there.

    Returns:
        float32, shape (titles, 2), within -1 and 1.
    """
    titles = len(vectors)
    start = principal_plane(vectors)
    offsets, heads, targets, pull = _links(ids[:, :NEAREST], cosines[:, :NEAREST], titles)
    linked = np.flatnonzero(np.diff(offsets) > 0)
    if before is not None and len(linked) > 2 and 2 * int((~np.isnan(before[:, 0])).sum()) >= titles:
        generator = np.random.default_rng(seed)
        places = place_newcomers(before, offsets, targets, pull)
        places *= scale_of(places, heads, targets, pull, REPULSION, generator)
        rounds = rounds or int(np.clip(1e7 / titles, 200, 500)) // 4
        return bring_back(_move(places, offsets, heads, targets, pull, linked, rounds, generator, step=SMALL_STEP), before)
    if len(linked) > 2:
        places = _smooth(start, offsets, targets, pull, linked)
        rounds = rounds or int(np.clip(1e7 / titles, 200, 500))
        places = _move(places, offsets, heads, targets, pull, linked, rounds, np.random.default_rng(seed))
        loose = np.diff(offsets) == 0
        if loose.any():
            places[loose] = _carry_over(start, places, linked, loose)
    else:
        places = start
    return _fit_page(places)


def principal_plane(vectors: np.ndarray) -> np.ndarray:
    """The two principal components, float64, shape (titles, 2), greatest absolute value 1; signs by the heaviest coordinate."""
    centred = vectors - vectors.mean(axis=0) if len(vectors) else vectors
    _, axes = np.linalg.eigh(centred.T.astype(np.float64) @ centred)
    axes = axes[:, ::-1][:, :2]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1, 1)
    plane = centred.astype(np.float64) @ axes
    plane = np.pad(plane, ((0, 0), (0, 2 - plane.shape[1])))
    return plane / max(np.abs(plane).max(initial=0), 1e-12)


def _links(ids: np.ndarray, cosines: np.ndarray, titles: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Offsets (titles + 1), heads, targets and pulls (links) of the symmetric graph; the pulls of a title sum to 1."""
    heads, columns = np.nonzero((ids >= 0) & (ids != np.arange(titles)[:, None]))
    targets = ids[heads, columns].astype(np.int64)
    distances = np.sqrt(np.maximum(2 - 2 * cosines[heads, columns].astype(np.float64), 0))
    nearest = np.full(titles, np.inf)
    np.minimum.at(nearest, heads, distances)
    beyond = distances - nearest[heads]
    counts = np.maximum(np.bincount(heads, minlength=titles), 1)
    scale = np.maximum(np.bincount(heads, beyond, minlength=titles) / counts, 1e-6)
    strength = np.exp(-beyond / scale[heads])
    keys = np.concatenate([heads * titles + targets, targets * titles + heads])
    pairs, place = np.unique(keys, return_inverse=True)
    forth = np.bincount(place[: len(heads)], strength, minlength=len(pairs))
    back = np.bincount(place[len(heads) :], strength, minlength=len(pairs))
    both = forth + back - forth * back  # either direction suffices
    heads, targets = np.divmod(pairs, max(titles, 1))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(heads, minlength=titles))])
    return offsets, heads, targets, both / np.bincount(heads, both, minlength=titles)[heads]


def _smooth(start: np.ndarray, offsets: np.ndarray, targets: np.ndarray, pull: np.ndarray, linked: np.ndarray, times: int = 12) -> np.ndarray:
    """The start averaged over links and stretched out again, several times; a float64 copy."""
    places = start.copy()
    for _ in range(times):
        averaged = np.add.reduceat(places[targets] * pull[:, None], offsets[linked])
        mixed = 0.5 * places[linked] + 0.5 * averaged
        mixed -= mixed.mean(axis=0)
        covariance = mixed.T @ mixed / len(mixed) + 1e-12 * np.eye(2)
        values, axes = np.linalg.eigh(covariance)
        places[linked] = mixed @ (axes / np.sqrt(values)) @ axes.T  # variance 1 both ways, without turning
    reach = np.quantile(np.abs(places[linked]), 0.99)
    places[linked] = np.clip(places[linked] / max(reach, 1e-12), -1.5, 1.5) * SPREAD * np.sqrt(len(linked))
    return places


def _move(
    places: np.ndarray, offsets: np.ndarray, heads: np.ndarray, targets: np.ndarray, pull: np.ndarray, linked: np.ndarray, rounds: int, generator: np.random.Generator,
    step: float = STEP,
) -> np.ndarray:  # fmt: skip
    """The places of the linked titles after all rounds; equal starts are told apart by a little noise."""
    count = len(linked)
    number = np.zeros(len(places), dtype=np.int64)
    number[linked] = np.arange(count)
    rows, columns, begins = number[heads], number[targets], offsets[linked]
    pull = pull.astype(np.float32)
    place = (places[linked] + 1e-3 * SPREAD * np.sqrt(count) * generator.normal(size=(count, 2))).astype(np.float32).T.copy()  # (2, titles)
    speed = np.zeros_like(place)
    for round_ in range(rounds):
        fade = 1 - round_ / rounds
        across = [axis[columns] - axis[rows] for axis in place]
        weight = pull / (1 + across[0] * across[0] + across[1] * across[1])
        force = np.stack([2 * np.add.reduceat(weight * axis, begins) for axis in across])
        drawn = generator.integers(count, size=(DRAWN, count), dtype=np.int32)
        away = [axis - axis[drawn] for axis in place]
        square = away[0] * away[0] + away[1] * away[1]
        push = (2 * REPULSION / DRAWN) / ((0.05 + square) * (1 + square))
        force += np.stack([(push * axis).sum(axis=0) for axis in away])
        force -= GRAVITY * place
        speed = MOMENTUM * speed + (step * fade) * force
        length = np.sqrt(speed[0] * speed[0] + speed[1] * speed[1])
        speed *= np.minimum(1, LONGEST_STEP / np.maximum(length, 1e-12))
        place += speed
    places[linked] = place.T
    return places


def _carry_over(start: np.ndarray, places: np.ndarray, linked: np.ndarray, loose: np.ndarray) -> np.ndarray:
    """Places of titles without links: the affine map that best takes the others' start to their end, kept inside their cloud."""
    bordered = np.column_stack([start, np.ones(len(start))])
    mapping = np.linalg.lstsq(bordered[linked], places[linked], rcond=None)[0]
    low, high = np.quantile(places[linked], [0.02, 0.98], axis=0)
    return np.clip(bordered[loose] @ mapping, low, high)


def _fit_page(places: np.ndarray) -> np.ndarray:
    """Centred and scaled to -1 … 1, float32; stray places beyond the 99.5 % radius are drawn in by the logarithm."""
    if not len(places):
        return np.zeros((0, 2), dtype=np.float32)
    places = places - np.median(places, axis=0)
    radius = np.hypot(places[:, 0], places[:, 1])
    reach = max(float(np.quantile(radius, 0.995)), 1e-12)
    far = radius > reach
    places[far] *= (reach * (1 + np.log(radius[far] / reach) / 4) / radius[far])[:, None]
    low, high = places.min(axis=0), places.max(axis=0)
    places = (places - (low + high) / 2) / max(float((high - low).max()) / 2, 1e-12)
    return np.clip(places, -1, 1).astype(np.float32)
