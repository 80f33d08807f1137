"""The scores of a space: every held-out set, our k-NN and the baselines, by the same code on the same titles.

Only titles with a label are scored, and only labelled training titles vote. What cannot be scored is
``{"n": 0, "reason": "…"}``, never a missing key.
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

PROTOCOLS = ("unseen_title", "unseen_show", "next_period")
FORMS = ("title_only", "title_context")
# Drawn of more, the same for all predictors: held-out titles of a set that are scored, and training titles
# that vote and that baselines are fitted to. Scoring a million titles would take hours without.
MOST_SCORED, MOST_TRAINING = 5_000, 200_000
NO_REASONS: Mapping[str, str] = {}
NO_UNSEEN = "every word of these titles stands in a training title"


@dataclass(frozen=True, kw_only=True)
class Titles:
    """The titles of a corpus; every array has one entry per title, placeholders included."""

    split: np.ndarray  # ``train``, one of PROTOCOLS, or another word
    labels: Ragged  # ids from 0 to label_count (exclusive)
    label_count: int
    show: np.ndarray  # show-key id: what is resampled
    family: np.ndarray  # first-content-word id: what is resampled on unseen_show
    oov: np.ndarray  # bool, holds a word that no training title holds

    @staticmethod
    def of(corpus: OpenCorpus) -> "Titles":
        """The titles of an open Corpus."""
        same = {name: getattr(corpus, name) for name in ("labels", "show", "family", "oov")}
        return Titles(split=np.array(SPLITS)[corpus.split], label_count=len(corpus.label_names), **same)

    def labelled(self, split: str) -> np.ndarray:
        """Rows of the labelled titles of a split, rising; of many, MOST_TRAINING or MOST_SCORED."""
        rows = np.flatnonzero((self.split == split) & (self.labels.lengths > 0))
        most = MOST_TRAINING if split == "train" else MOST_SCORED
        if len(rows) > most:
            rows = np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
        return rows

    @property
    def used(self) -> np.ndarray:
        """Rows, rising, of the titles that are scored, vote or are learnt from."""
        return np.sort(np.concatenate([self.labelled(split) for split in ("train", *PROTOCOLS)]))

    def take(self, rows: np.ndarray) -> "Titles":
        """Some titles, by row."""
        arrays = {name: getattr(self, name)[rows] for name in ("split", "show", "family", "oov")}
        return Titles(labels=self.labels.take(rows), label_count=self.label_count, **arrays)

    def groups(self, protocol: str) -> np.ndarray:
        """What is resampled on a protocol, one id per title."""
        return self.family if protocol == "unseen_show" else self.show


class Resamples(NamedTuple):
    """Groups of some queries, numbered from 0, and how often each counts in each resample."""

    groups: np.ndarray  # (queries,)
    counts: np.ndarray  # (resamples, groups)

    @staticmethod
    def draw(groups: np.ndarray, resamples: int, rng: np.random.Generator) -> "Resamples":
        """Resamples of groups; no query, no draw."""
        numbered = number_groups(groups)
        return Resamples(numbered, draw_groups(count_groups(numbered), resamples if len(groups) else 0, rng))

    def score(self, judged: Judged) -> dict[str, object]:
        """The scores of a predictor on these queries, as scores.json holds them."""
        return {**measure(judged), "ci95": intervals(judged, *self)}


class HeldOut(NamedTuple):
    """A held-out set in one form; all predictors are asked about it and get the same resamples."""

    form: str
    protocol: str
    reason: str  # why there is no query, or ""
    queries: np.ndarray  # rows of the titles with a label, rising
    drawn: Resamples
    is_oov: np.ndarray  # bool (queries,)
    drawn_oov: Resamples  # of those queries alone


def held_out_sets(
    titles: Titles, resamples: int, rng: np.random.Generator, reasons: Mapping[str, str] = NO_REASONS
) -> Iterator[HeldOut]:
    """Every held-out set in every form, in one order: one seed gives every predictor the same resamples.

    ``reasons``, by name: why a form is not there, and why a protocol holds no title.
    """
    trains = len(titles.labelled("train")) > 0
    for form, protocol in itertools.product(FORMS, PROTOCOLS):
        queries = titles.labelled(protocol)
        absent = reasons.get(form) or ("" if trains else "no training title holds a label")
        empty = "" if len(queries) else reasons.get(protocol, f"no title of {protocol} holds a label")
        queries = queries[: 0 if absent else None]
        groups, is_oov = titles.groups(protocol)[queries], titles.oov[queries]
        drawn = (Resamples.draw(own, resamples, rng) for own in (groups, groups[is_oov]))
        yield HeldOut(form, protocol, absent or empty, queries, next(drawn), is_oov, next(drawn))


class ProtocolScores(NamedTuple):
    """The results."""

    protocols: dict[str, dict[str, dict[str, object]]]  # of scores.json: protocol to form to scores
    rows: dict[str, np.ndarray]  # columns of queries.parquet, a row a held-out title of our k-NN


def score_space(
    titles: Titles,
    vectors: Mapping[str, np.ndarray],
    baselines: Mapping[tuple[str, str], Mapping[str, object]],
    sets: Iterable[HeldOut],
    k: int,
) -> ProtocolScores:
    """Scores of our k-NN on every held-out set, beside those of the baselines by (form, protocol)."""
    protocols: dict[str, dict[str, dict[str, object]]] = {protocol: {} for protocol in PROTOCOLS}
    none = np.zeros(0, dtype=np.int64)
    nobody = Judged(none > 0, none / 1, none / 1, np.zeros((0, 0), bool), np.zeros((0, 0), bool))
    rows = [_query_rows("", "", none, none, nobody)]  # its types hold where nothing is scored
    training = titles.labelled("train")
    for own in sets:
        if own.reason:
            protocols[own.protocol][own.form] = {"n": 0, "reason": own.reason}
            continue
        knn = judge_knn(titles, vectors[own.form], own.queries, training, k)
        unseen: dict[str, object] = {"n": 0, "reason": NO_UNSEEN}
        if own.is_oov.any():
            unseen = {**own.drawn_oov.score(knn.take(own.is_oov)), "n": int(own.is_oov.sum())}
        scores = {"knn": own.drawn.score(knn), "knn_oov": unseen}
        protocols[own.protocol][own.form] = {**scores, **baselines[own.form, own.protocol], "n": len(knn)}
        groups = titles.groups(own.protocol)[own.queries]
        rows.append(_query_rows(own.form, own.protocol, own.queries, groups, knn))
    return ProtocolScores(protocols, {name: np.concatenate([own[name] for own in rows]) for name in rows[0]})


def judge_knn(
    titles: Titles, vectors: np.ndarray, queries: np.ndarray, training: np.ndarray, k: int
) -> Judged:
    """Our k-NN on rows of labelled titles; the gate judges the champion's vectors by it too."""
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
    """The vote of each query's k nearest labelled training titles; vectors have unit norm or are zero.

    A zero query (no known token) has no neighbours and gets the majority class: it is scored, not left out.
    """
    if len(base) != len(labels):
        raise ValueError(f"{len(base)} training vectors for {len(labels)} rows of labels; give one per row")
    neighbours, cosines = top_neighbours(queries, base, k)
    return vote(neighbours, cosines, labels, frequency)


def _query_rows(
    form: str, protocol: str, title_ids: np.ndarray, groups: np.ndarray, judged: Judged
) -> dict[str, np.ndarray]:
    same = {name: np.full(len(judged), value) for name, value in (("form", form), ("protocol", protocol))}
    own = {name: getattr(judged, name) for name in ("correct", "precision_at_k", "reciprocal_rank")}
    return {**same, "title_id": title_ids.astype(np.int64), "group": groups.astype(np.int64), **own}
