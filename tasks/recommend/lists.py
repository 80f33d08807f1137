"""Selects lists of titles by score, such that a list covers all tastes of a viewer.

The titles with the highest scores often belong to a single taste: for a football fan who also cooks, all may
be football. Each position of the list is therefore filled with the title that maximizes

    score(t) + trade_off · Σ_likes share(l, t) · Π_chosen (1 - share(l, c))

share(l, t) is the share of like l in the score of t, and c are the titles that were chosen before. A like
loses weight when chosen titles cover it, so the number of positions for a taste depends on its number of
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
VIEWER_BATCH = 1_024  # viewers scored at once


class FittedRecommender(Protocol):
    """Recommender fitted on likes, which computes scores of titles and their reasons."""

    def scores(self, viewers: np.ndarray, titles: np.ndarray) -> np.ndarray:
        """Computes the scores of titles for viewers, float32 (viewers, titles), finite. Higher is better."""
        ...

    def shares(self, viewer: int, titles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the likes of a viewer, and how much each adds to each score, float32 (likes, titles)."""
        ...

    def reasons_for(self, viewer: int, title: int) -> list[Reason]:
        """Returns the likes that contribute to the score of a title, in descending order of share."""
        ...

    def with_likes(self, viewer: int, titles: np.ndarray, values: np.ndarray) -> Self:
        """Returns a recommender for one viewer with other likes. It is valid only for this viewer."""
        ...


def diversify(scores: np.ndarray, shares: np.ndarray, count: int, trade_off: float = TRADE_OFF) -> np.ndarray:
    """Chooses the titles of a list. Returns their indices in ``scores``, int64 (at most count,), in order.

    Args:
        scores: Scores of the titles, float32 (titles,).
        shares: Share of each like in each score, float32 (likes, titles); columns sum to 1 or 0.
        count: Number of titles on the list.
        trade_off: Weight of likes that are not yet covered; 0: only scores decide.
    """
    uncovered, value = np.ones(len(shares), dtype=np.float32), scores.astype(np.float32)
    selection: list[int] = []
    for _ in range(min(count, len(scores))):
        gains = value + np.float32(trade_off) * (uncovered @ shares)
        best = int(gains.argmax())
        selection.append(best)
        value[best] = -np.inf
        uncovered *= 1 - shares[:, best]
    return np.array(selection, dtype=np.int64)


def best_titles(
    fitted: FittedRecommender,
    viewers: np.ndarray,
    titles: np.ndarray,
    count: int = 10,
    trade_off: float = TRADE_OFF,
) -> Iterator[np.ndarray]:
    """Yields for each viewer the rows of at most ``count`` recommended titles, best first.

    Titles that the viewer likes or dislikes are not excluded; the caller omits them from ``titles``.
    """
    for begin, end in pairwise([*range(0, len(viewers), VIEWER_BATCH), len(viewers)]):
        batch = viewers[begin:end]
        for viewer, viewer_scores in zip(batch.tolist(), fitted.scores(batch, titles), strict=True):
            pool = top_indices(viewer_scores, max(POOL, count))
            _, shares = fitted.shares(viewer, titles[pool])
            yield titles[pool[diversify(viewer_scores[pool], shares, count, trade_off)]]


def top_indices(scores: np.ndarray, count: int) -> np.ndarray:
    """Returns the indices of the largest scores, descending (in a tie, by index), int64 (at most count,)."""
    if count < len(scores):
        threshold = np.partition(scores, len(scores) - count)[len(scores) - count]
        indices = np.flatnonzero(scores >= threshold)
    else:
        indices = np.arange(len(scores))
    return indices[np.argsort(-scores[indices], kind="stable")][:count]


@dataclass(frozen=True)
class Counterfactual:
    """Change of the likes of a viewer that would remove a recommended title from the list.

    Attributes:
        without: Liked titles (rows) without which the title would not be listed; () if the search failed.
        disliked: Liked title (row) that would remove the title if the viewer disliked it; None if there is
            none, or if removing a single like is sufficient.
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
    """Searches for a small change of the likes of a viewer that removes a title from the list.

    First, the function removes each like among the reasons alone. Then, it removes the strongest reasons one
    after the other, up to ``max_removed``. This set of likes is not necessarily the smallest.

    Args:
        fitted: The recommender that produced the list.
        viewer: The viewer of the list.
        likes: The viewer's likes and dislikes, value by title.
        title: A title of the list.
        listed: Function that returns the list (rows of titles) of a recommender with changed likes.
        max_removed: Maximum number of removed likes.
    """

    def is_removed(new_likes: dict[int, float]) -> bool:
        rows, values = np.array(list(new_likes), np.int32), np.array(list(new_likes.values()), np.float32)
        return title not in listed(fitted.with_likes(viewer, rows, values))

    def without(removed: tuple[int, ...]) -> dict[int, float]:
        return {row: value for row, value in likes.items() if row not in removed}

    reasons = [reason.title for reason in fitted.reasons_for(viewer, title) if reason.liked]
    for liked in reasons:
        if is_removed(without((liked,))):
            return Counterfactual((liked,))
    disliked = next((liked for liked in reasons if is_removed(likes | {liked: -1.0})), None)
    # Removing the nearest likes makes others contribute, so the reasons are recomputed after each removal.
    removed_titles: tuple[int, ...] = ()
    while len(removed_titles) < min(max_removed, len(likes)):
        remaining = without(removed_titles)
        rows, values = np.array(list(remaining), np.int32), np.array(list(remaining.values()), np.float32)
        refitted = fitted.with_likes(viewer, rows, values)
        next_reasons = [reason.title for reason in refitted.reasons_for(viewer, title) if reason.liked]
        if not next_reasons:
            break
        removed_titles = (*removed_titles, next_reasons[0])
        if len(removed_titles) > 1 and is_removed(without(removed_titles)):
            return Counterfactual(removed_titles, disliked)
    return Counterfactual((), disliked)
