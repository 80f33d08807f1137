"""Challenger against champion on today's held-out titles: what the gate decides by."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from tasks.augment.lexicon import Lexicon
from tasks.evaluate.gate import Decision, decide, query_quality
from tasks.evaluate.protocols import Titles, judge_knn
from tasks.preprocess.corpus import open_corpus

FORM = "title_only"


class NotComparable(Exception):
    """The champion cannot embed today's titles; the message says why."""


def decide_between(
    corpus: Path,
    scores: Path,
    champion: Path | None,
    *,
    same_model: bool,
    best_of_last: Sequence[float],
    seed: int,
    resamples: int,
    incomparable: str = "",
    first: bool = True,
) -> Decision:
    """What the gate says of the challenger that these scores belong to.

    Args:
        corpus: Folder of the Corpus.
        scores: Folder of the challenger's Scores.
        champion: Folder of the champion's model, or None.
        same_model: The challenger is the champion.
        best_of_last: Qualities at which the models promoted before, of this lineage, were promoted; oldest first.
        seed: Of the bootstrap.
        resamples: Of the bootstrap.
        incomparable: Why the champion's model cannot be had; empty where it can, or where there is no champion yet.
        first: No model of this lineage was promoted before.
    """
    queries = pq.read_table(scores / "queries.parquet").to_pandas()
    queries = queries[queries["form"] == FORM]
    own = query_quality(queries["correct"].to_numpy(dtype=bool), queries["precision_at_10"].to_numpy())
    theirs = None
    if champion is not None and not same_model:
        try:
            theirs = _champions_quality(corpus, champion, queries["title_id"].to_numpy(), votes_of(scores))
        except NotComparable as error:
            incomparable = str(error)
    return decide(
        own, theirs, protocols=queries["protocol"].to_numpy(dtype=str), groups=queries["group"].to_numpy(), best_of_last=best_of_last,
        rng=np.random.default_rng(seed), same_model=same_model, incomparable=incomparable, first=first, resamples=resamples,
    )  # fmt: skip


def votes_of(scores: Path) -> int:
    """How many neighbours voted on each title of these scores (those of an older version: ten)."""
    return int(json.loads((scores / "artifact.json").read_text())["details"].get("k", 10))


def lineage(salt: str, sources: Sequence[str]) -> str:
    """Name of the lineage of scores: another salt or other feeds make numbers that cannot be compared over time."""
    return hashlib.sha256("\n".join([salt, *sorted(set(sources))]).encode()).hexdigest()[:16]


def _champions_quality(corpus: Path, champion: Path, rows: np.ndarray, k: int) -> np.ndarray:
    """Quality of each held-out title under the champion, whose own tokenizer embeds today's titles; as many neighbours vote as for the challenger."""
    opened = open_corpus(corpus)
    about = pq.read_table(corpus / "titles.parquet", columns=["raw_title", "split"])
    titles = Titles(split=np.array(about["split"].to_pylist()), labels=opened.labels, label_count=len(opened.label_names), show=opened.show, family=opened.family, oov=opened.oov)
    try:
        vectors = Lexicon.open(champion).embed(about["raw_title"].to_pylist())
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise NotComparable(f"the champion's model in {champion} cannot be read by this version ({type(error).__name__}: {error})") from error
    judged = judge_knn(titles, vectors, rows, titles.labelled("train"), k)
    precision = np.zeros(len(rows)) if judged.precision_at_10 is None else judged.precision_at_10
    return query_quality(judged.correct, precision)
