"""Places in the plane for the map: neighbours in space stay neighbours, groups stand apart.

Linked titles attract each other, and each title is pushed by a few others drawn anew in every round, as in
UMAP. With the similarity of two places q = 1 / (1 + d²), the step of title i is the gradient of

    sum over links j:  p_ij log q_ij    +    REPULSION * mean over drawn j:  log(1 - q_ij)

p_ij falls with the distance beyond i's nearest neighbour, made symmetric and of sum 1 a title. All titles
move at once, with momentum; rows of links are contiguous, so a round needs no scatter. It starts from
principal components averaged over links a few times, or from the places on the previous map: there a new
title starts in the middle of its neighbours, and the result is shifted and stretched back onto the old
places.

References: L. McInnes, J. Healy, J. Melville, UMAP: uniform manifold approximation and projection for
dimension reduction, 2018, arXiv:1802.03426, section 3. We differ: full rounds instead of single links, q
without the two fitted exponents, and a weak pull to the middle that keeps unconnected parts on the page. On
21,800 English titles 23 % of the ten nearest in the plane are among the 25 nearest in space (21 % with 10
drawn and a start a third as wide), in 5 CPU-s.
"""

from typing import NamedTuple

import numpy as np

from storage.arrays import row_blocks
from storage.shapes import Float, Int
from tasks.compiled import compiled

NEAREST = 12  # links a title starts; more blur the groups and cost time
DRAWN = 20  # titles that push each title in a round
REPULSION = 6.0
STEP = 0.35  # of the first round, falling to 0; from .5 on linked pairs overshoot each other
SMALL_STEP = 0.1  # of the first round when it starts from a previous map
MOMENTUM = 0.8
GRAVITY = 2e-3
SPREAD = 0.2  # half-width of the start over the root of the titles; q is 1/2 at distance 1
LONGEST_STEP = 2.0
SCALES = np.geomspace(2, 200, 24)  # half-widths of the page that are tried, in units of the forces
PUSHERS = 10  # titles drawn for each to try them


class Links(NamedTuple):
    """The symmetric graph by rows: offsets (titles + 1,); targets, pull (links,), of sum 1 a title."""

    offsets: np.ndarray
    targets: np.ndarray
    pull: np.ndarray

    @property
    def heads(self) -> np.ndarray:
        """The title of each link: int32 (links,)."""
        return np.repeat(np.arange(len(self.offsets) - 1, dtype=np.int32), np.diff(self.offsets))


def lay_out(
    plane: Float[np.ndarray, "titles 2"],
    ids: Int[np.ndarray, "titles k"],
    cosines: Float[np.ndarray, "titles k"],
    *,
    seed: int,
    rounds: int | None = None,
    before: Float[np.ndarray, "titles 2"] | None = None,
) -> Float[np.ndarray, "titles 2"]:
    """A place in the plane for each title, float32, within -1 and 1; one seed gives one layout.

    ``plane`` holds their principal components, where a first layout starts; a title without neighbours (-1)
    stands where they put it, inside the others' cloud.
    ``before`` has the places on the previous map, NaN for new titles; it is used when it has at least half of
    the titles. ``rounds`` are 500, fewer above 20,000 titles; with ``before`` a quarter of it.
    """
    titles = len(plane)
    links = _links(ids[:, :NEAREST], cosines[:, :NEAREST])
    linked = np.diff(links.offsets) > 0
    if linked.sum() <= 2:
        return _fit_page(plane)
    generator, most = np.random.default_rng(seed), int(np.clip(1e7 / titles, 200, 500))
    if before is not None and 2 * int((~np.isnan(before[:, 0])).sum()) >= titles:
        start = place_new_titles(before, links)
        start *= scale_of(start, links, generator)
        return bring_back(_move(start, links, rounds or most // 4, generator, SMALL_STEP), before)
    moved = _move(_smooth(plane, links), links, rounds or most, generator, STEP)
    if not linked.all():  # the affine map that best takes the others' start to their end, inside their cloud
        bordered = np.column_stack([plane, np.ones(titles)])
        mapping = np.linalg.lstsq(bordered[linked], moved[linked], rcond=None)[0]
        moved[~linked] = np.clip(
            bordered[~linked] @ mapping, *np.quantile(moved[linked], [0.02, 0.98], axis=0)
        )
    return _fit_page(moved)


def principal_plane(
    vectors: Float[np.ndarray, "titles dim"], rows: Int[np.ndarray, " rows"]
) -> Float[np.ndarray, "rows 2"]:
    """The two principal components of some titles, float64, greatest absolute value 1; signs by the heaviest
    coordinate.
    """
    blocks = [rows[own] for own in row_blocks(len(rows))]
    mean = sum(vectors[own].sum(axis=0) for own in blocks) / np.float32(max(len(rows), 1))
    squares = sum((vectors[own] - mean).T.astype(np.float64) @ (vectors[own] - mean) for own in blocks)
    _, axes = np.linalg.eigh(squares)
    axes = axes[:, ::-1][:, :2]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1, 1)
    plane = np.concatenate([(vectors[own] - mean).astype(np.float64) @ axes for own in blocks])
    plane = np.pad(plane, ((0, 0), (0, 2 - plane.shape[1])))
    return plane / max(np.abs(plane).max(initial=0), 1e-12)


def _links(ids: np.ndarray, cosines: np.ndarray) -> Links:
    strength = np.zeros(ids.shape)
    for own in row_blocks(len(ids)):
        linked = (ids[own] >= 0) & (ids[own] != np.arange(own.start, own.stop)[:, None])
        distances = np.sqrt(np.maximum(2 - 2 * cosines[own].astype(np.float64), 0))
        nearest = distances.min(axis=1, where=linked, initial=2, keepdims=True)
        beyond = np.where(linked, distances - nearest, 0)
        scale = beyond.sum(axis=1, keepdims=True) / np.maximum(linked.sum(axis=1, keepdims=True), 1)
        strength[own] = np.where(linked, np.exp(-beyond / np.maximum(scale, 1e-6)), 0)
    return Links(*compiled(_make_symmetric)(np.ascontiguousarray(ids, dtype=np.int32), strength))


def _make_symmetric(ids: np.ndarray, strength: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Offsets, targets and pull of Links; a strength of 0 is no link, either direction suffices."""
    titles, nearest = ids.shape
    both, one_way = strength.copy(), np.zeros(strength.shape, dtype=np.bool_)
    offsets = np.zeros(titles + 1, dtype=np.int64)
    for title in range(titles):
        for rank in range(nearest):
            if strength[title, rank] > 0:
                target, back = ids[title, rank], 0.0
                for place in range(nearest):
                    if ids[target, place] == title:
                        back = strength[target, place]
                both[title, rank] += back - back * strength[title, rank]
                one_way[title, rank] = back == 0
                offsets[title + 1] += 1
                offsets[target + 1] += one_way[title, rank]
    offsets = np.cumsum(offsets)
    ends, sums = offsets[:-1].copy(), np.zeros(titles)
    targets, pull = np.empty(offsets[-1], dtype=np.int32), np.empty(offsets[-1], dtype=np.float32)
    for title in range(titles):
        for rank in range(nearest):
            if strength[title, rank] > 0:
                target, value = ids[title, rank], both[title, rank]
                targets[ends[title]], pull[ends[title]] = target, value
                ends[title] += 1
                sums[title] += value
                if one_way[title, rank]:
                    targets[ends[target]], pull[ends[target]] = title, value
                    ends[target] += 1
                    sums[target] += value
    for title in range(titles):
        for link in range(offsets[title], offsets[title + 1]):
            pull[link] /= sums[title]
    return offsets, targets, pull


def _smooth(start: np.ndarray, links: Links) -> np.ndarray:
    """The start averaged over links and stretched out again, twelve times; a copy."""
    places, linked = start.copy(), np.flatnonzero(np.diff(links.offsets))
    for _ in range(12):
        mixed = 0.5 * places[linked] + 0.5 * compiled(_average)(*links, places)[linked]
        mixed -= mixed.mean(axis=0)
        covariance = mixed.T @ mixed / len(mixed) + 1e-12 * np.eye(2)
        values, axes = np.linalg.eigh(covariance)
        places[linked] = mixed @ (axes / np.sqrt(values)) @ axes.T  # variance 1 both ways, without turning
    reach = np.quantile(np.abs(places[linked]), 0.99)
    places[linked] = np.clip(places[linked] / max(reach, 1e-12), -1.5, 1.5) * SPREAD * np.sqrt(len(linked))
    return places


def _average(offsets: np.ndarray, targets: np.ndarray, pull: np.ndarray, places: np.ndarray) -> np.ndarray:
    averaged = np.zeros_like(places)
    for title in range(len(places)):
        for link in range(offsets[title], offsets[title + 1]):
            averaged[title, 0] += pull[link] * places[targets[link], 0]
            averaged[title, 1] += pull[link] * places[targets[link], 1]
    return averaged


def _move(
    places: np.ndarray, links: Links, rounds: int, generator: np.random.Generator, step: float
) -> np.ndarray:
    linked = np.flatnonzero(np.diff(links.offsets))
    count = len(linked)
    number = np.cumsum(np.diff(links.offsets) > 0) - 1
    own = (
        np.append(links.offsets[linked], len(links.targets)),
        number[links.targets],
        links.pull,
    )
    noise = 1e-3 * SPREAD * np.sqrt(count) * generator.normal(size=(count, 2))
    place = (places[linked] + noise).astype(np.float32)
    state = generator.integers(1 << 63, dtype=np.uint64)
    places[linked] = compiled(_round_by_round, fastmath=True)(*own, place, rounds, np.float32(step), state)
    return places


def _round_by_round(  # numba: one function, arrays and numbers
    offsets: np.ndarray,
    targets: np.ndarray,
    pull: np.ndarray,
    place: np.ndarray,
    rounds: int,
    first_step: np.float32,
    state: np.uint64,
) -> np.ndarray:
    """All rounds in one call, which needs the interpreter once; who pushes is drawn by Knuth's MMIX
    generator, whose upper half is multiplied into the range.
    """
    count, half = np.uint64(len(place)), np.uint64(32)
    times, more = np.uint64(6364136223846793005), np.uint64(1442695040888963407)
    one, each = np.float32(1), np.float32(2 * REPULSION / DRAWN)
    speed, moved = np.zeros_like(place), np.empty_like(place)
    for round_ in range(rounds):
        step = first_step * np.float32(1 - round_ / rounds)
        for title in range(len(place)):
            x, y = place[title]
            force_x, force_y = -np.float32(GRAVITY) * x, -np.float32(GRAVITY) * y
            for link in range(offsets[title], offsets[title + 1]):
                across, up = place[targets[link], 0] - x, place[targets[link], 1] - y
                weight = 2 * pull[link] / (one + across * across + up * up)
                force_x += weight * across
                force_y += weight * up
            for _ in range(DRAWN):
                state = state * times + more
                other = (state >> half) * count >> half
                across, up = x - place[other, 0], y - place[other, 1]
                square = across * across + up * up
                push = each / ((np.float32(0.05) + square) * (one + square))
                force_x += push * across
                force_y += push * up
            dx = np.float32(MOMENTUM) * speed[title, 0] + step * force_x
            dy = np.float32(MOMENTUM) * speed[title, 1] + step * force_y
            far = max(np.sqrt(dx * dx + dy * dy), np.float32(1e-12))
            shorter = min(one, np.float32(LONGEST_STEP) / far)
            speed[title, 0], speed[title, 1] = shorter * dx, shorter * dy
            moved[title, 0], moved[title, 1] = x + shorter * dx, y + shorter * dy
        place, moved = moved, place
    return place


def place_new_titles(before: np.ndarray, links: Links, rounds: int = 5) -> Float[np.ndarray, "titles 2"]:
    """Places given, and for new titles (NaN) the mean of their linked ones once those are placed, or 0."""
    places = before.astype(np.float64)
    for _ in range(rounds):
        missing = np.isnan(places[:, 0])
        use = np.flatnonzero(missing[heads := links.heads] & ~missing[links.targets])
        heads, pull, near = heads[use], links.pull[use], places[links.targets[use]]
        weight = np.bincount(heads, pull, minlength=len(places))
        total = np.stack([np.bincount(heads, pull * axis, minlength=len(places)) for axis in near.T], axis=1)
        found = missing & (weight > 0)
        places[found] = total[found] / np.maximum(weight[found], 1e-12)[:, None]
    return np.nan_to_num(places)


def scale_of(places: Float[np.ndarray, "titles 2"], links: Links, generator: np.random.Generator) -> float:
    """The half-width of the page, in units of the forces (not recorded), of the greatest objective."""
    near = ((places[links.heads] - places[links.targets]) ** 2).sum(axis=1)
    drawn = generator.integers(len(places), size=(PUSHERS, len(places)))
    far = ((places[None] - places[drawn]) ** 2).sum(axis=2) + 1e-9
    merits = [
        -(links.pull * np.log1p(scale**2 * near)).sum()
        + REPULSION * np.log(scale**2 * far / (1 + scale**2 * far)).mean(axis=0).sum()
        for scale in SCALES
    ]
    return float(SCALES[int(np.argmax(merits))])


def bring_back(places: np.ndarray, before: np.ndarray) -> Float[np.ndarray, "titles 2"]:
    """Places shifted and stretched so that old titles are where they were, in the median; within -1 and 1."""
    old = ~np.isnan(before[:, 0])
    centre, goal = np.median(places[old], axis=0), np.median(before[old], axis=0)
    spread, aimed = np.abs(places[old] - centre).mean(), np.abs(before[old] - goal).mean()
    moved = (places - centre) * (aimed / max(spread, 1e-12)) + goal
    return (moved / max(1.0, float(np.abs(moved).max(initial=0)))).astype(np.float32)


def _fit_page(places: np.ndarray) -> np.ndarray:
    """Centred, scaled to -1 … 1, float32; beyond the 99.5 % radius places are drawn in by the logarithm."""
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
