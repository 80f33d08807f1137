"""The commands ``guidespace explain`` and ``guidespace duplicates``: why titles are near, and which are nearly the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from flows.latest import read_latest
from storage.tracking import Registry
from storage.workspace import HomeError, Workspace
from tasks.neighbours.explain import Explanation, explain
from tasks.neighbours.search import TitleSearch
from tasks.neighbours.simhash import near_duplicates

PAIRS_SHOWN = 6  # at either end
LEAST = 0.005  # contributions below this are not worth a line


def explain_titles(home: str, left: str, right: str) -> Explanation:
    """Why two titles are near under the model that serves.

    Raises:
        HomeError: No model serves yet.
    """
    champion = Registry(Workspace(home, create=False).home).champion()
    if champion is None:
        raise HomeError(f"{home} has no champion model yet; run `guidespace nightly --feed …` first")
    return explain(TitleSearch.open(champion.folder), left, right)


def explanation_lines(found: Explanation) -> Iterator[str]:
    """The explanation as text."""
    place = f", number {found.rank} among the titles nearest to it" if found.rank else ""
    yield f"“{found.left}” and “{found.right}”: cosine {found.cosine:.3f}{place}"
    together = [pair for pair in found.pairs if pair.contribution >= LEAST]
    apart = [pair for pair in reversed(found.pairs) if pair.contribution <= -LEAST]
    for heading, pairs in (("brings them together", together), ("keeps them apart", apart)):
        if pairs:
            yield f"\n{heading}:"
            yield from (f"  {pair.contribution:+.3f}  {pair.left} ~ {pair.right}" for pair in pairs[:PAIRS_SHOWN])
    if found.without:
        yield f"\n“{found.left}” without a word:"
        width = max(len(one.word) for one in found.without)
        for one in found.without:
            rank = f", number {one.rank}" if one.rank else ""
            yield f"  without {one.word:<{width}}  cosine {one.cosine:.3f}{rank}; nearest: {', '.join(one.nearest)}"


def duplicates(home: str, minimum_cosine: float) -> list[dict[str, Any]]:
    """Pairs of titles of the last run that are nearly the same, nearest first.

    Raises:
        HomeError: No run has finished in this home, or its model is gone.
    """
    search = TitleSearch.open(Path(read_latest(home, "model")["model"]))
    pairs, cosines = near_duplicates(search.vectors, minimum_cosine, np.random.default_rng(0))
    titles, channels = search.columns["title"], search.columns["channels"]
    return [
        {"titles": [titles[one], titles[other]], "cosine": round(float(cosine), 4), "channels": [channels[one], channels[other]]}
        for (one, other), cosine in zip(pairs.tolist(), cosines, strict=True)
    ]
