"""Defines the held-out sets of titles, and scores predictions of the categories (labels) of their titles.

A protocol is the name of a held-out set. Only titles with labels are scored, and only training titles with
labels vote. Scores that cannot be computed are replaced by ``{"n": 0, "reason": "…"}``.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from storage.arrays import Ragged
from storage.formats.corpus import OpenCorpus
from storage.formats.vocabulary import SPLITS
from storage.shapes import Float32, Int
from tasks.baselines.predictions import vote
from tasks.neighbours.similarity import top_neighbours
from tasks.predictor.linear_part import FORMS
from tasks.predictor.prediction import predict
from tasks.scoring.bootstrap import count_groups, draw_groups, intervals, number_groups
from tasks.scoring.metrics import Judged, judge, measure

PROTOCOLS = {  # held-out sets, with the names that reports and plots show
    "unseen_title": "unseen titles",
    "unseen_show": "unseen franchises",
    "next_period": "next period",
}
# Maximum number of scored titles of a held-out set, and of training titles that vote and to which baselines
# are fitted. Of a larger set, all predictors use one sample, because a million titles take hours.
MAX_SCORED, MAX_TRAINING = 5_000, 200_000
NO_UNSEEN_REASON = "every word of these titles occurs in a training title"


def sample_rows(rows: Int[np.ndarray, " any"], limit: int) -> Int[np.ndarray, " sample"]:
    """Returns all rows or, if there are more than ``limit``, a sample of ``limit`` rows in ascending order.

    The sample is random, but equal calls return equal samples.
    """
    if len(rows) <= limit:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, limit, replace=False))


@dataclass(frozen=True, kw_only=True)
class CorpusTitles:
    """All titles of a corpus, placeholders included; every array has one entry per title."""

    split: np.ndarray  # name of the split of each title: "train", one of PROTOCOLS, "placeholder", …
    labels: Ragged  # label ids of each title, from 0 to label_count (exclusive)
    label_count: int  # number of label ids
    family: np.ndarray  # number of the first content word; the bootstrap resamples families (franchises)
    oov: np.ndarray  # bool, whether the title has a word that no training title contains
    rare: np.ndarray  # bool, whether all categories of the title are too rare to be labels

    @staticmethod
    def from_corpus(corpus: OpenCorpus) -> "CorpusTitles":
        """Creates the titles from an open Corpus."""
        columns = {name: getattr(corpus, name) for name in ("labels", "family", "oov", "rare")}
        return CorpusTitles(
            split=np.array(SPLITS)[corpus.split], label_count=len(corpus.label_names), **columns
        )

    def labelled(self, split: str) -> np.ndarray:
        """Returns the row numbers, ascending, of the labelled titles of a split.

        If the split "train" has more than MAX_TRAINING labelled titles, or a held-out set more than
        MAX_SCORED, a sample of this size is returned.
        """
        rows = np.flatnonzero((self.split == split) & (self.labels.lengths > 0))
        limit = MAX_TRAINING if split == "train" else MAX_SCORED
        return sample_rows(rows, limit)

    @cached_property
    def training(self) -> np.ndarray:
        """Row numbers, ascending, of the labelled training titles; a sample if there are many."""
        return self.labelled("train")

    @cached_property
    def training_labels(self) -> Ragged:
        """Label ids of the titles ``training``."""
        return self.labels.take(self.training)

    @cached_property
    def label_counts(self) -> np.ndarray:
        """Number of the titles ``training`` with each label, int64 (labels,)."""
        return np.bincount(self.training_labels.values, minlength=self.label_count)

    @property
    def held_out(self) -> np.ndarray:
        """Row numbers, ascending, of all held-out titles that have labels or rare categories."""
        return np.flatnonzero(np.isin(self.split, [*PROTOCOLS]) & ((self.labels.lengths > 0) | self.rare))

    @property
    def used_rows(self) -> np.ndarray:
        """Row numbers, ascending, of the training and held-out titles that are used for scores."""
        return np.sort(np.concatenate([self.labelled(split) for split in ("train", *PROTOCOLS)]))

    def take(self, rows: np.ndarray) -> "CorpusTitles":
        """Returns the titles with the row numbers ``rows``."""
        arrays = {name: getattr(self, name)[rows] for name in ("split", "family", "oov", "rare")}
        return CorpusTitles(labels=self.labels.take(rows), label_count=self.label_count, **arrays)


class Resamples(NamedTuple):
    """Bootstrap resamples of the queries (titles) of a held-out set."""

    groups: np.ndarray  # int64 (queries,), group number of each query
    counts: np.ndarray  # float32 (resamples, groups), how often each resample contains each group

    @staticmethod
    def draw(groups: np.ndarray, resamples: int, rng: np.random.Generator) -> "Resamples":
        """Draws bootstrap resamples. Queries with equal values in ``groups`` are in the same group."""
        group_numbers = number_groups(groups)
        return Resamples(
            group_numbers, draw_groups(count_groups(group_numbers), resamples if len(groups) else 0, rng)
        )

    def score(self, judged: Judged) -> dict[str, object]:
        """Computes the metrics of a predictor and their 95 % intervals (key ``ci95``), for scores.json."""
        return {**measure(judged), "ci95": intervals(judged, *self)}


class HeldOut(NamedTuple):
    """Held-out set of titles (queries), on which all predictors are scored with the same resamples."""

    form: str  # input of the predictors, one of FORMS
    protocol: str  # name of the held-out set, one of PROTOCOLS
    reason: str  # why there are no queries; "" if there are queries
    queries: np.ndarray  # row numbers of the titles with labels, ascending
    resamples: Resamples  # bootstrap resamples of all queries
    is_oov: np.ndarray  # bool (queries,), whether the title has a word that no training title contains
    oov_resamples: Resamples  # bootstrap resamples of the queries with ``is_oov``


def held_out_sets(
    titles: CorpusTitles, resamples: int, rng: np.random.Generator, reasons: Mapping[str, str]
) -> Iterator[HeldOut]:
    """Yields each held-out set twice: for titles alone, and for titles with airing context (FORMS).

    The order is fixed, so that the seed of ``rng`` determines all resamples.

    Args:
        titles: All titles of the corpus.
        resamples: Number of bootstrap resamples.
        rng: Random generator of the bootstrap.
        reasons: Why a form or protocol has no titles, by name of the form or protocol.
    """
    has_training = len(titles.training) > 0
    for form, protocol in itertools.product(FORMS, PROTOCOLS):
        queries = titles.labelled(protocol)
        form_reason = reasons.get(form) or ("" if has_training else "no training title has a label")
        empty_reason = "" if len(queries) else reasons.get(protocol, f"no title of {protocol} has a label")
        queries = queries[: 0 if form_reason else None]
        families, is_oov = titles.family[queries], titles.oov[queries]
        all_resamples = Resamples.draw(families, resamples, rng)
        oov_resamples = Resamples.draw(families[is_oov], resamples, rng)
        reason = form_reason or empty_reason
        yield HeldOut(form, protocol, reason, queries, all_resamples, is_oov, oov_resamples)


class ProtocolScores(NamedTuple):
    """Scores of all predictors, and the results of k-NN and of the predictor for each held-out title."""

    protocols: dict[str, dict[str, dict[str, object]]]  # scores by protocol and form, for scores.json
    rows: dict[str, np.ndarray]  # columns of queries.parquet, with one row per held-out title and form


def score_title_vectors(
    titles: CorpusTitles,
    vectors: Mapping[str, np.ndarray],
    support: Callable[[np.ndarray, str], np.ndarray],
    baselines: Mapping[tuple[str, str], Mapping[str, object]],
    sets: Iterable[HeldOut],
    k: int,
) -> ProtocolScores:
    """Scores the predictor and the k-NN on every held-out set, and adds the scores of the baselines.

    Args:
        titles: All titles of the corpus.
        vectors: Vectors of all titles by form.
        support: Function that returns the support of each label (tasks/predictor) for titles, from their row
            numbers and the form.
        baselines: Scores of the baselines by (form, protocol) and name of the baseline.
        sets: Held-out sets.
        k: Number of neighbours that vote.
    """
    protocols: dict[str, dict[str, dict[str, object]]] = {protocol: {} for protocol in PROTOCOLS}
    no_ids, no_labels = np.zeros(0, dtype=np.int64), np.zeros((0, 0), bool)
    no_queries = Judged(no_ids > 0, no_ids / 1, no_ids / 1, no_labels, no_labels)
    # An empty table defines the types of the columns, in case that no title is scored.
    tables = [_query_columns("", "", no_ids, no_ids, no_queries, no_queries)]
    training_labels, label_counts = titles.training_labels, titles.label_counts
    for held_out in sets:
        if held_out.reason:
            protocols[held_out.protocol][held_out.form] = {"n": 0, "reason": held_out.reason}
            continue
        form_vectors, queries = vectors[held_out.form], held_out.queries
        truth = titles.labels.take(queries)
        neighbours, cosines = top_neighbours(form_vectors[queries], form_vectors[titles.training], k)
        knn = judge(vote(neighbours, cosines, training_labels, label_counts), truth, training_labels)
        query_support = support(queries, held_out.form)
        predictions = predict(neighbours, cosines, training_labels, label_counts, query_support)
        predictor = judge(predictions, truth, training_labels)
        oov_scores: dict[str, object] = {"n": 0, "reason": NO_UNSEEN_REASON}
        if held_out.is_oov.any():
            oov_scores = held_out.oov_resamples.score(knn.take(held_out.is_oov))
            oov_scores["n"] = int(held_out.is_oov.sum())
        protocols[held_out.protocol][held_out.form] = {
            "predictor": held_out.resamples.score(predictor),
            "knn": held_out.resamples.score(knn),
            "knn_oov": oov_scores,
            **baselines[held_out.form, held_out.protocol],
            "n": len(knn),
        }
        families = titles.family[queries]
        tables.append(_query_columns(held_out.form, held_out.protocol, queries, families, knn, predictor))
    columns = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    return ProtocolScores(protocols, columns)


def score_knn(
    titles: CorpusTitles, vectors: Float32[np.ndarray, "titles dim"], queries: np.ndarray, k: int
) -> Judged:
    """Predicts the labels of held-out titles by k-NN, and compares them with the true labels.

    A title with a zero vector has no neighbours and gets the most frequent label.

    Args:
        titles: All titles of the corpus.
        vectors: Vectors of the titles, with unit norm or zero.
        queries: Row numbers of the held-out titles, which must have labels.
        k: Number of neighbours that vote.
    """
    neighbours, cosines = top_neighbours(vectors[queries], vectors[titles.training], k)
    predictions = vote(neighbours, cosines, titles.training_labels, titles.label_counts)
    return judge(predictions, titles.labels.take(queries), titles.training_labels)


def _query_columns(
    form: str, protocol: str, title_ids: np.ndarray, families: np.ndarray, knn: Judged, predictor: Judged
) -> dict[str, np.ndarray]:
    """Returns the columns of queries.parquet for one held-out set.

    ``knn`` and ``predictor`` are the results of the k-NN and of the predictor for the same titles.
    """
    return {
        "form": np.full(len(knn), form),
        "protocol": np.full(len(knn), protocol),
        "title_id": title_ids.astype(np.int64),
        "group": families.astype(np.int64),
        **{name: getattr(knn, name) for name in ("correct", "precision_at_k", "reciprocal_rank")},
        "predictor_correct": predictor.correct,
    }
