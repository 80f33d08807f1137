"""Builds the evaluation table, which compares a new model with the champion (the served model) by examples.

The table shows, for a sample of the held-out titles, the nearest titles according to each model, and which
model is better. It helps a person to decide about a model that was not promoted automatically.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from tasks.publish.registry.gate import CHAMPION
from tasks.publish.registry.quality import HEADLINE, QueryQualities
from tasks.search.query import Query
from tasks.search.search import SearchError, TitleSearch

MAX_EXAMPLES = 100  # maximum number of titles in the table, spaced evenly over the held-out titles
NEAREST = 5  # number of nearest titles per example


def example_table(
    corpus: Path, qualities: QueryQualities, challenger: Path, champion: Path | None
) -> dict[str, list[object]]:
    """Returns the evaluation table. Titles on which the new model loses most quality come first.

    Args:
        corpus: Folder of tonight's Corpus.
        qualities: Quality of each model on each held-out title of the Corpus.
        challenger: Model folder of the new model (challenger).
        champion: Model folder of the served model (champion); None if the models cannot be compared.

    Returns:
        The columns of the table by name, with one row per title.
    """
    ids, quality = qualities.titles, qualities.challenger[HEADLINE]
    champion_quality = qualities.others[CHAMPION][HEADLINE] if CHAMPION in qualities.others else None
    sample = np.unique(np.linspace(0, len(ids) - 1, min(MAX_EXAMPLES, len(ids))).astype(np.int64))
    gain = quality if champion_quality is None else quality - champion_quality
    sample = sample[np.argsort(gain[sample], kind="stable")]
    rows = pq.read_table(corpus / "titles.parquet", columns=["title", "labels"]).take(ids[sample])
    titles = rows["title"].to_pylist()
    table: dict[str, list[object]] = {
        "title": titles,
        "held_out": qualities.protocols[sample].tolist(),
        "categories": [", ".join(labels) for labels in rows["labels"].to_pylist()],
        "quality": quality[sample].round(3).tolist(),
        "nearest": _nearest_titles(challenger, titles),
    }
    if champion_quality is not None and champion is not None:
        verdicts = np.array(["worse", "same", "better"])[np.sign(gain[sample]).astype(np.int64) + 1]
        table |= {
            "champion_quality": champion_quality[sample].round(3).tolist(),
            "champion_nearest": _nearest_titles(champion, titles),
            "verdict": verdicts.tolist(),
        }
    return table


def _nearest_titles(model: Path, titles: Sequence[str]) -> list[object]:
    """Returns a text per title: its nearest titles with their cosines, or the message of a search error."""
    results = TitleSearch.open(model).similar_many([Query(title) for title in titles], NEAREST)
    return [
        str(result)
        if isinstance(result, SearchError)
        else "; ".join(f"{match.title} ({match.cosine:.2f})" for match in result)
        for result in results
    ]
