"""Stage evaluate: Corpus to Baselines, beside training; Corpus, Vectors, Clustering, Baselines to Scores."""

import json
from collections.abc import Iterator, Sequence

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
from tasks.baselines.inputs import TitleInputs, dense_inputs, join_contexts
from tasks.evaluate.settings import EvaluateSettings
from tasks.evaluate.unseen_words import measure_unseen_words
from tasks.scoring import confidence as sure
from tasks.scoring.agreement import measure_agreement, reference_labels
from tasks.scoring.baselines import ask_baselines
from tasks.scoring.protocols import HeldOut, Titles, held_out_sets, score_space

STAGE = Stage(Scores, __file__)
BASELINES = Stage(Baselines, __file__, "baselines")
ARRAYS = {"title_only": "vectors", "title_context": "full"}  # of the Vectors, by form
CONTEXT_REASON = "tokenize.context is empty: nothing is known of how titles air"


@task(**BASELINES.options)
def score_baselines(home: str, corpus: Corpus, settings: EvaluateSettings) -> Baselines:
    """Scores plain baselines on held-out titles; they read the corpus alone."""
    logger, workspace = get_run_logger(), Workspace(home)
    titles, about = Titles.of(open_corpus(workspace.folder(corpus))), _read_titles(workspace, corpus)
    reasons = _reasons(workspace, corpus, about)
    used = titles.used
    titles, about = titles.take(used), about.take(used)

    def read(rows: np.ndarray) -> TitleInputs:
        opened, some = open_corpus(workspace.folder(corpus)), about.take(rows)
        dense = dense_inputs(opened.sentences, opened.descriptions, used[rows])
        spoken = "title_context" not in reasons
        contexts = join_contexts(some["context"].to_pylist()) if spoken else ()
        return TitleInputs(some["raw_title"].to_pylist(), dense, contexts)

    sets = _held_out(titles, reasons, settings)
    scoring = ask_baselines(titles, read, settings.baselines, sets)
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
    titles, about = Titles.of(opened), _read_titles(workspace, corpus)
    forms = {form: np.asarray(open_array(folder, name)) for form, name in ARRAYS.items()}
    sets = _held_out(titles, _reasons(workspace, corpus, about), settings)
    rivals = workspace.folder(baselines)
    scored = score_space(titles, forms, read_baselines(rivals), sets, settings.k)

    augmented = forms["title_only"]
    unaugmented = augmented.copy()
    unaugmented[opened.oov] = open_array(folder, "unaugmented")
    words, unseen = (np.asarray(open_array(folder, name)) for name in ("words", "unseen"))
    spoken, both = about["language"].to_pylist(), (augmented, unaugmented)
    unseen_words = measure_unseen_words(titles, spoken, words, unseen, *both, settings.k)
    kept = np.flatnonzero(titles.split != "placeholder")
    is_training = titles.split[kept] == "train"
    reference = reference_labels(opened.labels.take(kept), len(opened.label_names), is_training)
    clusters = np.asarray(open_array(workspace.folder(clustering), "clusters"))[kept]
    agreement = measure_agreement(clusters, reference, held_out=~is_training)
    for name in ("run_to_run_ari", "stayed_share", "neighbour_recall"):
        agreement[name] = workspace.details(clustering).get(name)
    document = {"protocols": scored.protocols, "k": settings.k, "clusters": agreement}
    document["unseen_words"] = unseen_words
    votes = sure.held_out_votes(titles, forms["title_context"], settings.seed)
    document["confidence"], sureness = measure_votes(titles, votes, spoken)
    with STAGE.publish(home, corpus, vectors, clustering, baselines, settings) as draft:
        (draft.folder / "scores.json").write_text(json.dumps(document, indent=1))
        pq.write_table(pa.table(scored.rows), draft.folder / "queries.parquet")
        pq.write_table(pa.table(sureness), draft.folder / "confidence.parquet")
        draft.counts |= {"queries": len(scored.rows["title_id"]), "clusters": int(str(agreement["count"]))}
        draft.details["k"] = settings.k  # the gate lets as many neighbours vote on the champion
        draft.details["checkpoint"] = workspace.details(vectors).get("checkpoint")  # that has these scores
    return draft.artifact


def _read_titles(workspace: Workspace, corpus: Corpus) -> pa.Table:
    columns = ["raw_title", "context", "language"]
    return pq.read_table(workspace.folder(corpus) / "titles.parquet", columns=columns)


def _reasons(workspace: Workspace, corpus: Corpus, about: pa.Table) -> dict[str, str]:
    """Why a form or a protocol of held-out sets is empty, by name."""
    no_period = workspace.details(corpus)["next_period_reason"] or "no labelled title is in next_period"
    tokens = sum(len(chunk.flatten()) for chunk in about["context"].chunks)
    return {"next_period": str(no_period)} | ({} if tokens else {"title_context": CONTEXT_REASON})


def _held_out(titles: Titles, reasons: dict[str, str], settings: EvaluateSettings) -> Iterator[HeldOut]:
    """Held-out sets and resamples, the same for the space and for the baselines."""
    return held_out_sets(titles, settings.resamples, np.random.default_rng(settings.seed), reasons)


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
