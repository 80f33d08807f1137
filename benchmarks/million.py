"""One million titles in one run: nearest titles by the approximate index, clusters, places on the map; time
and memory.

The million is behind --full: ten minutes of two calm cores and 5 GB. Recall is measured against the exact
search for up to 20,000 titles. Rounds of the layout are few; the map of a night takes 200.
"""

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

from benchmarks._apart import peak
from benchmarks.claims import Claim, run
from benchmarks.neighbours import K, world
from tasks.cluster import ChineseWhispers
from tasks.cluster.graph import Neighbours
from tasks.neighbours.index import Approximate, sampled_recall
from tasks.publish.map.layout import lay_out

SAMPLE = 20_000


def measure_million(titles: int, probes: int, rounds: int) -> list[Claim]:
    """What each step took."""
    torch.set_num_threads(os.cpu_count() or 1)
    claims: list[Claim] = []

    def timed(name: str, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        cpu, wall = time.process_time(), time.perf_counter()
        result = call(*arguments, **named)
        for unit, value in (
            ("CPU s", time.process_time() - cpu),
            ("wall s", time.perf_counter() - wall),
            ("peak MiB so far", peak()),
        ):
            claims.append(Claim(name=f"{titles:,} titles, {name}, {unit}", value=value, better=None))
            print(claims[-1].name, round(value, 1), file=sys.stderr, flush=True)
        return result

    vectors = world(titles)
    index = timed("index built", Approximate, vectors, probes=probes)
    neighbours = Neighbours(
        *timed(f"{K} nearest of each, {probes} of {index.cells} cells", index.among_themselves, K)
    )
    del index
    partition = timed(
        "Chinese Whispers with its edges", ChineseWhispers().cluster, vectors, neighbours, seed=0
    )
    claims.append(Claim(name=f"{titles:,} titles, clusters", value=partition.count, better=None))
    timed(
        f"places on the map, {rounds} rounds",
        lay_out,
        vectors,
        neighbours.ids,
        neighbours.cosines,
        seed=0,
        rounds=rounds,
    )
    recall = timed(f"exact search of {SAMPLE:,}", sampled_recall, vectors, neighbours.ids, SAMPLE)
    claims.append(
        Claim(name=f"{titles:,} titles, recall of {SAMPLE:,} titles' nearest", value=recall, better=None)
    )
    print(claims[-1].name, recall, file=sys.stderr, flush=True)
    return claims


if __name__ == "__main__":
    sys.exit(
        run(
            lambda quick: measure_million(20_000 if quick else 200_000, 16, 20),
            __doc__ or "",
            lambda: measure_million(1_000_000, 16, 20),
        )
    )
