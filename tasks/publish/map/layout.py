"""Computes a two-dimensional layout of titles that preserves neighbours, similar to UMAP.

Linked titles attract each other, and a title is repelled by a few titles that are sampled in every round. The
similarity of two positions at distance d is q = 1 / (1 + d²). A step moves title i along the gradient of

    sum over links j:  p_ij log q_ij    +    REPULSION * mean over sampled j:  log(1 - q_ij)

The weight p_ij of a link decreases with the distance of the vectors minus the distance of i to its nearest
neighbour. Weights are symmetrized, and the weights of a title sum to 1. All titles move at once.

The layout starts from principal components, averaged over links, or from the positions on the previous map.
In the second case, new titles start at the mean of their neighbours, and the result is shifted and scaled to
match the previous positions.

References: L. McInnes, J. Healy, J. Melville, UMAP: uniform manifold approximation and projection for
dimension reduction, 2018, arXiv:1802.03426, section 3. We differ: full rounds instead of single links, q
without the two fitted exponents, and a weak force towards the centre that keeps unconnected parts on the
page. On 21,800 English titles, the layout takes 5 CPU seconds; 23 % of the ten nearest titles in the plane
are among the 25 nearest titles by vectors (21 % with NEGATIVES = 10 and a third of SPREAD).
"""

from typing import NamedTuple

import numpy as np

from storage.arrays import row_blocks
from storage.shapes import Float, Int
from tasks.compiled import compiled

MAX_LINKS = 12  # nearest titles with which a title is linked; more would blur the groups and take longer
NEGATIVES = 20  # number of titles that repel a title in a round
REPULSION = 6.0  # weight of the repulsion in the objective
STEP = 0.35  # step size of the first round, decreasing to 0; at .5 or more, linked pairs overshoot
SMALL_STEP = 0.1  # step size of the first round if the layout starts from the positions on a previous map
MOMENTUM = 0.8  # share of the previous movement of a title that is added to its next movement
GRAVITY = 2e-3  # strength of the force towards the centre
SPREAD = 0.2  # half-width of the start positions divided by the square root of the number of titles
MAX_STEP = 2.0  # maximum movement of a title in a round
SCALES = np.geomspace(2, 200, 24)  # candidate factors for previous positions, which are within -1 and 1
SCALE_NEGATIVES = 10  # number of titles that are sampled per title to compare SCALES


class Links(NamedTuple):
    """Symmetric graph of titles in CSR format. The weights of the links of a title sum to 1."""

    offsets: np.ndarray  # (titles + 1,)
    targets: np.ndarray  # title at which each link ends, (links,)
    weights: np.ndarray  # (links,)

    @property
    def sources(self) -> np.ndarray:
        """Title at which each link starts, int32 (links,)."""
        return np.repeat(np.arange(len(self.offsets) - 1, dtype=np.int32), np.diff(self.offsets))


def compute_positions(
    plane: Float[np.ndarray, "titles 2"],
    ids: Int[np.ndarray, "titles k"],
    cosines: Float[np.ndarray, "titles k"],
    *,
    seed: int,
    previous: Float[np.ndarray, "titles 2"] | None = None,
) -> Float[np.ndarray, "titles 2"]:
    """Computes the position of each title on the map, float32, within -1 and 1.

    The number of rounds is 500, fewer above 20,000 titles, and a quarter of that with previous positions.

    Args:
        plane: Two principal components of the vectors of titles, from which the layout starts if there are no
            previous positions. A title without neighbours keeps its position relative to the other titles.
        ids: Nearest titles of each title, padded with -1.
        cosines: Cosine similarities of ``ids``.
        seed: Seed of the sampling.
        previous: Positions on the previous map, NaN for new titles; ignored if more than half are new.
    """
    title_count = len(plane)
    links = _build_links(ids[:, :MAX_LINKS], cosines[:, :MAX_LINKS])
    is_linked = np.diff(links.offsets) > 0
    if is_linked.sum() <= 2:
        return _fit_page(plane)
    generator, rounds = np.random.default_rng(seed), int(np.clip(1e7 / title_count, 200, 500))
    if previous is not None and 2 * int((~np.isnan(previous[:, 0])).sum()) >= title_count:
        start = _place_new_titles(previous, links)
        start *= _best_scale(start, links, generator)
        return _align(_move(start, links, rounds // 4, generator, SMALL_STEP), previous)
    positions = _move(_smooth(plane, links), links, rounds, generator, STEP)
    if not is_linked.all():  # titles without links follow the affine map that fits the move of linked titles
        affine = np.column_stack([plane, np.ones(title_count)])
        mapping = np.linalg.lstsq(affine[is_linked], positions[is_linked], rcond=None)[0]
        bounds = np.quantile(positions[is_linked], [0.02, 0.98], axis=0)
        positions[~is_linked] = np.clip(affine[~is_linked] @ mapping, *bounds)
    return _fit_page(positions)


def principal_plane(
    vectors: Float[np.ndarray, "titles dim"], rows: Int[np.ndarray, " rows"]
) -> Float[np.ndarray, "rows 2"]:
    """Computes two principal components of ``vectors[rows]``, float64, scaled to a maximum of 1.

    The sign of a principal axis is such that its entry with the largest absolute value is positive.
    """
    blocks = [rows[block] for block in row_blocks(len(rows))]
    mean = sum(vectors[block].sum(axis=0) for block in blocks) / np.float32(max(len(rows), 1))
    scatter = sum((vectors[block] - mean).T.astype(np.float64) @ (vectors[block] - mean) for block in blocks)
    _, axes = np.linalg.eigh(scatter)
    axes = axes[:, ::-1][:, :2]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1, 1)
    plane = np.concatenate([(vectors[block] - mean).astype(np.float64) @ axes for block in blocks])
    plane = np.pad(plane, ((0, 0), (0, 2 - plane.shape[1])))
    return plane / max(np.abs(plane).max(initial=0), 1e-12)


def _build_links(ids: np.ndarray, cosines: np.ndarray) -> Links:
    """Returns the graph of the nearest titles ``ids``, (titles, k), with the weights p_ij."""
    strength = np.zeros(ids.shape)
    for block in row_blocks(len(ids)):
        is_link = (ids[block] >= 0) & (ids[block] != np.arange(block.start, block.stop)[:, None])
        distances = np.sqrt(np.maximum(2 - 2 * cosines[block].astype(np.float64), 0))
        smallest_distances = distances.min(axis=1, where=is_link, initial=2, keepdims=True)
        excess_distances = np.where(is_link, distances - smallest_distances, 0)
        link_counts = np.maximum(is_link.sum(axis=1, keepdims=True), 1)
        scale = excess_distances.sum(axis=1, keepdims=True) / link_counts
        strength[block] = np.where(is_link, np.exp(-excess_distances / np.maximum(scale, 1e-6)), 0)
    return Links(*compiled(_make_symmetric)(np.ascontiguousarray(ids, dtype=np.int32), strength))


def _make_symmetric(ids: np.ndarray, strength: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the fields of Links: each title is linked with its neighbours, in both directions."""
    title_count, neighbours = ids.shape
    symmetric_strength, one_way = strength.copy(), np.zeros(strength.shape, dtype=np.bool_)
    offsets = np.zeros(title_count + 1, dtype=np.int64)
    for title in range(title_count):
        for rank in range(neighbours):
            if strength[title, rank] > 0:
                target, reverse_strength = ids[title, rank], 0.0
                for target_rank in range(neighbours):
                    if ids[target, target_rank] == title:
                        reverse_strength = strength[target, target_rank]
                symmetric_strength[title, rank] += reverse_strength - reverse_strength * strength[title, rank]
                one_way[title, rank] = reverse_strength == 0
                offsets[title + 1] += 1
                offsets[target + 1] += one_way[title, rank]
    offsets = np.cumsum(offsets)
    ends, sums = offsets[:-1].copy(), np.zeros(title_count)
    targets, weights = np.empty(offsets[-1], dtype=np.int32), np.empty(offsets[-1], dtype=np.float32)
    for title in range(title_count):
        for rank in range(neighbours):
            if strength[title, rank] > 0:
                target, value = ids[title, rank], symmetric_strength[title, rank]
                targets[ends[title]], weights[ends[title]] = target, value
                ends[title] += 1
                sums[title] += value
                if one_way[title, rank]:
                    targets[ends[target]], weights[ends[target]] = title, value
                    ends[target] += 1
                    sums[target] += value
    for title in range(title_count):
        for link in range(offsets[title], offsets[title + 1]):
            weights[link] /= sums[title]
    return offsets, targets, weights


def _smooth(start: np.ndarray, links: Links) -> np.ndarray:
    """Averages start positions over links and scales them to unit covariance, in twelve passes."""
    positions, linked = start.copy(), np.flatnonzero(np.diff(links.offsets))
    for _ in range(12):
        means = 0.5 * positions[linked] + 0.5 * compiled(_average_positions)(*links, positions)[linked]
        means -= means.mean(axis=0)
        covariance = means.T @ means / len(means) + 1e-12 * np.eye(2)
        values, axes = np.linalg.eigh(covariance)
        positions[linked] = means @ (axes / np.sqrt(values)) @ axes.T  # unit covariance without a rotation
    extent = np.quantile(np.abs(positions[linked]), 0.99)
    clipped = np.clip(positions[linked] / max(extent, 1e-12), -1.5, 1.5)
    positions[linked] = clipped * SPREAD * np.sqrt(len(linked))
    return positions


def _average_positions(
    offsets: np.ndarray, targets: np.ndarray, weights: np.ndarray, start: np.ndarray
) -> np.ndarray:
    """Returns for each title the weighted mean of the positions of linked titles."""
    averages = np.zeros_like(start)
    for title in range(len(start)):
        for link in range(offsets[title], offsets[title + 1]):
            averages[title, 0] += weights[link] * start[targets[link], 0]
            averages[title, 1] += weights[link] * start[targets[link], 1]
    return averages


def _move(
    positions: np.ndarray, links: Links, rounds: int, generator: np.random.Generator, step: float
) -> np.ndarray:
    """Adds noise to the positions of linked titles, moves these titles, and returns all positions."""
    linked = np.flatnonzero(np.diff(links.offsets))
    count = len(linked)
    new_ids = np.cumsum(np.diff(links.offsets) > 0) - 1
    linked_csr = np.append(links.offsets[linked], len(links.targets)), new_ids[links.targets], links.weights
    noise = 1e-3 * SPREAD * np.sqrt(count) * generator.normal(size=(count, 2))
    start = (positions[linked] + noise).astype(np.float32)
    state = generator.integers(1 << 63, dtype=np.uint64)
    run = compiled(_run_rounds, fastmath=True)
    positions[linked] = run(*linked_csr, start, rounds, np.float32(step), state)
    return positions


def _run_rounds(  # compiled by numba: a single function of arrays and numbers
    offsets: np.ndarray,
    targets: np.ndarray,
    weights: np.ndarray,
    positions: np.ndarray,
    rounds: int,
    first_step: np.float32,
    state: np.uint64,
) -> np.ndarray:
    """Moves all titles in ``rounds`` rounds and returns their positions.

    The titles that repel a title are sampled by Knuth's MMIX generator.
    """
    count, half_bits = np.uint64(len(positions)), np.uint64(32)
    multiplier, increment = np.uint64(6364136223846793005), np.uint64(1442695040888963407)
    one, repulsion = np.float32(1), np.float32(2 * REPULSION / NEGATIVES)
    velocity, next_positions = np.zeros_like(positions), np.empty_like(positions)
    for round_ in range(rounds):
        step = first_step * np.float32(1 - round_ / rounds)
        for title in range(len(positions)):
            x, y = positions[title]
            force_x, force_y = -np.float32(GRAVITY) * x, -np.float32(GRAVITY) * y
            for link in range(offsets[title], offsets[title + 1]):
                distance_x, distance_y = positions[targets[link], 0] - x, positions[targets[link], 1] - y
                weight = 2 * weights[link] / (one + distance_x * distance_x + distance_y * distance_y)
                force_x += weight * distance_x
                force_y += weight * distance_y
            for _ in range(NEGATIVES):
                state = state * multiplier + increment
                negative_title = (state >> half_bits) * count >> half_bits
                distance_x, distance_y = x - positions[negative_title, 0], y - positions[negative_title, 1]
                squared_distance = distance_x * distance_x + distance_y * distance_y
                push = repulsion / ((np.float32(0.05) + squared_distance) * (one + squared_distance))
                force_x += push * distance_x
                force_y += push * distance_y
            dx = np.float32(MOMENTUM) * velocity[title, 0] + step * force_x
            dy = np.float32(MOMENTUM) * velocity[title, 1] + step * force_y
            length = max(np.sqrt(dx * dx + dy * dy), np.float32(1e-12))
            factor = min(one, np.float32(MAX_STEP) / length)
            velocity[title, 0], velocity[title, 1] = factor * dx, factor * dy
            next_positions[title, 0], next_positions[title, 1] = x + factor * dx, y + factor * dy
        positions, next_positions = next_positions, positions
    return positions


def _place_new_titles(previous: np.ndarray, links: Links) -> np.ndarray:
    """Places new titles (NaN) at the weighted mean position of linked titles, in five passes, or at 0."""
    positions, sources = previous.astype(np.float64), links.sources
    for _ in range(5):
        is_missing = np.isnan(positions[:, 0])
        link_indices = np.flatnonzero(is_missing[sources] & ~is_missing[links.targets])
        titles, weights = sources[link_indices], links.weights[link_indices]
        neighbours = positions[links.targets[link_indices]]
        weight_sums = np.bincount(titles, weights, minlength=len(positions))
        sums = [np.bincount(titles, weights * axis, minlength=len(positions)) for axis in neighbours.T]
        is_placed = is_missing & (weight_sums > 0)
        positions[is_placed] = (np.stack(sums) / np.maximum(weight_sums, 1e-12)).T[is_placed]
    return np.nan_to_num(positions)


def _best_scale(positions: np.ndarray, links: Links, generator: np.random.Generator) -> float:
    """Returns the factor in SCALES that maximizes the objective; a Layout does not store its scale."""
    link_squares = ((positions[links.sources] - positions[links.targets]) ** 2).sum(axis=1)
    negative_rows = generator.integers(len(positions), size=(SCALE_NEGATIVES, len(positions)))
    squares = ((positions[None] - positions[negative_rows]) ** 2).sum(axis=2) + 1e-9
    objectives = [
        -(links.weights * np.log1p(scale**2 * link_squares)).sum()
        + REPULSION * np.log(scale**2 * squares / (1 + scale**2 * squares)).mean(axis=0).sum()
        for scale in SCALES
    ]
    return float(SCALES[int(np.argmax(objectives))])


def _align(positions: np.ndarray, previous: np.ndarray) -> np.ndarray:
    """Shifts and scales positions to the median and spread of the previous map, float32, within -1 and 1."""
    has_previous = ~np.isnan(previous[:, 0])
    old_positions, targets = positions[has_previous], previous[has_previous]
    centre, target_centre = np.median(old_positions, axis=0), np.median(targets, axis=0)
    spread, target_spread = np.abs(old_positions - centre).mean(), np.abs(targets - target_centre).mean()
    aligned = (positions - centre) * (target_spread / max(spread, 1e-12)) + target_centre
    return (aligned / max(1.0, float(np.abs(aligned).max(initial=0)))).astype(np.float32)


def _fit_page(positions: np.ndarray) -> np.ndarray:
    """Centres and scales positions to [-1, 1], float32, and moves the outermost 0.5 % inwards."""
    if not len(positions):
        return np.zeros((0, 2), dtype=np.float32)
    positions = positions - np.median(positions, axis=0)
    radius = np.hypot(*positions.T)
    reach = max(float(np.quantile(radius, 0.995)), 1e-12)
    is_far, far = radius > reach, radius[radius > reach]
    positions[is_far] *= (reach * (1 + np.log(far / reach) / 4) / far)[:, None]
    low, high = positions.min(axis=0), positions.max(axis=0)
    positions = (positions - (low + high) / 2) / max(float((high - low).max()) / 2, 1e-12)
    return np.clip(positions, -1, 1).astype(np.float32)
