"""Stage evaluate: Corpus, Vectors, Clustering to Scores."""

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from prefect import get_run_logger, task

from storage.arrays import open_array
from storage.artifacts import Clustering, Corpus, Scores, Vectors
from storage.formats.corpus import open_corpus
from storage.stages import Stage
from storage.workspace import Workspace
from tasks.baselines.inputs import TitleInputs, dense_inputs
from tasks.baselines.tfidf import SEPARATOR
from tasks.evaluate.settings import EvaluateSettings
from tasks.evaluate.unseen_words import measure_unseen_words
from tasks.scoring import confidence as sure
from tasks.scoring.agreement import measure_agreement, reference_labels
from tasks.scoring.protocols import Form, Titles, score_titles

STAGE = Stage(Scores, __file__)
CONTEXT_REASON = "tokenize.context is empty: nothing is known of how titles air"


@task(**STAGE.options)
def evaluate(
    home: str, corpus: Corpus, vectors: Vectors, clustering: Clustering, settings: EvaluateSettings
) -> Scores:
    """Scores the space and plain baselines on held-out titles (the gate reads them), and the clusters."""
    logger, workspace = get_run_logger(), Workspace(home)
    opened, folder = open_corpus(workspace.folder(corpus)), workspace.folder(vectors)
    titles = Titles.of(opened)
    columns = ["raw_title", "context", "language"]
    about = pq.read_table(workspace.folder(corpus) / "titles.parquet", columns=columns)
    texts = about["raw_title"].to_pylist()
    dense = dense_inputs(opened.sentences, opened.descriptions)
    forms = {"title_only": Form(TitleInputs(texts, dense), np.asarray(open_array(folder, "vectors")))}
    tokens = (context or [] for context in about["context"].to_pylist())
    contexts = [" ".join("_".join(token.split()) for token in context) for context in tokens]
    if any(contexts):
        joined = [text + SEPARATOR + context for text, context in zip(texts, contexts, strict=True)]
        forms["title_context"] = Form(TitleInputs(joined, dense), np.asarray(open_array(folder, "full")))
    no_period = workspace.details(corpus)["next_period_reason"] or "no labelled title is in next_period"
    reasons = {"title_context": CONTEXT_REASON, "next_period": str(no_period)}
    rng, resamples = np.random.default_rng(settings.seed), settings.resamples
    options = {"k": settings.k, "resamples": resamples, "rng": rng, "reasons": reasons}
    scoring = score_titles(titles, forms, settings.baselines, **options)
    while True:
        try:
            progress = next(scoring)
            logger.info("%3.0f %%  %s", progress.percent, progress.note)
        except StopIteration as ended:
            scored = ended.value
            break

    augmented = forms["title_only"].vectors
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
    votes = sure.held_out_votes(titles, np.asarray(open_array(folder, "full")), settings.seed)
    document["confidence"], sureness = measure_votes(titles, votes, spoken)
    with STAGE.publish(home, corpus, vectors, clustering, settings) as draft:
        (draft.folder / "scores.json").write_text(json.dumps(document, indent=1))
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
