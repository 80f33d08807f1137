"""What a person looks at when the gate asks: held-out titles, their nearest titles by tonight's model and by
the champion, and which of the two answers a title better.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from tasks.publish.registry.gate import FORM, Answers
from tasks.search.query import Query
from tasks.search.search import SearchError, TitleSearch

TITLES = 100  # drawn evenly from the held-out ones
NEAREST = 5

Table = dict[str, list[object]]


def example_table(
    corpus: Path, scores: Path, answers: Answers, challenger: Path, champion: Path | None
) -> Table:
    """Columns of a table, a row a held-out title, those that the challenger answers worst first.

    Args:
        corpus, scores: Folders of tonight's artifacts.
        answers: Of both to the queries of ``scores`` (``gate.ask_both``).
        challenger, champion: Model folders; None where nothing is compared.
    """
    rows = pq.read_table(scores / "queries.parquet", columns=["title_id", "form"])
    ids = rows["title_id"].to_numpy()[np.asarray(rows["form"].to_pylist(), dtype=object) == FORM]
    drawn = np.unique(np.linspace(0, len(ids) - 1, min(TITLES, len(ids))).astype(np.int64))
    own = answers.challenger[drawn]
    gain = own if answers.champion is None else own - answers.champion[drawn]
    order = np.argsort(gain, kind="stable")
    drawn, gain, own = drawn[order], gain[order], own[order]
    about = pq.read_table(corpus / "titles.parquet", columns=["title", "labels"]).take(ids[drawn])
    titles = about["title"].to_pylist()
    table: Table = {
        "title": titles,
        "held_out": answers.protocols[drawn].tolist(),
        "categories": [", ".join(labels) for labels in about["labels"].to_pylist()],
        "quality": own.round(3).tolist(),
        "nearest": _nearest(challenger, titles),
    }
    if answers.champion is not None and champion is not None:
        words = np.array(["worse", "same", "better"])[np.sign(gain).astype(np.int64) + 1]
        table |= {
            "champion_quality": answers.champion[drawn].round(3).tolist(),
            "champion_nearest": _nearest(champion, titles),
            "verdict": words.tolist(),
        }
    return table


def _nearest(model: Path, titles: Sequence[str]) -> list[object]:
    """The nearest titles of each, with their cosine, as text."""
    found = TitleSearch.open(model).similar_many([Query(title) for title in titles], NEAREST)
    return [
        str(near)
        if isinstance(near, SearchError)
        else "; ".join(f"{one.title} ({one.cosine:.2f})" for one in near)
        for near in found
    ]
