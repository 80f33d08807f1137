"""Exact nearest neighbours beside faiss and scikit-learn; approximate ones beside hnswlib and usearch.

The data are Gaussian groups of unit vectors with 100 dimensions; k = 25, one thread, and CPU seconds, because
other work on the machine changes wall time. Each measurement has a separate process, rivals without our
environment. scikit-learn is measured with cosine and with Euclidean distance, which has the same order for
unit vectors and a faster implementation. --full adds 100,000 titles by cosine, which takes minutes. Rivals
that are not installed are reported and omitted.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.claims import Claim, is_installed, run
from benchmarks.processes import Measured, measure_apart

DIM, K, GROUPS, SPREAD, SAMPLE = 100, 25, 200, 0.7, 1_000
MADE_AT_ONCE = 8_192


def world(titles: int) -> np.ndarray:
    """Draws unit vectors around 200 centres: float32 (titles, 100).

    The vectors are made in parts, so that the peak memory is that of the search.
    """
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(GROUPS, DIM))
    vectors = np.empty((titles, DIM), dtype=np.float32)
    for start in range(0, titles, MADE_AT_ONCE):
        part = vectors[start : start + MADE_AT_ONCE]
        rows = centres[rng.integers(GROUPS, size=len(part))] + SPREAD * rng.normal(size=part.shape)
        part[:] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return vectors


def ours(titles: int) -> Callable[[], Any]:
    import torch

    from tasks.neighbours.similarity import top_neighbours

    torch.set_num_threads(1)
    vectors = world(titles)
    top_neighbours(vectors[:600], vectors[:600], 5)
    return lambda: top_neighbours(vectors, vectors, K, exclude_self=True)[0][:SAMPLE]


def faiss_flat(titles: int) -> Callable[[], Any]:
    import faiss  # pyright: ignore[reportMissingImports]

    vectors = world(titles)

    def search() -> np.ndarray:
        index = faiss.IndexFlatIP(DIM)
        index.add(vectors)
        return index.search(vectors, K + 1)[1][:SAMPLE, 1:]

    return search


def scikit_learn(titles: int, metric: str = "cosine") -> Callable[[], Any]:
    from sklearn.neighbors import NearestNeighbors

    vectors = world(titles)
    return lambda: (
        NearestNeighbors(n_neighbors=K + 1, metric=metric, algorithm="brute")
        .fit(vectors)
        .kneighbors(vectors)[1][:SAMPLE, 1:]
    )


def scikit_learn_euclidean(titles: int) -> Callable[[], Any]:
    return scikit_learn(titles, "euclidean")


def approximate(titles: int) -> Callable[[], Any]:
    import torch

    from tasks.neighbours.index import Approximate

    torch.set_num_threads(1)
    vectors = world(titles)
    return lambda: Approximate(vectors).nearest_to_each(K)[0][:SAMPLE]


def hnsw(titles: int) -> Callable[[], Any]:
    import hnswlib  # pyright: ignore[reportMissingImports]

    vectors = world(titles)

    def search() -> np.ndarray:
        index = hnswlib.Index(space="ip", dim=DIM)
        index.init_index(max_elements=titles, ef_construction=100, M=16, random_seed=0)
        index.set_num_threads(1)
        index.add_items(vectors)
        index.set_ef(100)
        return _without_self(index.knn_query(vectors, k=K + 1)[0][:SAMPLE])

    return search


def usearch(titles: int) -> Callable[[], Any]:
    from usearch.index import Index  # pyright: ignore[reportMissingImports]

    vectors = world(titles)

    def search() -> np.ndarray:
        index = Index(
            ndim=DIM, metric="ip", dtype="f32", connectivity=16, expansion_add=100, expansion_search=100
        )
        index.add(np.arange(titles), vectors, threads=1)
        return _without_self(
            np.asarray(index.search(vectors, K + 1, threads=1).keys)[:SAMPLE].astype(np.int64)
        )

    return search


def _without_self(ids: np.ndarray) -> np.ndarray:
    """Returns the first K ids of each row that are not the row itself."""
    return np.array(
        [[neighbour for neighbour in row if neighbour != query][:K] for query, row in enumerate(ids.tolist())]
    )


def recall(exact: np.ndarray, approximate: np.ndarray) -> float:
    """Returns the share of exact neighbours that the approximate search finds."""
    rows = zip(exact.tolist(), approximate.tolist(), strict=True)
    return float(np.mean([len(set(one) & set(other)) / len(one) for one, other in rows]))


def measure_neighbours(quick: bool) -> Sequence[Claim]:
    """Measures all claims of this file except those of --full."""
    claims: list[Claim] = []
    sizes = (20_000,) if quick else (20_000, 50_000, 100_000)
    for titles in sizes:
        mine = measure_apart(ours, titles, threads=1)
        for name, package, rival, aim in EXACT:
            if (rival is not scikit_learn or titles < 100_000) and (theirs := _rival(package, rival, titles)):
                claims += _exact(titles, mine, name, theirs, aim)
        aim = 600 if titles == 100_000 else None
        peak_name = f"exact k-NN, {titles:,} titles, peak MiB"
        claims.append(Claim(peak_name, mine.peak, aim=aim, better="less" if aim else None))
        if titles == sizes[-1] and (inverted := _rival("faiss", approximate, titles)):
            share = recall(mine.result, inverted.result)
            name = f"approximate k-NN, ours by faiss's inverted file, {titles:,} titles, recall"
            claims.append(Claim(name, share, aim=0.98))
            about = f"approximate k-NN, {titles:,} titles, build and search"
            for name, rival in (("hnswlib", hnsw), ("usearch", usearch)):
                if theirs := _rival(name, rival, titles):
                    share = recall(mine.result, theirs.result)
                    claims += [
                        Claim(f"{about}, CPU s", inverted.cpu, name, theirs.cpu, aim=1.0, better="less"),
                        Claim(f"{about}, recall of {name}", share, better=None),
                    ]
    return claims


EXACT = (
    ("faiss IndexFlatIP", "faiss", faiss_flat, 1.0),
    ("scikit-learn brute force, cosine", "sklearn", scikit_learn, 0.25),
    ("scikit-learn brute force, Euclidean", "sklearn", scikit_learn_euclidean, 1.0),
)


def measure_cosine() -> Sequence[Claim]:
    """Measures scikit-learn by cosine with 100,000 titles."""
    name, _, rival, aim = EXACT[1]
    mine = measure_apart(ours, 100_000, threads=1)
    theirs = measure_apart(rival, 100_000, rival=True, threads=1)
    return list(_exact(100_000, mine, name, theirs, aim))


def _exact(titles: int, mine: Measured, name: str, theirs: Measured, aim: float) -> Iterator[Claim]:
    """Compares CPU time, wall time and results of our exact search with a rival's."""
    yield Claim(f"exact k-NN, {titles:,} titles, CPU s", mine.cpu, name, theirs.cpu, aim=aim, better="less")
    yield Claim(f"exact k-NN, {titles:,} titles, wall s", mine.wall, name, theirs.wall, better=None)
    yield Claim(
        f"exact k-NN, {titles:,} titles, share of neighbours that agree with {name}",
        recall(theirs.result, mine.result),
        aim=0.999,
    )


def _rival(package: str, prepare: Callable[[int], Callable[[], Any]], titles: int) -> Measured | None:
    """Measures a rival; if it is not installed, reports this and returns None."""
    if not is_installed(package):
        return None
    return measure_apart(prepare, titles, rival=prepare is not approximate, threads=1)


if __name__ == "__main__":
    sys.exit(run(measure_neighbours, __doc__ or "", measure_cosine))
