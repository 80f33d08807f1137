"""Selects lists of titles by score, such that a list covers all tastes of a viewer.

The titles with the highest scores often belong to a single taste: all of them may be football for a football
fan who also cooks. Each position of the list is therefore filled with the title t that maximizes

    score(t) + trade_off · Σ_l share(l, t) · Π_c (1 - share(l, c))

l runs over the titles that the viewer likes, and share(l, t) is the share of l in the score of t. c runs over
the titles that were already chosen: the more of them a liked title explains, the less weight it has.
Therefore, the number of positions for a taste depends on its number of liked titles.

References: Santos, Macdonald, Ounis, *Exploiting query reformulations for web search result
diversification*, WWW 2010 (xQuAD, eq. 5). We differ: the aspects are the liked titles of the viewer, and we
sum over them with equal weights instead of probabilities.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, Self

import numpy as np

from tasks.recommend.likes import Reason

TRADE_OFF = 0.35  # weight of the liked titles that a list does not cover yet, relative to the scores
POOL = 200  # number of titles with the highest scores from which a list is chosen
VIEWER_BATCH = 1_024  # number of viewers whose scores are computed at once


class FittedRecommender(Protocol):
    """Recommender that was fitted to likes. It computes scores of titles and the reasons of scores."""

    def scores(self, viewers: np.ndarray, titles: np.ndarray) -> np.ndarray:
        """Computes the scores of titles for viewers, float32 (viewers, titles), finite. Higher is better."""
        ...

    def shares(self, viewer: int, titles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the rows of a viewer's liked titles, and their shares of each score (liked, titles)."""
        ...

    def reasons_for(self, viewer: int, title: int) -> list[Reason]:
        """Returns the rated titles that contribute to the score of a title, in descending order of share."""
        ...

    def with_likes(self, viewer: int, titles: np.ndarray, values: np.ndarray) -> Self:
        """Returns a recommender with other likes of one viewer, which is valid only for this viewer."""
        ...


def diversify(scores: np.ndarray, shares: np.ndarray, count: int, trade_off: float = TRADE_OFF) -> np.ndarray:
    """Chooses the titles of a list, best first. Returns their indices in ``scores``, int64 (at most count,).

    Args:
        scores: Scores of the titles, float32 (titles,).
        shares: Share of each liked title in each score, float32 (liked, titles); columns sum to 1 or 0.
        count: Number of titles on the list.
        trade_off: Weight of liked titles that the list does not cover yet; if it is 0, only scores count.
    """
    like_weights, remaining_scores = np.ones(len(shares), dtype=np.float32), scores.astype(np.float32)
    chosen_indices: list[int] = []
    for _ in range(min(count, len(scores))):
        gains = remaining_scores + np.float32(trade_off) * (like_weights @ shares)
        best = int(gains.argmax())
        chosen_indices.append(best)
        remaining_scores[best] = -np.inf
        like_weights *= 1 - shares[:, best]
    return np.array(chosen_indices, dtype=np.int64)


def best_titles(
    fitted: FittedRecommender,
    viewers: np.ndarray,
    titles: np.ndarray,
    count: int = 10,
    trade_off: float = TRADE_OFF,
) -> Iterator[np.ndarray]:
    """Yields the rows of at most ``count`` recommended titles for each viewer, best first.

    Titles that the viewer already likes or dislikes are not excluded; the caller has to omit them from
    ``titles``.
    """
    for begin, end in pairwise([*range(0, len(viewers), VIEWER_BATCH), len(viewers)]):
        batch = viewers[begin:end]
        for viewer, viewer_scores in zip(batch.tolist(), fitted.scores(batch, titles), strict=True):
            pool = top_indices(viewer_scores, max(POOL, count))
            _, shares = fitted.shares(viewer, titles[pool])
            yield titles[pool[diversify(viewer_scores[pool], shares, count, trade_off)]]


def top_indices(scores: np.ndarray, count: int) -> np.ndarray:
    """Returns the indices of the largest scores, int64 (at most count,), sorted by score, then by index."""
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
        without: Rows of the liked titles without which the title would not be listed; () if none were found.
        disliked: Row of a liked title; if the viewer disliked it, the title would not be listed. None if
            there is no such title, or if ``without`` has a single title.
    """

    without: tuple[int, ...]
    disliked: int | None = None


def find_counterfactual(
    fitted: FittedRecommender,
    viewer: int,
    likes: dict[int, float],
    title: int,
    list_titles: Callable[[FittedRecommender], np.ndarray],
    max_removed: int = 5,
) -> Counterfactual:
    """Searches for a small change of the likes of a viewer that removes a title from the list.

    The function first tests whether removing a single like among the reasons is sufficient. If not, it
    removes the strongest reasons one after the other, at most ``max_removed`` likes. The set of likes that it
    returns is not necessarily the smallest.

    Args:
        fitted: The recommender that produced the list.
        viewer: Number of the viewer of the list.
        likes: Values of the viewer's likes and dislikes, by row of the title.
        title: Row of the recommended title.
        list_titles: Function that returns the rows of the listed titles for a recommender with changed likes.
        max_removed: Maximum number of removed likes.
    """

    def refit(new_likes: dict[int, float]) -> FittedRecommender:
        rows, values = np.array(list(new_likes), np.int32), np.array(list(new_likes.values()), np.float32)
        return fitted.with_likes(viewer, rows, values)

    def is_listed(new_likes: dict[int, float]) -> bool:
        return title in list_titles(refit(new_likes))

    def likes_without(removed_titles: tuple[int, ...]) -> dict[int, float]:
        return {row: value for row, value in likes.items() if row not in removed_titles}

    reasons = [reason.title for reason in fitted.reasons_for(viewer, title) if reason.liked]
    for liked in reasons:
        if not is_listed(likes_without((liked,))):
            return Counterfactual((liked,))
    disliked = next((liked for liked in reasons if not is_listed(likes | {liked: -1.0})), None)
    # If the nearest likes are removed, others become reasons, so reasons are computed after each removal.
    removed_titles: tuple[int, ...] = ()
    while len(removed_titles) < min(max_removed, len(likes)):
        refitted = refit(likes_without(removed_titles))
        next_reasons = [reason.title for reason in refitted.reasons_for(viewer, title) if reason.liked]
        if not next_reasons:
            break
        removed_titles = (*removed_titles, next_reasons[0])
        if len(removed_titles) > 1 and not is_listed(likes_without(removed_titles)):
            return Counterfactual(removed_titles, disliked)
    return Counterfactual((), disliked)
