"""Stage trial: trains on a Corpus with the settings of one trial, and predicts the held-out titles.

Only the predictions are published (TrialPredictions). Checkpoint, encoder and vectors, which take 60 MB for a
national guide, are written to a temporary home. This file must not import the plan of the ablation
(tasks/ablate/plan.py): the cache key of a trial contains the code of all imports, and a new block must not
invalidate the results of other trials.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from prefect import task
from prefect.logging import disable_run_logger
from threadpoolctl import threadpool_limits

from storage.artifacts import Corpus, TrialPredictions, Vocabulary
from storage.digests import hashes
from storage.formats.answers import CLUSTERS, write_answers
from storage.formats.corpus import OpenCorpus, open_corpus
from storage.formats.vocabulary import PLACEHOLDER, TRAIN, texts_of
from storage.home.workspace import Workspace
from storage.stages import Stage
from tasks.augment.settings import AugmentSettings
from tasks.augment.task import augment
from tasks.cluster.graph import Neighbours
from tasks.cluster.settings import ClusterSettings
from tasks.cluster.stability import cluster_with_seeds
from tasks.embed.corpus import embed_corpus
from tasks.encoder.title_encoder import TitleEncoder
from tasks.pool import Submit
from tasks.scoring.agreement import b_cubed_per_title, noise_as_singletons, reference_labels
from tasks.scoring.folds import ScoresByCell, TitleScores, predict_held_out
from tasks.scoring.protocols import CorpusTitles
from tasks.train.settings import TrainSettings
from tasks.train.task import train

STAGE = Stage(TrialPredictions, __file__, "trial")


@dataclass(frozen=True, kw_only=True)
class Learning:
    """Settings of a trial, without the settings of its corpus."""

    # block, fold and seed, such as "n-grams 2/3"; not part of the cache key
    name: str = field(metadata={"keyed": False})
    train: TrainSettings
    augment: AugmentSettings
    cluster: ClusterSettings | None  # None: the trial is scored by categories, not by clusters
    k: int  # number of neighbours that vote for categories


@task(**{**STAGE.options, "task_run_name": "{learning.name}"})
def measure(
    home: str, vocabulary: Vocabulary, corpus: Corpus, learning: Learning, submit: Submit
) -> TrialPredictions:
    """Runs a trial in a pool of processes (``submit``), and publishes its predictions."""
    predictions = submit(run_trial, home, vocabulary, corpus, learning).result()
    with STAGE.publish(home, vocabulary, corpus, learning) as draft:
        write_answers(draft.folder, predictions)
        draft.counts |= {"answers": sum(len(answer.family) for answer in predictions.values())}
    return draft.artifact


def run_trial(home: str, vocabulary: Vocabulary, corpus: Corpus, learning: Learning) -> ScoresByCell:
    """Trains a model, embeds the corpus and predicts its held-out titles, in a process without Prefect."""
    workspace = Workspace(home)
    folder = workspace.folder(corpus)
    corpus_files = open_corpus(folder)
    family = hashes(texts_of(folder / "titles.parquet", "family"), "family")
    # Each trial uses one thread, because the pool has one process per core.
    with _temporary_home(workspace) as scratch, disable_run_logger(), threadpool_limits(1):
        checkpoint = train.fn(scratch, corpus, learning.train)
        encoder_files = augment.fn(
            scratch, vocabulary, corpus, checkpoint, learning.train.encoder, learning.augment
        )
        encoder = TitleEncoder.open(Workspace(scratch).folder(encoder_files))
        blocks = list(embed_corpus(folder, encoder))
        context_vectors = np.concatenate([block.full for block in blocks])
        if learning.cluster is not None:
            return _score_clusters(corpus_files, family, context_vectors, learning.cluster)
        titles = CorpusTitles.from_corpus(corpus_files)
        forms = {"title_only": np.concatenate([block.vectors for block in blocks])}
        if any(any(block.contexts) for block in blocks):
            forms["title_context"] = context_vectors
        predictions: ScoresByCell = {}
        for form, vectors in forms.items():
            predictions |= predict_held_out(titles, family, form, vectors, learning.k)
        return predictions


@contextmanager
def _temporary_home(workspace: Workspace) -> Iterator[str]:
    """Creates a temporary home that shares vocabularies and corpora with ``workspace``; yields its path."""
    with tempfile.TemporaryDirectory(prefix="guidespace-trial-") as name:
        (artifacts := Path(name) / "artifacts").mkdir()
        for kind in (Vocabulary, Corpus):
            artifacts_folder = workspace.artifact_folder(kind, "any").parent
            (artifacts / artifacts_folder.name).symlink_to(artifacts_folder, target_is_directory=True)
        yield name


def _score_clusters(
    corpus: OpenCorpus, family: np.ndarray, vectors: np.ndarray, settings: ClusterSettings
) -> ScoresByCell:
    """Clusters the titles, and computes the B-cubed F of each labelled title.

    Noise titles count as clusters of one title. Placeholder titles, which name no programme, are omitted.
    """
    titles = np.flatnonzero(corpus.split != PLACEHOLDER)
    nearest = settings.search.open(vectors[titles]).nearest_to_each(settings.strategy.neighbours)
    seeds = range(settings.seed, settings.seed + settings.seeds)
    partition = cluster_with_seeds(settings.strategy, vectors[titles], Neighbours(*nearest), seeds).typical
    labels = corpus.labels.take(titles)
    reference = reference_labels(labels, len(corpus.label_names), corpus.split[titles] == TRAIN)
    is_labelled = reference >= 0
    clusters = noise_as_singletons(partition.clusters)[is_labelled]
    precision, recall = b_cubed_per_title(clusters, reference[is_labelled])
    f_score = 2 * precision * recall / (precision + recall)
    rows = titles[is_labelled]
    return {(CLUSTERS, CLUSTERS): TitleScores(f_score, None, family[rows], corpus.oov[rows])}
