"""Scores title vectors by k-NN on held-out sets, and the baselines on the same titles by the same code.

Only labelled titles are scored, and only labelled training titles vote. A score that cannot be computed is
``{"n": 0, "reason": "…"}``; its key is not omitted.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from storage.arrays import Ragged
from storage.formats.corpus import OpenCorpus
from storage.formats.vocabulary import SPLITS
from storage.shapes import Float32, Int
from tasks.baselines.predictions import Predictions, vote
from tasks.neighbours.similarity import top_neighbours
from tasks.scoring.bootstrap import count_groups, draw_groups, intervals, number_groups
from tasks.scoring.metrics import Judged, judge, measure

# Held-out sets by protocol, with the names that reports and plots show.
PROTOCOLS = {
    "unseen_title": "unseen titles",
    "unseen_show": "unseen franchises",
    "next_period": "next period",
}
FORMS = ("title_only", "title_context")  # inputs of a predictor: the title without or with its context
# Maximum numbers of scored titles per held-out set, and of training titles that vote and that baselines are
# fitted on. Larger sets are sampled, identically for all predictors: scoring a million titles takes hours.
MAX_SCORED, MAX_TRAINING = 5_000, 200_000
NO_REASONS: Mapping[str, str] = {}
NO_UNSEEN_REASON = "every word of these titles occurs in a training title"


@dataclass(frozen=True, kw_only=True)
class CorpusTitles:
    """All titles of a corpus, placeholders included; every array has one entry per title."""

    split: np.ndarray  # ``train``, one of PROTOCOLS, or a split that is not scored
    labels: Ragged  # ids from 0 to label_count (exclusive)
    label_count: int
    family: np.ndarray  # number of the first content word; titles of a family are resampled together
    oov: np.ndarray  # bool, whether the title has a word that no training title contains

    @staticmethod
    def of(corpus: OpenCorpus) -> "CorpusTitles":
        """Creates the titles of an open Corpus."""
        columns = {name: getattr(corpus, name) for name in ("labels", "family", "oov")}
        return CorpusTitles(
            split=np.array(SPLITS)[corpus.split], label_count=len(corpus.label_names), **columns
        )

    def labelled(self, split: str) -> np.ndarray:
        """Returns the rows of the labelled titles of a split, ascending: a sample if there are too many."""
        rows = np.flatnonzero((self.split == split) & (self.labels.lengths > 0))
        limit = MAX_TRAINING if split == "train" else MAX_SCORED
        if len(rows) > limit:
            rows = np.sort(np.random.default_rng(0).choice(rows, limit, replace=False))
        return rows

    @property
    def used_rows(self) -> np.ndarray:
        """Rows of all labelled titles that are scored, vote or train baselines, ascending."""
        return np.sort(np.concatenate([self.labelled(split) for split in ("train", *PROTOCOLS)]))

    def take(self, rows: np.ndarray) -> "CorpusTitles":
        """Selects titles by row."""
        arrays = {name: getattr(self, name)[rows] for name in ("split", "family", "oov")}
        return CorpusTitles(labels=self.labels.take(rows), label_count=self.label_count, **arrays)


class Resamples(NamedTuple):
    """Bootstrap resamples of the queries of a held-out set."""

    groups: np.ndarray  # (queries,), group of each query, from 0
    counts: np.ndarray  # (resamples, groups), how often a group occurs in a resample

    @staticmethod
    def draw(groups: np.ndarray, resamples: int, rng: np.random.Generator) -> "Resamples":
        """Draws resamples of the queries' groups; none if there are no queries."""
        numbered = number_groups(groups)
        return Resamples(numbered, draw_groups(count_groups(numbered), resamples if len(groups) else 0, rng))

    def score(self, judged: Judged) -> dict[str, object]:
        """Computes the metrics of a predictor and their intervals, in the format of scores.json."""
        return {**measure(judged), "ci95": intervals(judged, *self)}


class HeldOut(NamedTuple):
    """A held-out set of titles in one of FORMS. All predictors are scored on it with the same resamples."""

    form: str
    protocol: str
    reason: str  # why there are no queries; "" if there are some
    queries: np.ndarray  # rows of the labelled titles, ascending
    resamples: Resamples
    is_oov: np.ndarray  # bool (queries,), whether the title has a word that no training title contains
    oov_resamples: Resamples  # of the queries with ``is_oov``


def held_out_sets(
    titles: CorpusTitles, resamples: int, rng: np.random.Generator, reasons: Mapping[str, str] = NO_REASONS
) -> Iterator[HeldOut]:
    """Yields each held-out set in each of FORMS. The order is fixed, so that a seed determines all resamples.

    ``reasons`` has the reason why a form or protocol has no titles.
    """
    has_training = len(titles.labelled("train")) > 0
    for form, protocol in itertools.product(FORMS, PROTOCOLS):
        queries = titles.labelled(protocol)
        absent = reasons.get(form) or ("" if has_training else "no training title holds a label")
        empty = "" if len(queries) else reasons.get(protocol, f"no title of {protocol} holds a label")
        queries = queries[: 0 if absent else None]
        groups, is_oov = titles.family[queries], titles.oov[queries]
        resampled = (Resamples.draw(ids, resamples, rng) for ids in (groups, groups[is_oov]))
        yield HeldOut(form, protocol, absent or empty, queries, next(resampled), is_oov, next(resampled))


class ProtocolScores(NamedTuple):
    """Scores of all predictors, and results of our k-NN for each title."""

    protocols: dict[str, dict[str, dict[str, object]]]  # content of scores.json: scores by protocol and form
    rows: dict[str, np.ndarray]  # columns of queries.parquet, with a row per held-out title and form


def score_title_vectors(
    titles: CorpusTitles,
    vectors: Mapping[str, np.ndarray],
    baselines: Mapping[tuple[str, str], Mapping[str, object]],
    sets: Iterable[HeldOut],
    k: int,
) -> ProtocolScores:
    """Scores our k-NN on every held-out set, and adds the scores of the baselines.

    Args:
        titles: All titles of the corpus.
        vectors: Vectors of all titles by form.
        baselines: Scores of the baselines by (form, protocol).
        sets: Held-out sets.
        k: Number of neighbours that vote.
    """
    protocols: dict[str, dict[str, dict[str, object]]] = {protocol: {} for protocol in PROTOCOLS}
    no_rows = np.zeros(0, dtype=np.int64)
    no_queries = Judged(no_rows > 0, no_rows / 1, no_rows / 1, np.zeros((0, 0), bool), np.zeros((0, 0), bool))
    rows = [_query_rows("", "", no_rows, no_rows, no_queries)]  # fixes the column types if nothing is scored
    training = titles.labelled("train")
    for held_out in sets:
        if held_out.reason:
            protocols[held_out.protocol][held_out.form] = {"n": 0, "reason": held_out.reason}
            continue
        knn = judge_knn(titles, vectors[held_out.form], held_out.queries, training, k)
        unseen: dict[str, object] = {"n": 0, "reason": NO_UNSEEN_REASON}
        if held_out.is_oov.any():
            unseen = held_out.oov_resamples.score(knn.take(held_out.is_oov))
            unseen["n"] = int(held_out.is_oov.sum())
        scores: dict[str, object] = {"knn": held_out.resamples.score(knn), "knn_oov": unseen}
        scores |= baselines[held_out.form, held_out.protocol]
        protocols[held_out.protocol][held_out.form] = {**scores, "n": len(knn)}
        groups = titles.family[held_out.queries]
        rows.append(_query_rows(held_out.form, held_out.protocol, held_out.queries, groups, knn))
    columns = {name: np.concatenate([part[name] for part in rows]) for name in rows[0]}
    return ProtocolScores(protocols, columns)


def judge_knn(
    titles: CorpusTitles, vectors: np.ndarray, queries: np.ndarray, training: np.ndarray, k: int
) -> Judged:
    """Predicts labels by our k-NN and compares them with the true ones, also for the champion in the gate.

    ``queries`` and ``training`` are rows of labelled titles.
    """
    training_labels = titles.labels.take(training)
    frequency = np.bincount(training_labels.values, minlength=titles.label_count)
    predictions = predict_labels(vectors[queries], vectors[training], training_labels, frequency, k)
    return judge(predictions, titles.labels.take(queries), training_labels)


def predict_labels(
    queries: Float32[np.ndarray, "queries dim"],
    base: Float32[np.ndarray, "titles dim"],
    labels: Ragged,
    frequency: Int[np.ndarray, " labels"],
    k: int = 10,
) -> Predictions:
    """Predicts labels by the vote of the k nearest labelled training titles.

    Vectors have unit norm or are zero. A zero vector, of a title without known tokens, has no neighbours; the
    most frequent label is predicted for it.
    """
    if len(base) != len(labels):
        raise ValueError(f"{len(base)} training vectors for {len(labels)} rows of labels; give one per row")
    neighbours, cosines = top_neighbours(queries, base, k)
    return vote(neighbours, cosines, labels, frequency)


def _query_rows(
    form: str, protocol: str, title_ids: np.ndarray, groups: np.ndarray, judged: Judged
) -> dict[str, np.ndarray]:
    constants = {"form": np.full(len(judged), form), "protocol": np.full(len(judged), protocol)}
    measures = {name: getattr(judged, name) for name in ("correct", "precision_at_k", "reciprocal_rank")}
    return {**constants, "title_id": title_ids.astype(np.int64), "group": groups.astype(np.int64), **measures}
