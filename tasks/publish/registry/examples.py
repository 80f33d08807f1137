"""Builds the evaluation table: for held-out titles, the nearest titles by both models and the better model.

With this table, a person can decide about a model that the gate did not promote.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from tasks.publish.registry.gate import FORM, QueryQualities
from tasks.search.query import Query
from tasks.search.search import SearchError, TitleSearch

TITLES = 100  # maximum number of titles in the table, spaced evenly over the held-out titles
NEAREST = 5


def example_table(
    corpus: Path, scores: Path, answers: QueryQualities, challenger: Path, champion: Path | None
) -> dict[str, list[object]]:
    """Returns the columns of a table with one row per title, sorted by the gain of the challenger, ascending.

    Args:
        corpus: Folder of tonight's Corpus.
        scores: Folder of tonight's Scores.
        answers: Quality of each model on each query of ``scores``, from ``gate.score_models``.
        challenger: Model folder of the challenger.
        champion: Model folder of the champion; None if there is none to compare with.
    """
    rows = pq.read_table(scores / "queries.parquet", columns=["title_id", "form"])
    ids = rows["title_id"].to_numpy()[np.asarray(rows["form"].to_pylist(), dtype=object) == FORM]
    drawn = np.unique(np.linspace(0, len(ids) - 1, min(TITLES, len(ids))).astype(np.int64))
    gain = answers.challenger if answers.champion is None else answers.challenger - answers.champion
    drawn = drawn[np.argsort(gain[drawn], kind="stable")]
    rows = pq.read_table(corpus / "titles.parquet", columns=["title", "labels"]).take(ids[drawn])
    titles = rows["title"].to_pylist()
    table: dict[str, list[object]] = {
        "title": titles,
        "held_out": answers.protocols[drawn].tolist(),
        "categories": [", ".join(labels) for labels in rows["labels"].to_pylist()],
        "quality": answers.challenger[drawn].round(3).tolist(),
        "nearest": _nearest(challenger, titles),
    }
    if answers.champion is not None and champion is not None:
        words = np.array(["worse", "same", "better"])[np.sign(gain[drawn]).astype(np.int64) + 1]
        table |= {
            "champion_quality": answers.champion[drawn].round(3).tolist(),
            "champion_nearest": _nearest(champion, titles),
            "verdict": words.tolist(),
        }
    return table


def _nearest(model: Path, titles: Sequence[str]) -> list[object]:
    """Returns the nearest titles of each title, with their cosines, as text."""
    results = TitleSearch.open(model).similar_many([Query(title) for title in titles], NEAREST)
    return [
        str(result)
        if isinstance(result, SearchError)
        else "; ".join(f"{match.title} ({match.cosine:.2f})" for match in result)
        for result in results
    ]
