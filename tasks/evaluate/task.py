"""Prefect tasks that publish Baselines (scores of baseline classifiers) and Scores (of all predictors)."""

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
ARRAYS = {"title_only": "vectors", "title_context": "full"}  # arrays of a Vectors artifact by input form


@task(**BASELINES.options)
def score_baselines(home: str, corpus: Corpus, settings: EvaluateSettings) -> Baselines:
    """Publishes the scores of the baselines. Needs only the Corpus, so it can run during training."""
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

    The linear part and the votes on held-out titles are those of the model.
    """
    workspace = Workspace(home)
    corpus_files, folder = open_corpus(workspace.folder(corpus)), workspace.folder(vectors)
    titles, table = CorpusTitles.from_corpus(corpus_files), read_titles(workspace, corpus)
    forms = {form: np.asarray(open_array(folder, name)) for form, name in ARRAYS.items()}
    rows = np.flatnonzero(titles.split != "placeholder")
    is_training = titles.split[rows] == "train"
    reference = reference_labels(corpus_files.labels.take(rows), len(corpus_files.label_names), is_training)
    clusters = np.asarray(open_array(workspace.folder(clustering), "clusters"))[rows]
    submit = helper_submit(corpus.counts["titles"])
    pending_agreement = submit(measure_agreement, clusters, reference, held_out=~is_training)
    sets = draw_held_out(titles, empty_reasons(workspace, corpus, table), settings)
    part = LinearPart.open(workspace.folder(model))
    assert part is not None  # the stage pack writes it

    def support(queries: np.ndarray, form: str) -> np.ndarray:
        return corpus_support(part, corpus_files, queries, form)

    baseline_scores = read_baselines(workspace.folder(baselines))
    scores = score_title_vectors(titles, forms, support, baseline_scores, sets, settings.k)

    augmented = forms["title_only"]
    plain_vectors = augmented.copy()
    plain_vectors[corpus_files.oov] = open_array(folder, "unaugmented")
    words, unseen = (np.asarray(open_array(folder, name)) for name in ("words", "unseen"))
    languages, augmentations = table["language"].to_pylist(), (augmented, plain_vectors)
    unseen_words = measure_unseen_words(titles, languages, words, unseen, *augmentations, settings.k)
    agreement = pending_agreement.result()
    for name in ("run_to_run_ari", "stayed_share", "neighbour_recall"):
        agreement[name] = workspace.details(clustering).get(name)
    score_document = {"protocols": scores.protocols, "k": settings.k, "clusters": agreement}
    score_document["unseen_words"] = unseen_words
    score_document["kinds"] = kind_scores(workspace.folder(corpus))
    votes, of_channels = (_read_votes(workspace.folder(model), name, rows) for name in (VOTES, CHANNEL_VOTES))
    confidence, confidence_rows = measure_votes(titles, votes, languages)
    score_document["confidence"] = {
        **confidence,
        "channels": measure_votes(titles, of_channels, languages)[0],
    }
    with STAGE.publish(home, corpus, vectors, clustering, baselines, model, settings) as draft:
        (draft.folder / "scores.json").write_text(json.dumps(score_document, indent=1), encoding="utf-8")
        pq.write_table(pa.table(scores.rows), draft.folder / "queries.parquet")
        pq.write_table(pa.table(confidence_rows), draft.folder / "confidence.parquet")
        draft.counts |= {"queries": len(scores.rows["title_id"]), "clusters": int(str(agreement["count"]))}
        draft.details["k"] = settings.k  # the gate evaluates the champion with the same k
        draft.details["checkpoint"] = workspace.details(vectors).get("checkpoint")  # of the scored vectors
    return draft.artifact


def _read_votes(model: Path, name: str, rows: np.ndarray) -> Votes:
    """Reads the votes in a Model folder; ``rows`` are the rows of its titles in the Corpus."""
    votes = read_votes(model, name)
    assert votes is not None  # the stage pack writes them
    return votes._replace(titles=rows[votes.titles], neighbours=np.append(rows, -1)[votes.neighbours])


def measure_votes(
    titles: CorpusTitles, votes: Votes, languages: Sequence[str | None]
) -> tuple[dict[str, object], dict[str, np.ndarray]]:
    """Calibrates and evaluates the confidence of predictions on held-out titles.

    Args:
        titles: All titles of the corpus.
        votes: Held-out titles with their nearest training titles.
        languages: Language of each title of the corpus; None if unknown.

    Returns:
        The section "confidence" of scores.json, and the columns of confidence.parquet (a row per title).
    """
    queries = votes.titles
    inputs = votes.neighbours, votes.cosines, titles.labels, titles.label_count, votes.support
    top_labels, scores = predict_top(*inputs)
    correct = contains_label(titles.labels.take(queries), top_labels)
    language_column = np.array([languages[title] or "" for title in queries], dtype=str)
    held_out = HeldOutPredictions(scores, correct, titles.family[queries], language_column)
    rows = {"title_id": queries.astype(np.int32), "language": language_column, "family": held_out.families}
    rows |= {"score": scores, "correct": correct}
    try:
        figures, confidence = measure_confidence(held_out), held_out.cross_fitted()
    except TooFewHeldOut as error:
        no_rows = {name: column[:0] for name, column in rows.items()}
        return {"n": 0, "reason": str(error)}, {**no_rows, "confidence": np.zeros(0)}
    return figures, {**rows, "confidence": confidence}
