"""Map layout beside UMAP, t-SNE and PaCMAP: neighbourhoods preserved, movement overnight, and time.

Trustworthiness (Venna and Kaski 2001; the measure of scikit-learn) is 1 if all nearest titles in the plane
are also near in the vector space; k = 10, over 4,000 titles. Recall is the share of the ten nearest titles in
the plane that are among the 25 nearest by vectors. Overnight: a tenth of the titles is new, and the layout
starts from the positions of the others; the figure is the median movement of the others, in hundredths of the
width of the map. Vectors are from the nightly training on one guide (quick), or on four guides, of which
6,000 titles are drawn, because three layouts of all 22,000 by t-SNE would take a quarter of an hour.

Each method runs in a separate process with one thread. A rival whose package is missing is reported and
omitted.
"""

import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.claims import Claim, guides, run
from benchmarks.processes import call_apart
from benchmarks.rivals.contest import Contest
from benchmarks.rivals.ours import Ours
from benchmarks.stages import make_corpus
from tasks.neighbours.similarity import top_neighbours
from tasks.publish.map.layout import compute_positions, principal_plane
from tasks.train.settings import TrainSettings

K, JUDGED, MOST, FROM_SPACE, FROM_PLANE = 25, 4000, 6_000, 25, 10
# function of vectors and previous positions (NaN: new); returns positions
Layout = Callable[[np.ndarray, np.ndarray | None], np.ndarray]


def measure_layout(quick: bool) -> Sequence[Claim]:
    """Measures all claims of this file."""
    with tempfile.TemporaryDirectory() as folder:
        contest = Contest(
            make_corpus(
                Path(folder) / "home",
                guides("ZA1") if quick else guides("UK1", "US1", "AU1", "ZA1"),
                context=False,
            )
        )
        settings = TrainSettings()
        vectors = Ours(settings, epochs=(settings.epochs,)).train(contest, settings.epochs, 1, 1).vectors()
    vectors = np.ascontiguousarray(vectors[np.linalg.norm(vectors, axis=1) > 0])
    vectors = vectors[np.sort(np.random.default_rng(0).permutation(len(vectors))[:MOST])]
    ours = call_apart(_measure, _ours, vectors, threads=1)
    claims = [Claim(f"{name}, {len(vectors):,} titles", value, better=None) for name, value in ours.items()]
    for rival, layout in (("UMAP", _umap), ("t-SNE", _tsne), ("PaCMAP", _pacmap)):
        try:
            theirs = call_apart(_measure, layout, vectors, rival=True, threads=1)
        except ImportError as missing:
            print(f"{rival} is left out: {missing}", file=sys.stderr)
            continue
        claims += _against(rival, ours, theirs)
    return claims


def _against(rival: str, ours: dict[str, float], theirs: dict[str, float]) -> Iterator[Claim]:
    for name, value in ours.items():
        more = name in ("trustworthiness", "recall")
        yield Claim(
            name, value, rival, theirs[name], aim=0.98 if more else 1, better="more" if more else "less"
        )


def _measure(layout: Layout, vectors: np.ndarray) -> dict[str, float]:
    """Returns the figures of one layout method."""
    from sklearn.manifold import trustworthiness

    rng = np.random.default_rng(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layout(vectors[:500], None)  # compiles the loops
        started = time.process_time()
        places = layout(vectors, None)
        seconds = time.process_time() - started
        is_new = rng.random(len(vectors)) < 0.1
        yesterday = np.full((len(vectors), 2), np.nan)
        yesterday[~is_new] = layout(vectors[~is_new], None)
        new_positions = layout(vectors, yesterday)
    sample = rng.permutation(len(vectors))[:JUDGED]
    distances = np.hypot(*(new_positions[~is_new] - yesterday[~is_new]).T)
    return {
        "trustworthiness": float(
            trustworthiness(vectors[sample], places[sample], n_neighbors=10, metric="cosine")
        ),
        "recall": _recall(vectors, places, sample),
        "moved overnight, hundredths of the width": 100
        * float(np.median(distances))
        / float(np.ptp(yesterday[~is_new], axis=0).max()),
        "CPU seconds": seconds,
    }


def _recall(vectors: np.ndarray, places: np.ndarray, sample: np.ndarray) -> float:
    from sklearn.neighbors import NearestNeighbors

    neighbour_ids = top_neighbours(vectors[sample], vectors, FROM_SPACE + 1)[0]
    plane = (
        NearestNeighbors(n_neighbors=FROM_PLANE + 1)
        .fit(places)
        .kneighbors(places[sample], return_distance=False)
    )
    rows = sample.tolist(), plane.tolist(), neighbour_ids.tolist()
    shared_counts = [
        len((set(plane_ids) & set(vector_ids)) - {title})
        for title, plane_ids, vector_ids in zip(*rows, strict=True)
    ]
    return float(np.mean(shared_counts)) / FROM_PLANE


def _ours(vectors: np.ndarray, before: np.ndarray | None) -> np.ndarray:
    ids, cosines = top_neighbours(vectors, vectors, K, exclude_self=True)
    plane = principal_plane(vectors, np.arange(len(vectors)))
    return compute_positions(plane, ids, cosines, seed=0, previous=before)


def _filled(before: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Places each new title at the position of its nearest old title, as a start for the libraries."""
    is_new = np.isnan(before[:, 0])
    places = before.copy()
    places[is_new] = before[~is_new][top_neighbours(vectors[is_new], vectors[~is_new], 1)[0][:, 0]] + 1e-3
    return places.astype(np.float32)


def _umap(vectors: np.ndarray, before: np.ndarray | None) -> np.ndarray:
    import umap  # pyright: ignore[reportMissingImports]

    init = "spectral" if before is None else _filled(before, vectors)
    return umap.UMAP(metric="cosine", random_state=1, n_jobs=1, init=init).fit_transform(vectors)  # pyright: ignore


def _tsne(vectors: np.ndarray, before: np.ndarray | None) -> np.ndarray:
    from sklearn.manifold import TSNE

    init = "pca" if before is None else _filled(before, vectors)
    return TSNE(metric="cosine", random_state=1, init=init, n_jobs=1).fit_transform(vectors)  # pyright: ignore[reportArgumentType]  (its stub knows no array)


def _pacmap(vectors: np.ndarray, before: np.ndarray | None) -> np.ndarray:
    import pacmap  # pyright: ignore[reportMissingImports]

    init = "pca" if before is None else _filled(before, vectors)
    return pacmap.PaCMAP(distance="angular", random_state=1).fit_transform(vectors, init=init)  # pyright: ignore


if __name__ == "__main__":
    sys.exit(run(measure_layout, __doc__ or ""))
