"""Builds lists that cover all tastes of a viewer from scores.

The titles of the highest scores often belong to a single taste: for a football fan who also cooks, they are
all football. Each position of the list is therefore filled with the title that maximizes

    score(t) + trade_off · Σ_likes share(l, t) · Π_chosen (1 - share(l, c))

share(l, t) is the share of like l in the score of t, and c are the titles chosen before. A like that is
covered by chosen titles has no further weight, so the number of positions of a taste depends on its number of
likes.

References: Santos, Macdonald, Ounis, *Exploiting query reformulations for web search result
diversification*, WWW 2010 (xQuAD, eq. 5). We differ: the aspects are the viewer's likes, and we sum
counts instead of probabilities.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, Self

import numpy as np

from tasks.recommend.likes import Reason

TRADE_OFF = 0.35
POOL = 200  # titles of the highest scores from which a list is chosen
VIEWER_BATCH = 1_024  # scored at once


class FittedRecommender(Protocol):
    """A fitted recommender."""

    def scores(self, viewers: np.ndarray, titles: np.ndarray) -> np.ndarray:
        """Computes scores, float32 (viewers, titles), finite, higher is better."""
        ...

    def shares(self, viewer: int, titles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns liked titles of a viewer and how far each title covers them: float32 (likes, titles)."""
        ...

    def why(self, viewer: int, title: int) -> list[Reason]:
        """Returns the reasons in descending order of share; empty if no like contributes."""
        ...

    def revised(self, viewer: int, titles: np.ndarray, values: np.ndarray) -> Self:
        """Replaces the likes of one viewer; the result is valid only for this viewer."""
        ...


def diversify(scores: np.ndarray, shares: np.ndarray, count: int, trade_off: float = TRADE_OFF) -> np.ndarray:
    """Chooses a list of indices into ``scores``, int64 (at most count,), best first.

    Args:
        scores: float32 (titles,).
        shares: float32 (likes, titles), columns sum to 1 or 0; without likes, scores alone decide.
        count: Number of titles on the list.
        trade_off: Weight of likes that are not covered yet; with 0, scores alone decide.
    """
    uncovered, value = np.ones(len(shares), dtype=np.float32), scores.astype(np.float32)
    chosen: list[int] = []
    for _ in range(min(count, len(scores))):
        gains = value + np.float32(trade_off) * (uncovered @ shares)
        best = int(gains.argmax())
        chosen.append(best)
        value[best] = -np.inf
        uncovered *= 1 - shares[:, best]
    return np.array(chosen, dtype=np.int64)


def best_titles(
    fitted: FittedRecommender,
    viewers: np.ndarray,
    titles: np.ndarray,
    count: int = 10,
    trade_off: float = TRADE_OFF,
) -> Iterator[np.ndarray]:
    """Yields the list of each viewer, rows of titles, best first.

    Liked and disliked titles are not excluded; the caller passes ``titles`` without them.
    """
    for begin, end in pairwise([*range(0, len(viewers), VIEWER_BATCH), len(viewers)]):
        batch = viewers[begin:end]
        for viewer, viewer_scores in zip(batch.tolist(), fitted.scores(batch, titles), strict=True):
            pool = top_indices(viewer_scores, max(POOL, count))
            _, shares = fitted.shares(viewer, titles[pool])
            yield titles[pool[diversify(viewer_scores[pool], shares, count, trade_off)]]


def top_indices(scores: np.ndarray, count: int) -> np.ndarray:
    """Returns the indices of the largest scores, int64 (at most count,), descending; ties by index."""
    if count < len(scores):
        threshold = np.partition(scores, len(scores) - count)[len(scores) - count]
        indices = np.flatnonzero(scores >= threshold)
    else:
        indices = np.arange(len(scores))
    return indices[np.argsort(-scores[indices], kind="stable")][:count]


@dataclass(frozen=True)
class Counterfactual:
    """A change of likes that removes a title from a list.

    Attributes:
        without: A small set of liked titles whose removal removes the title; empty if none was found.
        disliked: A liked title that removes the title if it is disliked; only if no single removal does.
    """

    without: tuple[int, ...]
    disliked: int | None = None


def find_counterfactual(
    fitted: FittedRecommender,
    viewer: int,
    likes: dict[int, float],
    title: int,
    listed: Callable[[FittedRecommender], np.ndarray],
    max_removed: int = 5,
) -> Counterfactual:
    """Searches for a small change of a viewer's likes that removes a title from the list.

    First, each like among the reasons is removed alone. Then the strongest reasons are removed together, one
    more at a time up to ``max_removed``; this set is not necessarily the smallest.

    Args:
        fitted: The recommender that produced the list.
        viewer: The viewer of the list.
        likes: The viewer's likes and dislikes, value by title.
        title: A title of the list.
        listed: Computes the list, rows of titles, of a revised recommender.
        max_removed: Maximum number of removed likes.
    """

    def is_removed(changed: dict[int, float]) -> bool:
        rows, values = np.array(list(changed), np.int32), np.array(list(changed.values()), np.float32)
        return title not in listed(fitted.revised(viewer, rows, values))

    def without(removed: tuple[int, ...]) -> dict[int, float]:
        return {row: value for row, value in likes.items() if row not in removed}

    reasons = [reason.title for reason in fitted.why(viewer, title) if reason.liked]
    for liked in reasons:
        if is_removed(without((liked,))):
            return Counterfactual((liked,))
    disliked = next((liked for liked in reasons if is_removed(likes | {liked: -1.0})), None)
    # Removing the nearest likes makes others contribute, so the reasons are recomputed after each removal.
    removed_titles: tuple[int, ...] = ()
    while len(removed_titles) < min(max_removed, len(likes)):
        remaining = without(removed_titles)
        rows, values = np.array(list(remaining), np.int32), np.array(list(remaining.values()), np.float32)
        revised = fitted.revised(viewer, rows, values)
        next_reasons = [reason.title for reason in revised.why(viewer, title) if reason.liked]
        if not next_reasons:
            break
        removed_titles = (*removed_titles, next_reasons[0])
        if len(removed_titles) > 1 and is_removed(without(removed_titles)):
            return Counterfactual(removed_titles, disliked)
    return Counterfactual((), disliked)
