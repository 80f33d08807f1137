"""Explains from which source the categories of a title come.

The sources, in order of precedence, are: a user's correction, the guide, a correction of the most similar
edition of the same show, and the predictor. An explanation always contains the prediction, even if another
source takes precedence, with the two numbers that it combines: the vote of the nearest training titles, and
the support by the linear part (tasks/predictor/prediction.py).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tasks.enrich.model import CategoryModel
from tasks.enrich.name_predictor import NamePredictor, VotingNeighbours
from tasks.enrich.vocabulary import GuideVocabulary
from tasks.kinds.kinds import KindPrediction
from tasks.predictor.prediction import count_votes, score_labels
from tasks.search.search import SearchError, no_match_message
from tasks.text.titles import parse_title

MAX_CANDIDATES = 5  # maximum number of candidate categories of an explanation


@dataclass(frozen=True, kw_only=True)
class Voter:
    """Training title that votes on the categories of a similar title."""

    title: str
    cosine: float
    categories: list[str]


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Category that can be predicted, with its score and the two numbers that the score combines, 0 to 1."""

    category: str
    score: float
    vote: float  # sum of the cosines of the neighbours that have the category, divided by k
    linear: float | None  # support by the linear part; None for models of older versions


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Categories of a title, with their source and the votes of the nearest training titles."""

    title: str
    categories: list[str]
    # source of the categories; None: no source has categories
    by: Literal["correction", "guide", "edition", "prediction"] | None
    guide: list[str]  # categories in the guides of the model; empty if they equal the correction
    predicted: str  # category with the highest score; empty without votes
    confidence: float | None  # probability that ``predicted`` is correct
    unsure: str  # why ``confidence`` is None; "" if ``confidence`` is a number
    candidates: list[Candidate]  # categories with the highest scores, ``predicted`` first
    votes: dict[str, int]  # number of votes by category: ``predicted`` first, then in descending order
    voters: list[Voter]  # training titles that vote, nearest first
    kinds: list[KindPrediction]  # kinds of the title in the model: film, series, …


def decide(model: CategoryModel, title: str) -> Decision:
    """Determines the categories of a title. A title that the model lacks is embedded from its text alone.

    Raises:
        SearchError: The title has neither a vector nor a correction.
    """
    (decision,) = decide_many(model, [title], model.name_predictor(GuideVocabulary({}), 0))
    if isinstance(decision, SearchError):
        raise decision
    return decision


def decide_many(
    model: CategoryModel, titles: Sequence[str], predictor: NamePredictor
) -> list[Decision | SearchError]:
    """Determines the categories of titles. A title with neither a vector nor a correction gets an error."""
    shows = [parse_title(title).show_key for title in titles]
    rows, queries = model.embed_texts(titles)
    neighbours = model.neighbours(queries, rows)
    languages = np.where(rows >= 0, model.languages[rows], "")
    top_categories, _, confidence = predictor.predict_all(neighbours, languages)
    candidates = _rank_candidates(predictor, neighbours, top_categories)
    editions = model.corrected_editions(titles, queries.vectors, neighbours)
    decisions: list[Decision | SearchError] = []
    for position, (title, row, top_category) in enumerate(
        zip(titles, rows.tolist(), top_categories, strict=True)
    ):
        correction = model.corrections.get(shows[position])
        if not (queries.vectors[position].any() or correction):
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
            by, categories = ("prediction", [top_category]) if top_category else (None, [])
        voters = [
            Voter(title=model.titles[neighbour], cosine=round(cosine, 4), categories=model.labels[neighbour])
            for neighbour, cosine in zip(
                neighbours.ids[position].tolist(), neighbours.cosines[position].tolist()
            )
            if neighbour >= 0
        ]
        vote_counts = Counter(category for voter in voters for category in voter.categories)
        decision = Decision(
            title=model.titles[row] if row >= 0 else title,
            categories=categories,
            by=by,
            guide=guide,
            predicted=top_category,
            confidence=round(float(confidence[position]), 4)
            if top_category and not predictor.no_confidence_reason
            else None,
            unsure=predictor.no_confidence_reason,
            candidates=candidates[position],
            votes=dict(sorted(vote_counts.items(), key=lambda pair: (pair[0] != top_category, -pair[1]))),
            voters=voters,
            kinds=model.kinds_of(row) if row >= 0 else [],
        )
        decisions.append(decision)
    return decisions


def _rank_candidates(
    predictor: NamePredictor, neighbours: VotingNeighbours, top_categories: Sequence[str]
) -> list[list[Candidate]]:
    """Returns the MAX_CANDIDATES best categories of each title, highest score first.

    The list of a title without a prediction is empty. ``top_categories`` are the predicted categories, which
    come first even if another category has an equal score.
    """
    names, labels = predictor.candidates.names, predictor.candidates.labels
    support = predictor.candidates.support(neighbours)
    votes = count_votes(neighbours.ids, neighbours.cosines, labels, len(names))
    scores = votes if support is None else score_labels(votes, support)
    candidates: list[list[Candidate]] = []
    for title, top_category in enumerate(top_categories):
        best = [names[column] for column in np.argsort(-scores[title], kind="stable")[:MAX_CANDIDATES]]
        ranking = [*dict.fromkeys([top_category, *best])][:MAX_CANDIDATES] if top_category else []
        columns = [names.index(name) for name in ranking]
        candidates.append(
            [
                Candidate(
                    category=names[column],
                    score=round(float(scores[title, column]), 4),
                    vote=round(float(votes[title, column]), 4),
                    linear=None if support is None else round(float(support[title, column]), 4),
                )
                for column in columns
            ]
        )
    return candidates
