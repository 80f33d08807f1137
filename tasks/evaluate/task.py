"""Defines the Prefect tasks that publish Baselines (scores of baselines) and Scores (of all predictors)."""

import functools
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from prefect import get_run_logger, task

from storage.arrays import open_array
from storage.artifacts import Baselines, Clustering, Corpus, Model, Scores, Vectors
from storage.formats.baselines import read_baselines, write_baselines
from storage.formats.corpus import open_corpus
from storage.formats.model import CHANNEL_VOTES, VOTES, Votes, read_votes
from storage.home.workspace import Workspace
from storage.stages import Stage
from tasks.evaluate.baselines import draw_held_out, empty_reasons, fit_and_score_baselines, read_titles
from tasks.evaluate.settings import EvaluateSettings
from tasks.evaluate.unseen_words import measure_unseen_words
from tasks.kinds.scores import kind_scores
from tasks.pool import helper_submit, iterate_in_pool
from tasks.predictor.linear_part import LinearPart
from tasks.predictor.prediction import corpus_support, predict_top
from tasks.scoring.agreement import measure_agreement, reference_labels
from tasks.scoring.confidence import (
    HeldOutPredictions,
    TooFewHeldOut,
    contains_label,
    measure_confidence,
)
from tasks.scoring.protocols import CorpusTitles, score_title_vectors

STAGE = Stage(Scores, __file__)
BASELINES = Stage(Baselines, __file__, "baselines")
ARRAY_OF_FORM = {"title_only": "vectors", "title_context": "full"}  # arrays of a Vectors artifact


@task(**BASELINES.options)
def score_baselines(home: str, corpus: Corpus, settings: EvaluateSettings) -> Baselines:
    """Publishes the scores of the baselines. It needs only the Corpus, so it can run during training."""
    logger = get_run_logger()
    scoring = iterate_in_pool(
        helper_submit(corpus.counts["titles"]), fit_and_score_baselines, home, corpus, settings
    )
    while True:
        try:
            progress = next(scoring)
            logger.info("%3.0f %%  %s", progress.percent, progress.note)
        except StopIteration as stop:
            scores = stop.value
            break
    with BASELINES.publish(home, corpus, settings) as draft:
        write_baselines(draft.folder, scores)
        draft.counts["baselines"] = len(settings.baselines)
    return draft.artifact


@task(**STAGE.options)
def evaluate(
    home: str,
    corpus: Corpus,
    vectors: Vectors,
    clustering: Clustering,
    baselines: Baselines,
    model: Model,
    settings: EvaluateSettings,
) -> Scores:
    """Publishes the scores of title vectors, baselines and clusters (scores.json and Parquet tables).

    The linear part of the predictor and the votes on held-out titles are read from ``model``.
    """
    workspace = Workspace(home)
    corpus_files, folder = open_corpus(workspace.folder(corpus)), workspace.folder(vectors)
    titles, table = CorpusTitles.from_corpus(corpus_files), read_titles(workspace, corpus)
    forms = {form: np.asarray(open_array(folder, name)) for form, name in ARRAY_OF_FORM.items()}
    model_rows = np.flatnonzero(titles.split != "placeholder")
    is_training = titles.split[model_rows] == "train"
    reference = reference_labels(titles.labels.take(model_rows), titles.label_count, is_training)
    clusters = np.asarray(open_array(workspace.folder(clustering), "clusters"))[model_rows]
    submit = helper_submit(corpus.counts["titles"])
    pending_agreement = submit(measure_agreement, clusters, reference, held_out=~is_training)
    held_out_sets = draw_held_out(titles, empty_reasons(workspace, corpus, table), settings)
    part = LinearPart.open(workspace.folder(model))
    assert part is not None  # the stage pack writes it
    support = functools.partial(corpus_support, part, corpus_files)
    baseline_scores = read_baselines(workspace.folder(baselines))
    scores = score_title_vectors(titles, forms, support, baseline_scores, held_out_sets, settings.k)
    unaugmented = forms["title_only"].copy()
    unaugmented[corpus_files.oov] = open_array(folder, "unaugmented")
    word_counts, unseen_counts = (np.asarray(open_array(folder, name)) for name in ("words", "unseen"))
    languages = table["language"].to_pylist()
    compared_vectors = {"augmented": forms["title_only"], "unaugmented": unaugmented}
    unseen_words = measure_unseen_words(
        titles, languages, word_counts, unseen_counts, compared_vectors, settings.k
    )
    agreement = pending_agreement.result()
    details = workspace.details(clustering)
    agreement |= {name: details.get(name) for name in ("run_to_run_ari", "stayed_share", "neighbour_recall")}
    model_folder = workspace.folder(model)
    votes, channel_votes = (_read_votes(model_folder, name, model_rows) for name in (VOTES, CHANNEL_VOTES))
    confidence, confidence_columns = measure_votes(titles, votes, languages)
    channel_confidence, _ = measure_votes(titles, channel_votes, languages)
    score_document = {
        "protocols": scores.protocols,
        "k": settings.k,
        "clusters": agreement,
        "unseen_words": unseen_words,
        "kinds": kind_scores(workspace.folder(corpus)),
        "confidence": {**confidence, "channels": channel_confidence},
    }
    with STAGE.publish(home, corpus, vectors, clustering, baselines, model, settings) as draft:
        (draft.folder / "scores.json").write_text(json.dumps(score_document, indent=1), encoding="utf-8")
        pq.write_table(pa.table(scores.rows), draft.folder / "queries.parquet")
        pq.write_table(pa.table(confidence_columns), draft.folder / "confidence.parquet")
        draft.counts |= {"queries": len(scores.rows["title_id"]), "clusters": int(str(agreement["count"]))}
        draft.details["k"] = settings.k  # the gate evaluates the champion with the same k
        draft.details["checkpoint"] = workspace.details(vectors).get("checkpoint")
    return draft.artifact


def _read_votes(model: Path, name: str, model_rows: np.ndarray) -> Votes:
    """Reads the votes in a Model folder, and converts row numbers of the Model to row numbers of the Corpus.

    ``model_rows`` are the row numbers of the Model's titles in the Corpus.
    """
    votes = read_votes(model, name)
    assert votes is not None  # the stage pack writes them
    neighbours = np.append(model_rows, -1)[votes.neighbours]
    return votes._replace(titles=model_rows[votes.titles], neighbours=neighbours)


def measure_votes(
    titles: CorpusTitles, votes: Votes, languages: Sequence[str | None]
) -> tuple[dict[str, object], dict[str, np.ndarray]]:
    """Calibrates the confidence of predictions on held-out titles, and evaluates it by cross-fitting.

    Args:
        titles: All titles of the corpus.
        votes: Held-out titles with their nearest training titles.
        languages: Language of each title of the corpus; None if unknown.

    Returns:
        The section "confidence" of scores.json, and the columns of confidence.parquet, with one row per
        held-out title.
    """
    queries = votes.titles
    top_labels, scores = predict_top(
        votes.neighbours, votes.cosines, titles.labels, titles.label_count, votes.support
    )
    correct = contains_label(titles.labels.take(queries), top_labels)
    language_column = np.array([languages[title] or "" for title in queries], dtype=str)
    held_out = HeldOutPredictions(scores, correct, titles.family[queries], language_column)
    columns = {"title_id": queries.astype(np.int32), "language": language_column, "family": held_out.families}
    columns |= {"score": scores, "correct": correct}
    try:
        figures, confidence = measure_confidence(held_out), held_out.cross_fitted()
    except TooFewHeldOut as error:
        empty_columns = {name: column[:0] for name, column in columns.items()}
        return {"n": 0, "reason": str(error)}, {**empty_columns, "confidence": np.zeros(0)}
    return figures, {**columns, "confidence": confidence}
