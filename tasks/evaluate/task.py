"""Stage evaluate: Corpus to Baselines, beside training; Corpus, Vectors, Clustering, Baselines to Scores."""

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from prefect import get_run_logger, task

from storage.arrays import open_array
from storage.artifacts import Baselines, Clustering, Corpus, Scores, Vectors
from storage.formats.baselines import read_baselines, write_baselines
from storage.formats.corpus import open_corpus
from storage.stages import Stage
from storage.workspace import Workspace
from tasks.evaluate.baselines import draw_held_out, fit_and_ask, read_titles, reasons_for_none
from tasks.evaluate.settings import EvaluateSettings
from tasks.evaluate.unseen_words import measure_unseen_words
from tasks.pool import beside, iterate
from tasks.scoring import confidence as sure
from tasks.scoring.agreement import measure_agreement, reference_labels
from tasks.scoring.protocols import Titles, score_space

STAGE = Stage(Scores, __file__)
BASELINES = Stage(Baselines, __file__, "baselines")
ARRAYS = {"title_only": "vectors", "title_context": "full"}  # of the Vectors, by form


@task(**BASELINES.options)
def score_baselines(home: str, corpus: Corpus, settings: EvaluateSettings) -> Baselines:
    """Scores plain baselines on held-out titles; they read the corpus alone."""
    logger = get_run_logger()
    scoring = iterate(beside(corpus.counts["titles"]), fit_and_ask, home, corpus, settings)
    while True:
        try:
            progress = next(scoring)
            logger.info("%3.0f %%  %s", progress.percent, progress.note)
        except StopIteration as ended:
            scores = ended.value
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
    settings: EvaluateSettings,
) -> Scores:
    """Scores the space on held-out titles (the gate reads them) beside the baselines, and the clusters."""
    workspace = Workspace(home)
    opened, folder = open_corpus(workspace.folder(corpus)), workspace.folder(vectors)
    titles, about = Titles.of(opened), read_titles(workspace, corpus)
    forms = {form: np.asarray(open_array(folder, name)) for form, name in ARRAYS.items()}
    kept = np.flatnonzero(titles.split != "placeholder")
    is_training = titles.split[kept] == "train"
    reference = reference_labels(opened.labels.take(kept), len(opened.label_names), is_training)
    clusters = np.asarray(open_array(workspace.folder(clustering), "clusters"))[kept]
    comparing = beside(corpus.counts["titles"])(measure_agreement, clusters, reference, held_out=~is_training)
    sets = draw_held_out(titles, reasons_for_none(workspace, corpus, about), settings)
    rivals = workspace.folder(baselines)
    scored = score_space(titles, forms, read_baselines(rivals), sets, settings.k)

    augmented = forms["title_only"]
    unaugmented = augmented.copy()
    unaugmented[opened.oov] = open_array(folder, "unaugmented")
    words, unseen = (np.asarray(open_array(folder, name)) for name in ("words", "unseen"))
    spoken, both = about["language"].to_pylist(), (augmented, unaugmented)
    unseen_words = measure_unseen_words(titles, spoken, words, unseen, *both, settings.k)
    agreement = comparing.result()
    for name in ("run_to_run_ari", "stayed_share", "neighbour_recall"):
        agreement[name] = workspace.details(clustering).get(name)
    document = {"protocols": scored.protocols, "k": settings.k, "clusters": agreement}
    document["unseen_words"] = unseen_words
    votes = sure.held_out_votes(titles, forms["title_context"], settings.seed)
    document["confidence"], sureness = measure_votes(titles, votes, spoken)
    with STAGE.publish(home, corpus, vectors, clustering, baselines, settings) as draft:
        (draft.folder / "scores.json").write_text(json.dumps(document, indent=1), encoding="utf-8")
        pq.write_table(pa.table(scored.rows), draft.folder / "queries.parquet")
        pq.write_table(pa.table(sureness), draft.folder / "confidence.parquet")
        draft.counts |= {"queries": len(scored.rows["title_id"]), "clusters": int(str(agreement["count"]))}
        draft.details["k"] = settings.k  # the gate lets as many neighbours vote on the champion
        draft.details["checkpoint"] = workspace.details(vectors).get("checkpoint")  # that has these scores
    return draft.artifact


def measure_votes(
    titles: Titles, votes: sure.HeldOutVotes, languages: Sequence[str | None]
) -> tuple[dict[str, object], dict[str, np.ndarray]]:
    """Section ``confidence`` of scores.json, and columns of confidence.parquet, a row a held-out title."""
    queries = votes.titles
    first, scores = sure.score_votes(votes.neighbours, votes.cosines, titles.labels, titles.label_count)
    correct = sure.holds(titles.labels.take(queries), first)
    spoken = np.array([languages[title] or "" for title in queries], dtype=str)
    rows = {"title_id": queries.astype(np.int32), "language": spoken, "score": scores, "correct": correct}
    try:
        confidence = sure.cross_fitted(scores, correct, titles.family[queries], spoken)
    except sure.TooFewHeldOut as error:
        nothing = {name: column[:0] for name, column in rows.items()}
        return {"n": 0, "reason": str(error)}, {**nothing, "confidence": np.zeros(0)}
    figures = sure.measure_confidence(confidence, scores, correct, spoken)
    return figures, {**rows, "confidence": confidence}
