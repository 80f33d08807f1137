"""The scores of a space: every held-out set, our k-NN and the baselines, by the same code on the same titles.

Only titles with a label are scored, and only labelled training titles vote. Each baseline is fitted once and
asked about every held-out set. What cannot be scored is ``{"n": 0, "reason": "…"}``, never a missing key.
"""

import itertools
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from storage.arrays import Ragged
from storage.artifacts import Progress
from storage.formats.corpus import OpenCorpus
from storage.formats.vocabulary import SPLITS
from storage.shapes import Float32, Int
from tasks.baselines import Baseline
from tasks.baselines.inputs import NoSentenceVectors, TitleInputs
from tasks.baselines.predictions import LabelledTitles, Predictions, vote
from tasks.neighbours.similarity import top_neighbours
from tasks.scoring.bootstrap import count_groups, draw_groups, intervals, number_groups
from tasks.scoring.metrics import Judged, judge, measure

PROTOCOLS = ("unseen_title", "unseen_show", "next_period")
FORMS = ("title_only", "title_context")
# Drawn of more, the same for all predictors: held-out titles of a set that are scored, and training titles
# that vote and that baselines are fitted to. Scoring a million titles would take hours without.
MOST_SCORED, MOST_TRAINING = 5_000, 200_000
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

    def groups(self, protocol: str) -> np.ndarray:
        """What is resampled on a protocol, one id per title."""
        return self.family if protocol == "unseen_show" else self.show


class Form(NamedTuple):
    """What is known of each title, with or without context: inputs of the baselines, vectors for our k-NN."""

    inputs: TitleInputs
    vectors: np.ndarray


class ProtocolScores(NamedTuple):
    """The results."""

    protocols: dict[str, dict[str, dict[str, object]]]  # of scores.json: protocol to form to scores
    rows: dict[str, np.ndarray]  # columns of queries.parquet, a row a held-out title of our k-NN


def score_titles(
    titles: Titles,
    forms: Mapping[str, Form],
    baselines: Sequence[Baseline],
    *,
    k: int,
    resamples: int,
    rng: np.random.Generator,
    reasons: Mapping[str, str],
) -> Generator[Progress, None, ProtocolScores]:
    """Scores every held-out set in every form; the generator's value is the result.

    ``forms`` by name, of FORMS; ``reasons``, by name: why a form is absent or a protocol holds no title.
    """
    protocols: dict[str, dict[str, dict[str, object]]] = {protocol: {} for protocol in PROTOCOLS}
    none = np.zeros(0, dtype=np.int64)
    nobody = Judged(none > 0, none / 1, none / 1, np.zeros((0, 0), bool), np.zeros((0, 0), bool))
    rows = [_query_rows("", "", none, none, nobody)]  # its types hold where nothing is scored
    training = titles.labelled("train")
    training_labels = titles.labels.take(training)
    steps, total = itertools.count(1), len(forms) * (len(baselines) + len(PROTOCOLS))
    for name in FORMS:
        form, shown = forms.get(name), name.replace("_", " ")
        if form is None or not len(training):
            absent = reasons.get(name, f"{name} is not built")
            reason = absent if form is None else "no training title holds a label"
            for protocol in PROTOCOLS:
                protocols[protocol][name] = {"n": 0, "reason": reason}
            continue
        known = LabelledTitles(form.inputs.take(training), training_labels, titles.label_count)
        fitted, left_out = {}, {}
        for baseline in baselines:
            began = time.perf_counter()
            try:
                fitted[baseline.name] = baseline.fit(known)
                seconds = time.perf_counter() - began
                note = f"{shown}: {baseline.name} fitted on {len(training)} titles in {seconds:.1f} s"
            except NoSentenceVectors as missing:
                left_out[baseline.name] = {"n": 0, "reason": str(missing)}
                note = f"{shown}: {baseline.name} left out: {missing}"
            yield Progress(step=next(steps), total=total, note=note)
        for protocol in PROTOCOLS:
            queries = titles.labelled(protocol)
            if not len(queries):
                reason = reasons.get(protocol, f"no title of {protocol} holds a label")
                protocols[protocol][name] = {"n": 0, "reason": reason}
                yield Progress(step=next(steps), total=total, note=f"{shown}, {protocol}: {reason}")
                continue
            knn = judge_knn(titles, form.vectors, queries, training, k)
            labels, asked = titles.labels.take(queries), form.inputs.take(queries)
            answers = {rival: predictor.predict(asked) for rival, predictor in fitted.items()}
            rivals = {rival: judge(own, labels, training_labels) for rival, own in answers.items()}
            groups, oov = titles.groups(protocol)[queries], titles.oov[queries]
            protocols[protocol][name] = _score(knn, rivals, groups, oov, resamples, rng) | left_out
            rows.append(_query_rows(name, protocol, queries, groups, knn))
            note = f"{shown}, {protocol}: {len(queries)} titles scored"
            yield Progress(step=next(steps), total=total, note=note)
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


def _score(
    knn: Judged,
    rivals: Mapping[str, Judged],
    groups: np.ndarray,
    oov: np.ndarray,
    resamples: int,
    rng: np.random.Generator,
) -> dict[str, object]:
    """The scores of one held-out set in one form, as scores.json holds them."""

    def resampled(groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        numbered = number_groups(groups)
        return numbered, draw_groups(count_groups(numbered), resamples, rng)

    def scored(judged: Judged, numbered: np.ndarray, counts: np.ndarray) -> dict[str, object]:
        return {**measure(judged), "ci95": intervals(judged, numbered, counts)}

    drawn = resampled(groups)  # the same for all predictors
    scores: dict[str, object] = {"knn": scored(knn, *drawn), "knn_oov": {"n": 0, "reason": NO_UNSEEN}}
    if oov.any():
        scores["knn_oov"] = {**scored(knn.take(oov), *resampled(groups[oov])), "n": int(oov.sum())}
    return {**scores, **{name: scored(judged, *drawn) for name, judged in rivals.items()}, "n": len(knn)}


def _query_rows(
    form: str, protocol: str, title_ids: np.ndarray, groups: np.ndarray, judged: Judged
) -> dict[str, np.ndarray]:
    same = {name: np.full(len(judged), value) for name, value in (("form", form), ("protocol", protocol))}
    own = {name: getattr(judged, name) for name in ("correct", "precision_at_k", "reciprocal_rank")}
    return {**same, "title_id": title_ids.astype(np.int64), "group": groups.astype(np.int64), **own}
