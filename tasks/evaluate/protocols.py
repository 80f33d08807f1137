"""The scores of a space: every held-out set, our k-NN and its rivals, by the same code on the same titles.

Only titles with a label are scored, and only labelled training titles vote. Each baseline is fitted once and asked
about every held-out set. What cannot be scored is ``{"n": 0, "reason": "…"}``, never a missing key.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from storage.arrays import Ragged
from storage.artifacts import Progress
from tasks.baselines.predictions import LabelledTitles, Predictor
from tasks.evaluate.bootstrap import count_groups, draw_groups, intervals, number_groups
from tasks.evaluate.knn import predict_labels
from tasks.evaluate.metrics import Judged, judge, measure
from tasks.evaluate.settings import EvaluateSettings

PROTOCOLS = ("unseen_title", "unseen_show", "next_period")
FORMS = ("title_only", "title_context")
NO_UNSEEN = "every word of these titles stands in a training title"


@dataclass(frozen=True, kw_only=True)
class Titles:
    """The titles of a corpus, a row each; placeholders may be among them, they are in no set that is read.

    Attributes:
        split: ``train``, ``unseen_title``, ``unseen_show``, ``next_period`` or another word, shape (titles,).
        labels: Label ids.
        label_count: Ids run from 0 to this, not included.
        show: Show-key id, shape (titles,): what is resampled.
        family: First-content-word id, shape (titles,): what is resampled on unseen_show.
        oov: bool, shape (titles,): holds a word that no training title holds.
    """

    split: np.ndarray
    labels: Ragged
    label_count: int
    show: np.ndarray
    family: np.ndarray
    oov: np.ndarray

    def labelled(self, split: str) -> np.ndarray:
        """Rows of the labelled titles of a split, rising."""
        return np.flatnonzero((self.split == split) & (self.labels.lengths > 0))

    def groups(self, protocol: str) -> np.ndarray:
        """What is resampled on a protocol, shape (titles,)."""
        return self.family if protocol == "unseen_show" else self.show


@dataclass(frozen=True, kw_only=True)
class Form:
    """What is known of each title when it is asked about: the title alone, or with its context.

    Attributes:
        texts: What the baselines read.
        vectors: float32, shape (titles, dim), unit norm or zero: what our k-NN reads.
    """

    texts: Sequence[str]
    vectors: np.ndarray

    def texts_of(self, rows: np.ndarray) -> list[str]:
        """Texts of some titles."""
        return [self.texts[int(row)] for row in rows]


@dataclass(frozen=True)
class ProtocolScores:
    """What came out.

    Attributes:
        protocols: ``protocols`` of scores.json: protocol to form to scores.
        rows: Columns of queries.parquet, a row a held-out title of our k-NN: form, protocol, title_id, group, correct,
            precision_at_10, reciprocal_rank.
    """

    protocols: dict[str, dict[str, dict[str, object]]]
    rows: dict[str, np.ndarray]


def score_titles(
    titles: Titles, forms: Mapping[str, Form], settings: EvaluateSettings, rng: np.random.Generator, reasons: Mapping[str, str]
) -> Generator[Progress, None, ProtocolScores]:
    """Scores every held-out set in every form.

    Args:
        titles: The corpus.
        forms: By name, of :data:`FORMS`.
        settings: Neighbours, resamples, baselines.
        rng: Draws the resamples.
        reasons: Why a form is not served or a protocol holds no title, by its name; said in place of scores.

    Returns:
        Scores and rows (the generator's value).
    """
    protocols: dict[str, dict[str, dict[str, object]]] = {protocol: {} for protocol in PROTOCOLS}
    rows: list[dict[str, np.ndarray]] = []
    training_rows = titles.labelled("train")
    training_labels = titles.labels.take(training_rows)
    total = len(forms) * (len(settings.baselines) + len(PROTOCOLS))
    step = 0
    for form_name in FORMS:
        form = forms.get(form_name)
        if form is None or not len(training_rows):
            reason = "no training title holds a label" if form is not None else reasons.get(form_name, f"{form_name} is not built")
            for protocol in PROTOCOLS:
                protocols[protocol][form_name] = {"n": 0, "reason": reason}
            continue
        shown = form_name.replace("_", " ")
        training = LabelledTitles(form.texts_of(training_rows), training_labels, titles.label_count)
        predictors: dict[str, Predictor] = {}
        for baseline in settings.baselines:
            predictors[baseline.name] = baseline.fit(training)
            step += 1
            yield Progress(step=step, total=total, note=f"{shown}: {baseline.name} fitted on {len(training_rows)} titles")
        for protocol in PROTOCOLS:
            queries = titles.labelled(protocol)
            step += 1
            if not len(queries):
                reason = reasons.get(protocol, f"no title of {protocol} holds a label")
                protocols[protocol][form_name] = {"n": 0, "reason": reason}
                yield Progress(step=step, total=total, note=f"{shown}, {protocol}: {reason}")
                continue
            knn = judge_knn(titles, form.vectors, queries, training_rows, settings.k)
            labels = titles.labels.take(queries)
            texts = form.texts_of(queries)
            rivals = {name: judge(predictor.predict(texts), labels, training_labels) for name, predictor in predictors.items()}
            groups = titles.groups(protocol)[queries]
            scores = score_protocol(knn, rivals, groups=groups, oov=titles.oov[queries], resamples=settings.resamples, rng=rng)
            protocols[protocol][form_name] = scores
            rows.append(query_rows(form_name, protocol, queries, groups, knn))
            yield Progress(step=step, total=total, metrics=_headline(form_name, protocol, knn), note=f"{shown}, {protocol}: {len(queries)} titles scored")
    return ProtocolScores(protocols, join_rows(rows))


def judge_knn(titles: Titles, vectors: np.ndarray, queries: np.ndarray, training_rows: np.ndarray, k: int) -> Judged:
    """Our k-NN on some titles; the gate asks it of the champion's vectors of the same titles too.

    Args:
        titles: The corpus.
        vectors: float32, shape (titles, dim).
        queries: Rows of labelled titles.
        training_rows: Rows of the labelled training titles.
        k: Neighbours that vote.
    """
    training_labels = titles.labels.take(training_rows)
    frequency = np.bincount(training_labels.values, minlength=titles.label_count)
    predictions = predict_labels(vectors[queries], vectors[training_rows], training_labels, frequency, k)
    return judge(predictions, titles.labels.take(queries), training_labels)


def score_protocol(
    knn: Judged, rivals: Mapping[str, Judged], *, groups: np.ndarray, oov: np.ndarray, resamples: int, rng: np.random.Generator
) -> dict[str, object]:
    """The scores of one held-out set in one form, as scores.json holds them.

    Args:
        knn: Our k-NN, one query at least.
        rivals: The baselines on the same queries, by name.
        groups: What is resampled, shape (queries,).
        oov: bool, shape (queries,): scored once more apart, as ``knn_oov``.
        resamples: Bootstrap resamples.
        rng: Draws them.
    """
    numbered = number_groups(groups)
    counts = draw_groups(count_groups(numbered), resamples, rng)
    scores: dict[str, object] = {"knn": _with_intervals(knn, numbered, counts)}
    if oov.any():
        apart = number_groups(groups[oov])
        part = knn.take(oov)
        scores["knn_oov"] = {**_with_intervals(part, apart, draw_groups(count_groups(apart), resamples, rng)), "n": len(part)}
    else:
        scores["knn_oov"] = {"n": 0, "reason": NO_UNSEEN}
    scores.update({name: _with_intervals(judged, numbered, counts) for name, judged in rivals.items()})
    return {**scores, "n": len(knn)}


def query_rows(form: str, protocol: str, title_ids: np.ndarray, groups: np.ndarray, judged: Judged) -> dict[str, np.ndarray]:
    """Columns of queries.parquet for one protocol in one form."""
    precision = np.full(len(judged), np.nan) if judged.precision_at_10 is None else judged.precision_at_10
    return {
        "form": np.full(len(judged), form),
        "protocol": np.full(len(judged), protocol),
        "title_id": title_ids.astype(np.int64),
        "group": groups.astype(np.int64),
        "correct": judged.correct,
        "precision_at_10": precision,
        "reciprocal_rank": judged.reciprocal_rank,
    }


def join_rows(parts: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Puts the columns of several protocols under each other; typed and empty where there is none."""
    if not parts:
        nothing = Judged(np.zeros(0, dtype=bool), np.zeros(0), np.zeros(0), np.zeros((0, 0), dtype=bool), np.zeros((0, 0), dtype=bool))
        return query_rows("", "", np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), nothing)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _with_intervals(judged: Judged, groups: np.ndarray, counts: np.ndarray) -> dict[str, object]:
    return {**measure(judged), "ci95": intervals(judged, groups, counts)}


def _headline(form: str, protocol: str, judged: Judged) -> dict[str, float]:
    measured = measure(judged)
    return {f"{form}/{protocol}/{name}": value for name in ("accuracy", "precision_at_10", "mrr") if (value := measured[name]) is not None}
