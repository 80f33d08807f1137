"""Explains from which source the categories of a title come.

The sources, in order of precedence, are: a user's correction, the guide, a correction of the most similar
edition of the same show, and a vote of the nearest training titles. The result of the vote is always
included.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tasks.enrich.model import Ballot, CategoryModel
from tasks.enrich.vocabulary import GuideVocabulary
from tasks.kinds.kinds import KindPrediction
from tasks.search.search import SearchError, no_match_message
from tasks.text.titles import parse_title


@dataclass(frozen=True, kw_only=True)
class Voter:
    """Training title that votes on the categories of a similar title."""

    title: str
    cosine: float
    categories: list[str]


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Categories of a title, with their source and the votes of the nearest training titles."""

    title: str
    categories: list[str]
    by: Literal["correction", "guide", "edition", "vote"] | None  # source; None: no source has categories
    guide: list[str]  # categories of the title in the model; empty if they equal the correction
    voted: str  # category with the highest score; empty without votes
    confidence: float | None  # probability that ``voted`` is correct
    unsure: str  # why ``confidence`` is None; "" if it is not
    votes: dict[str, int]  # number of votes by category: ``voted`` first, then in descending order
    voters: list[Voter]  # training titles that vote, nearest first
    kinds: list[KindPrediction]  # kinds of the title in the model: film, series, …


def decide(model: CategoryModel, title: str) -> Decision:
    """Decides the categories of a title. A title that the model lacks is embedded from its text alone.

    Raises:
        SearchError: The title has neither a vector nor a correction.
    """
    (decision,) = decide_many(model, [title], model.ballot(GuideVocabulary({}), 0))
    if isinstance(decision, SearchError):
        raise decision
    return decision


def decide_many(model: CategoryModel, titles: Sequence[str], ballot: Ballot) -> list[Decision | SearchError]:
    """Decides the categories of several titles. The result contains an error for a title that fails."""
    shows = [parse_title(title).show_key for title in titles]
    rows = np.array([model.row_of.get(show, -1) for show in shows], dtype=np.int64)
    queries = np.zeros((len(titles), model.dim), dtype=np.float32)
    queries[rows >= 0] = model.vectors(rows[rows >= 0])
    if (rows < 0).any():
        queries[rows < 0] = model.encoder.embed([title for title, row in zip(titles, rows) if row < 0])
    neighbours = model.neighbours(queries, rows)
    votes, _, confidence = ballot.count(neighbours, np.where(rows >= 0, model.languages[rows], ""))
    editions = model.corrected_editions(titles, queries, neighbours)
    decisions: list[Decision | SearchError] = []
    for position, (title, row, top_category) in enumerate(zip(titles, rows.tolist(), votes, strict=True)):
        correction = model.corrections.get(shows[position])
        if not (queries[position].any() or correction):
            decisions.append(SearchError(no_match_message(title)))
            continue
        guide = model.labels[row] if row >= 0 else []
        if correction:
            by, categories = "correction", [*correction.categories]
            guide = guide if {*guide} != {*categories} else []
        elif guide:
            by, categories = "guide", guide
        elif position in editions:
            by, categories = "edition", [*editions[position]]
        else:
            by, categories = ("vote", [top_category]) if top_category else (None, [])
        voters = [
            Voter(title=model.titles[near], cosine=round(cosine, 4), categories=model.labels[near])
            for near, cosine in zip(*(array[position].tolist() for array in neighbours), strict=True)
            if near >= 0
        ]
        counts = Counter(category for voter in voters for category in voter.categories)
        decision = Decision(
            title=model.titles[row] if row >= 0 else title,
            categories=categories,
            by=by,
            guide=guide,
            voted=top_category,
            confidence=round(float(confidence[position]), 4) if top_category and not ballot.unsure else None,
            unsure=ballot.unsure,
            votes=dict(sorted(counts.items(), key=lambda pair: (pair[0] != top_category, -pair[1]))),
            voters=voters,
            kinds=model.kinds_of(row) if row >= 0 else [],
        )
        decisions.append(decision)
    return decisions
