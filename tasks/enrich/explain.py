"""Explains from which source the categories of a title come.

The sources, in order of precedence, are: a user's correction, the guide, a correction of the most similar
edition of the same show, and the predictor. The prediction is always included, with both of its parts: the
votes of the nearest training titles, and the support by the linear part.
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

CANDIDATES = 5  # categories that an explanation shows


@dataclass(frozen=True, kw_only=True)
class Voter:
    """Training title that votes on the categories of a similar title."""

    title: str
    cosine: float
    categories: list[str]


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Category with its score, which combines two parts (tasks/predictor/prediction.py); all from 0 to 1."""

    category: str
    score: float
    vote: float  # sum of the cosines of the neighbours that have the category, divided by k
    linear: float | None  # support by the linear part; None for models of older versions


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Categories of a title, with their source and the votes of the nearest training titles."""

    title: str
    categories: list[str]
    by: (
        Literal["correction", "guide", "edition", "prediction"] | None
    )  # source; None: no source has categories
    guide: list[str]  # categories of the title in the model; empty if they equal the correction
    predicted: str  # category with the highest score; empty without votes
    confidence: float | None  # probability that ``predicted`` is correct
    unsure: str  # why ``confidence`` is None; "" if it is not
    candidates: list[Candidate]  # categories with the highest scores, ``predicted`` first
    votes: dict[str, int]  # number of votes by category: ``predicted`` first, then in descending order
    voters: list[Voter]  # training titles that vote, nearest first
    kinds: list[KindPrediction]  # kinds of the title in the model: film, series, …


def decide(model: CategoryModel, title: str) -> Decision:
    """Decides the categories of a title. A title that the model lacks is embedded from its text alone.

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
    """Decides the categories of several titles; a title that fails has an error instead of a decision."""
    shows = [parse_title(title).show_key for title in titles]
    rows, queries = model.embed_texts(titles)
    neighbours = model.neighbours(queries, rows)
    languages = np.where(rows >= 0, model.languages[rows], "")
    top_names, _, confidence = predictor.predict_all(neighbours, languages)
    candidates = _candidates(predictor, neighbours, top_names)
    editions = model.corrected_editions(titles, queries.vectors, neighbours)
    decisions: list[Decision | SearchError] = []
    for position, (title, row, top_category) in enumerate(zip(titles, rows.tolist(), top_names, strict=True)):
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
        counts = Counter(category for voter in voters for category in voter.categories)
        decision = Decision(
            title=model.titles[row] if row >= 0 else title,
            categories=categories,
            by=by,
            guide=guide,
            predicted=top_category,
            confidence=round(float(confidence[position]), 4)
            if top_category and not predictor.unsure
            else None,
            unsure=predictor.unsure,
            candidates=candidates[position],
            votes=dict(sorted(counts.items(), key=lambda pair: (pair[0] != top_category, -pair[1]))),
            voters=voters,
            kinds=model.kinds_of(row) if row >= 0 else [],
        )
        decisions.append(decision)
    return decisions


def _candidates(
    predictor: NamePredictor, neighbours: VotingNeighbours, top_names: Sequence[str]
) -> list[list[Candidate]]:
    """Returns up to CANDIDATES categories of each title, highest score first; [] without a prediction."""
    names, labels = predictor.candidates.names, predictor.candidates.labels
    support = predictor.candidates.support(neighbours)
    votes = count_votes(neighbours.ids, neighbours.cosines, labels, len(names))
    scores = votes if support is None else score_labels(votes, support)
    candidates: list[list[Candidate]] = []
    for title, top in enumerate(top_names):
        order = [names[column] for column in np.argsort(-scores[title], kind="stable")[:CANDIDATES].tolist()]
        order = [*dict.fromkeys([top, *order])][:CANDIDATES] if top else []
        columns = [names.index(name) for name in order]
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
