"""From scores to a list that serves every taste of a viewer.

The best scores alone are of one taste: football is nearest to a football fan who also cooks. Each place of
the list goes to the title of the largest

    score(t) + trade_off · Σ_likes share(l, t) · Π_chosen (1 - share(l, c))

so a like that chosen titles stand for counts no more, and a taste gets places by the number of its likes.

References: Santos, Macdonald, Ounis, *Exploiting query reformulations for web search result
diversification*, WWW 2010 (xQuAD, eq. 5). We differ: the aspects of a request are the viewer's likes, and the
sum is of counts, not of probabilities.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, Self

import numpy as np

from tasks.recommend.likes import Reason

TRADE_OFF = 0.35
POOL = 200  # titles of best score that a list is chosen from
VIEWERS = 1_024  # scored at once


class Fitted(Protocol):
    """A strategy that has seen the likes."""

    def scores(self, viewers: np.ndarray, titles: np.ndarray) -> np.ndarray:
        """float32 (viewers, titles), finite, higher is better."""
        ...

    def shares(self, viewer: int, titles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows of a viewer's likes, and which of them a title stands for: float32 (likes, titles)."""
        ...

    def why(self, viewer: int, title: int) -> list[Reason]:
        """By falling share; empty where no like decides."""
        ...

    def revised(self, viewer: int, titles: np.ndarray, values: np.ndarray) -> Self:
        """As if this viewer's likes were others; asked of this viewer alone."""
        ...


def diversify(scores: np.ndarray, shares: np.ndarray, count: int, trade_off: float = TRADE_OFF) -> np.ndarray:
    """Chooses a list, int64 (at most count,), places in ``scores``, first place first.

    Args:
        scores: float32 (titles,).
        shares: Of each like, float32 (likes, titles), columns sum to 1 or 0; without likes the best scores.
        count: Titles on the list.
        trade_off: Weight of likes that nothing chosen stands for; 0 gives the best scores.
    """
    left, value = np.ones(len(shares), dtype=np.float32), scores.astype(np.float32)
    chosen: list[int] = []
    for _ in range(min(count, len(scores))):
        gains = value + np.float32(trade_off) * (left @ shares)
        best = int(gains.argmax())
        chosen.append(best)
        value[best] = -np.inf
        left *= 1 - shares[:, best]
    return np.array(chosen, dtype=np.int64)


def best_titles(
    fitted: Fitted,
    viewers: np.ndarray,
    titles: np.ndarray,
    count: int = 10,
    trade_off: float = TRADE_OFF,
) -> Iterator[np.ndarray]:
    """The list of each viewer, rows of titles, first place first; without titles that they liked or disliked
    the caller leaves out.
    """
    for begin, end in pairwise([*range(0, len(viewers), VIEWERS), len(viewers)]):
        some = viewers[begin:end]
        for viewer, own in zip(some.tolist(), fitted.scores(some, titles), strict=True):
            pool = best_places(own, max(POOL, count))
            _, shares = fitted.shares(viewer, titles[pool])
            yield titles[pool[diversify(own[pool], shares, count, trade_off)]]


def best_places(scores: np.ndarray, count: int) -> np.ndarray:
    """Places of the largest scores, int64 (at most count,), largest first, equal ones in order of place."""
    if count < len(scores):
        least = np.partition(scores, len(scores) - count)[len(scores) - count]
        places = np.flatnonzero(scores >= least)
    else:
        places = np.arange(len(scores))
    return places[np.argsort(-scores[places], kind="stable")][:count]


@dataclass(frozen=True)
class Change:
    """What would take a title off a list.

    Attributes:
        without: The fewest liked titles without which it is not listed; empty where none were found.
        disliked: One liked title that takes it off if it were disliked, where leaving out takes several.
    """

    without: tuple[int, ...]
    disliked: int | None = None


def what_would_change(
    fitted: Fitted,
    viewer: int,
    likes: dict[int, float],
    title: int,
    listed: Callable[[Fitted], np.ndarray],
    most: int = 5,
) -> Change:
    """Looks for the smallest change of a viewer's likes that takes a title off the list.

    Every single like among the reasons is tried; of several the first, second, … reason together, up to
    ``most``: that set need not be the smallest.

    Args:
        fitted: What the list was made with.
        viewer: Whose list it is.
        likes: The viewer's likes and dislikes: value by title.
        title: A title of the list.
        listed: The list, rows of titles, of a revised strategy.
        most: Likes left out at most.
    """

    def takes_off(changed: dict[int, float]) -> bool:
        rows, values = np.array(list(changed), np.int32), np.array(list(changed.values()), np.float32)
        return title not in listed(fitted.revised(viewer, rows, values))

    def without(some: tuple[int, ...]) -> dict[int, float]:
        return {row: value for row, value in likes.items() if row not in some}

    reasons = [reason.title for reason in fitted.why(viewer, title) if reason.liked]
    for one in reasons:
        if takes_off(without((one,))):
            return Change((one,))
    disliked = next((one for one in reasons if takes_off(likes | {one: -1.0})), None)
    # behind the nearest likes others move up: the reasons of what is left follow
    gone: tuple[int, ...] = ()
    while len(gone) < min(most, len(likes)):
        left = without(gone)
        rows, values = np.array(list(left), np.int32), np.array(list(left.values()), np.float32)
        revised = fitted.revised(viewer, rows, values)
        following = [reason.title for reason in revised.why(viewer, title) if reason.liked]
        if not following:
            break
        gone = (*gone, following[0])
        if len(gone) > 1 and takes_off(without(gone)):
            return Change(gone, disliked)
    return Change((), disliked)
