"""Who decides on a title's categories, in the order in which a guide is filled: a person, the guide, a person
by the nearest edition of the show, the vote of the nearest training titles. The vote is always told.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tasks.enrich.model import Ballot, CategoryModel
from tasks.enrich.vocabulary import Own
from tasks.search.search import SearchError, nothing_known
from tasks.text.titles import parse_title


@dataclass(frozen=True, kw_only=True)
class Voter:
    """A labelled training title near the title."""

    title: str
    cosine: float
    categories: list[str]


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What a title is, who says so, and how its neighbours vote."""

    title: str
    categories: list[str]
    by: Literal["correction", "guide", "edition", "vote"] | None  # None: no neighbour votes
    guide: list[str]  # labels of the title, unless they are the correction, which training titles learn
    voted: str  # the category that the vote puts first; empty without voters
    confidence: float | None  # the probability that it is right
    unsure: str  # why the confidence is None
    votes: dict[str, int]  # voters that hold each category: the one put first, then the most
    voters: list[Voter]  # nearest first


def decide(model: CategoryModel, title: str) -> Decision:
    """Decides on a title as it airs, or alone where the model lacks it. It is no voter of its own.

    Raises:
        SearchError: Nothing is known of the title, and no person corrected it.
    """
    (found,) = decide_many(model, [title], model.ballot(Own({}), 0))
    if isinstance(found, SearchError):
        raise found
    return found


def decide_many(model: CategoryModel, titles: Sequence[str], ballot: Ballot) -> list[Decision | SearchError]:
    """``decide`` for many at once; in place of a decision the reason why there is none."""
    shows = [parse_title(title).show_key for title in titles]
    rows = np.array([model.row_of.get(show, -1) for show in shows], dtype=np.int64)
    queries = np.zeros((len(titles), model.dim), dtype=np.float32)
    queries[rows >= 0] = model.vectors(rows[rows >= 0])
    if (rows < 0).any():
        queries[rows < 0] = model.encoder.embed([title for title, row in zip(titles, rows) if row < 0])
    neighbours = model.neighbours(queries, rows)
    votes, _, confidence = ballot.count(neighbours, np.where(rows >= 0, model.languages[rows], ""))
    editions = model.corrected_editions(titles, queries, neighbours)
    found: list[Decision | SearchError] = []
    for place, (title, row, first) in enumerate(zip(titles, rows.tolist(), votes, strict=True)):
        correction = model.corrections.get(shows[place])
        if not (queries[place].any() or correction):
            found.append(SearchError(nothing_known(title)))
            continue
        guide = model.labels[row] if row >= 0 else []
        if correction:
            by, categories = "correction", [*correction.categories]
            guide = guide if {*guide} != {*categories} else []
        elif guide:
            by, categories = "guide", guide
        elif place in editions:
            by, categories = "edition", [*editions[place]]
        else:
            by, categories = ("vote", [first]) if first else (None, [])
        voters = [
            Voter(title=model.titles[near], cosine=round(cosine, 4), categories=model.labels[near])
            for near, cosine in zip(*(own[place].tolist() for own in neighbours), strict=True)
            if near >= 0
        ]
        held = Counter(category for voter in voters for category in voter.categories)
        decision = Decision(
            title=model.titles[row] if row >= 0 else title,
            categories=categories,
            by=by,
            guide=guide,
            voted=first,
            confidence=round(float(confidence[place]), 4) if first and not ballot.unsure else None,
            unsure=ballot.unsure,
            votes=dict(sorted(held.items(), key=lambda one: (one[0] != first, -one[1]))),
            voters=voters,
        )
        found.append(decision)
    return found
