"""Precision of corrections that spread to other editions of a show, on held-out titles of real guides.

Each held-out title for which the vote is wrong is corrected separately, to its categories in the guide. If
the categories of another held-out title change to those of the correction, the change is correct if they
share a category with the guide. The rule of ``guidespace enrich`` (tasks/enrich/model.py) is compared with
the memory without a condition: the nearest slot, of whatever show.
"""

import datetime
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from benchmarks.claims import Claim, guides
from benchmarks.ingest.enrich import learn
from benchmarks.quality.folds import SALTS, make_folds
from storage.arrays import Ragged
from storage.home.corrections import Correction
from tasks.enrich.model import CategoryModel, VotingNeighbours
from tasks.scoring.confidence import score_votes

GUIDES = "UK1", "FR1", "AU1", "DK1", "US1", "IT1", "PT1"
AT = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
RULES = "nearest slot, an edition of the show", "nearest slot, any show"


def spread(folder: Path) -> Counter[str]:
    """Counts corrections of a model and, by rule, the titles that they change and the correct changes."""
    model = CategoryModel(folder)
    titles = pq.read_table(folder / "titles.parquet", columns=["title"])["title"].to_pylist()
    labelled = np.array([bool(model.labels[row]) for row in model.votes.titles])
    held = model.votes.titles[labelled]
    near = VotingNeighbours(model.votes.neighbours[labelled], model.votes.cosines[labelled])
    named, vectors = [titles[row] for row in held], model.vectors(held)
    names = sorted({label for categories in model.labels for label in categories})
    number = {name: place for place, name in enumerate(names)}
    labels = Ragged.from_rows([sorted(number[label] for label in categories) for categories in model.labels])
    first, _ = score_votes(*near, labels, len(names))
    counts = Counter[str]()
    for place, row in enumerate(held):
        if names[first[place]] in model.labels[row] and first[place] >= 0:
            continue
        show, categories = model.shows[row], tuple(model.labels[row])
        made = Correction(show_key=show, title=titles[row], categories=categories, corrected_at=AT)
        model.corrections = {show: made}
        cosines = vectors @ vectors[place]
        followers = (
            [*model.corrected_editions(named, vectors, near)],
            np.flatnonzero(cosines >= near.cosines[:, 0]),
        )
        counts["corrections"] += 1
        for rule, places in zip(RULES, followers, strict=True):
            others = [held[one] for one in places if one != place]
            counts[rule] += len(others)
            counts[f"{rule}: right"] += sum(bool({*categories} & {*model.labels[other]}) for other in others)
    return counts


def corrector(names: tuple[str, ...] = GUIDES) -> list[Claim]:
    """Measures the titles that change by a correction and the share of correct changes, over all guides."""
    counts = Counter[str]()
    for name in names:
        with tempfile.TemporaryDirectory() as work:
            (fold,) = make_folds(Path(work) / "home", guides(name)[:1], SALTS[:1])
            counts += spread(learn(fold))
    corrections = f"{counts['corrections']:,} corrections in {len(names)} guides"
    claims = []
    for rule, aim in zip(RULES, (0.9, None), strict=True):
        share, better = counts[f"{rule}: right"] / max(1, counts[rule]), "more" if aim else None
        claims.append(Claim(f"{corrections}, {rule}: followed", counts[rule], better=None))
        claims.append(Claim(f"{corrections}, {rule}: right", share, aim=aim, better=better))
    return claims
