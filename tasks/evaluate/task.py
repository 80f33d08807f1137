"""Stage evaluate: Corpus, Vectors, Clustering to Scores."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from prefect import get_run_logger, task

from storage.arrays import open_array
from storage.artifacts import Clustering, Corpus, Scores, Vectors
from storage.stages import Stage
from storage.workspace import Workspace
from tasks.baselines.tfidf import SEPARATOR
from tasks.evaluate.agreement import measure_agreement, reference_labels
from tasks.evaluate.protocols import Form, Titles, score_titles
from tasks.evaluate.settings import EvaluateSettings
from tasks.evaluate.unseen_words import measure_unseen_words
from tasks.preprocess.corpus import open_corpus

STAGE = Stage(Scores, __file__)
CONTEXT_REASON = "tokenize.context is empty: nothing is known of how titles air"


@task(**STAGE.options)
def evaluate(home: str, corpus: Corpus, vectors: Vectors, clustering: Clustering, settings: EvaluateSettings) -> Scores:
    """Scores the space on held-out titles beside plain baselines, and the clusters against categories.

    Publishes scores.json and queries.parquet (what each held-out title got: the gate compares models by it).
    """
    logger = get_run_logger()
    workspace = Workspace(home)
    opened = open_corpus(workspace.folder(corpus))
    about = pq.read_table(workspace.folder(corpus) / "titles.parquet", columns=["raw_title", "split", "context", "language"])
    split = np.array(about["split"].to_pylist())
    titles = Titles(split=split, labels=opened.labels, label_count=len(opened.label_names), show=opened.show, family=opened.family, oov=opened.oov)
    form = Form(texts=about["raw_title"].to_pylist(), vectors=np.asarray(open_array(workspace.folder(vectors), "vectors")))
    forms = {"title_only": form}
    contexts = [["_".join(token.split()) for token in context or []] for context in about["context"].to_pylist()]
    if any(contexts):
        texts = [text + SEPARATOR + " ".join(context) for text, context in zip(form.texts, contexts, strict=True)]
        forms["title_context"] = Form(texts=texts, vectors=np.asarray(open_array(workspace.folder(vectors), "full")))
    reasons = {"title_context": CONTEXT_REASON, "next_period": str(workspace.details(corpus)["next_period_reason"]) or "no labelled title is in next_period"}
    scoring = score_titles(titles, forms, settings, np.random.default_rng(settings.seed), reasons)
    while True:
        try:
            progress = next(scoring)
            logger.info("%3.0f %%  %s", progress.percent, progress.note)
        except StopIteration as ended:
            scored = ended.value
            break

    places = workspace.folder(vectors)
    unaugmented = form.vectors.copy()
    unaugmented[opened.oov] = open_array(places, "unaugmented")
    counts = np.asarray(open_array(places, "words")), np.asarray(open_array(places, "unseen"))
    unseen_words = measure_unseen_words(titles, about["language"].to_pylist(), *counts, form.vectors, unaugmented, settings.k)
    kept = split != "placeholder"
    clusters = np.asarray(open_array(workspace.folder(clustering), "clusters"))[kept]
    labels = opened.labels.take(np.flatnonzero(kept))
    agreement = measure_agreement(clusters, reference_labels(labels, len(opened.label_names), split[kept] == "train"), held_out=split[kept] != "train")
    agreement |= {name: workspace.details(clustering).get(name) for name in ("run_to_run_ari", "stayed_share", "neighbour_recall")}
    with STAGE.publish(home, corpus, vectors, clustering, settings) as draft:
        (draft.folder / "scores.json").write_text(json.dumps({"protocols": scored.protocols, "clusters": agreement, "unseen_words": unseen_words}, indent=1))
        pq.write_table(pa.table(scored.rows), draft.folder / "queries.parquet")
        draft.counts |= {"queries": len(scored.rows["title_id"]), "clusters": int(str(agreement["count"]))}
        draft.details["k"] = settings.k  # the gate lets as many neighbours vote on the champion
        draft.details["checkpoint"] = workspace.details(vectors).get("checkpoint")  # which training these are the scores of
    return draft.artifact
