"""Who decides on a title's categories, in the order in which a guide is filled: a person, the guide, a person
by the nearest edition of the show, the vote of the nearest training titles. The vote is always told.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow.parquet as pq

from tasks.enrich.model import CategoryModel
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
    show = parse_title(title).show_key
    row, correction = model.row_of.get(show, -1), model.corrections.get(show)
    queries = model.vectors(np.array([row])) if row >= 0 else model.encoder.embed([title])
    if not (queries.any() or correction):
        raise SearchError(nothing_known(title))
    neighbours = model.neighbours(queries, without=row)
    spoken = np.array([model.languages[row] if row >= 0 else ""])
    vote = model.vote(neighbours, spoken, Own({}), 0, 1.0)  # the precision asked for changes no confidence
    (first,), unsure = vote.names, str(vote.held_out.get("reason", ""))
    guide = model.labels[row] if row >= 0 else []
    if correction:
        by, categories = "correction", [*correction.categories]
        guide = guide if {*guide} != {*categories} else []
    elif guide:
        by, categories = "guide", guide
    elif edition := model.corrected_editions([title], queries, neighbours):
        by, categories = "edition", [*edition[0]]
    else:
        by, categories = ("vote", [first]) if first else (None, [])
    titles = pq.read_table(model.folder / "titles.parquet", columns=["title"])["title"]
    voters = [
        Voter(title=titles[int(near)].as_py(), cosine=round(float(cosine), 4), categories=model.labels[near])
        for near, cosine in zip(neighbours.ids[0], neighbours.cosines[0], strict=True)
        if near >= 0
    ]
    held = Counter(category for voter in voters for category in voter.categories)
    return Decision(
        title=titles[row].as_py() if row >= 0 else title,
        categories=categories,
        by=by,
        guide=guide,
        voted=first,
        confidence=round(float(vote.confidence[0]), 4) if first and not unsure else None,
        unsure=unsure,
        votes=dict(sorted(held.items(), key=lambda one: (one[0] != first, -one[1]))),
        voters=voters,
    )
