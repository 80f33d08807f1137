"""A trial of an ablation: a corpus learnt with some settings, and what its space answers to held-out titles.

Answers alone are kept: checkpoint, encoder and vectors of a trial, 60 MB on a national guide, are made in a
home of their own that is removed. A trial is a stage: one whose corpus, settings and code are unchanged is
not run again; so nothing is imported here that says which trials there are (plan.py).
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

from storage.artifacts import Answers, Corpus, Vocabulary
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
from tasks.cluster.stability import several_seeds
from tasks.embed.corpus import embed_corpus
from tasks.encoder.title_encoder import TitleEncoder
from tasks.pool import Submit
from tasks.scoring.agreement import b_cubed_per_title, noise_as_singletons, reference_labels
from tasks.scoring.folds import Answer, answer_knn
from tasks.scoring.folds import Answers as Answered
from tasks.scoring.protocols import Titles
from tasks.train.settings import TrainSettings
from tasks.train.task import train

STAGE = Stage(Answers, __file__, "trial")


@dataclass(frozen=True, kw_only=True)
class Learning:
    """What a trial does with its corpus; its name is no part of the cache key."""

    name: str = field(metadata={"keyed": False})  # "n-grams 2/3"
    train: TrainSettings
    augment: AugmentSettings
    cluster: ClusterSettings | None  # whose clusters are judged; None: categories are
    k: int


@task(**{**STAGE.options, "task_run_name": "{learning.name}"})
def measure(home: str, vocabulary: Vocabulary, corpus: Corpus, learning: Learning, submit: Submit) -> Answers:
    """Learns and answers in a process of the pool that ``submit`` gives work to."""
    answers = submit(answer, home, vocabulary, corpus, learning).result()
    with STAGE.publish(home, vocabulary, corpus, learning) as draft:
        write_answers(draft.folder, answers)
        draft.counts |= {"answers": sum(len(own.family) for own in answers.values())}
    return draft.artifact


def answer(home: str, vocabulary: Vocabulary, corpus: Corpus, learning: Learning) -> Answered:
    """The answers of a trial; called in a process of its own, where nothing of Prefect runs."""
    workspace = Workspace(home)
    opened, folder = open_corpus(workspace.folder(corpus)), workspace.folder(corpus)
    family = hashes(texts_of(folder / "titles.parquet", "family"), "family")
    with _own_home(workspace) as place, disable_run_logger(), threadpool_limits(1):  # a process a core
        checkpoint = train.fn(place, corpus, learning.train)
        stages = vocabulary, corpus, checkpoint, learning.train.encoder, learning.augment
        encoder = TitleEncoder.open(Workspace(place).folder(augment.fn(place, *stages)))
        blocks = list(embed_corpus(folder, encoder))
        full = np.concatenate([own.full for own in blocks])
        if learning.cluster is not None:
            return _answer_clusters(opened, family, full, learning.cluster)
        titles, forms = Titles.of(opened), {"title_only": np.concatenate([own.vectors for own in blocks])}
        if any(any(own.contexts) for own in blocks):
            forms["title_context"] = full
        return {
            key: own
            for form, vectors in forms.items()
            for key, own in answer_knn(titles, family, form, vectors, learning.k).items()
        }


@contextmanager
def _own_home(workspace: Workspace) -> Iterator[str]:
    """A home that shares vocabularies and corpora with another one, and is removed."""
    with tempfile.TemporaryDirectory(prefix="guidespace-trial-") as name:
        (own := Path(name) / "artifacts").mkdir()
        for kind in (Vocabulary, Corpus):
            shared = workspace.place(kind, "any").parent
            (own / shared.name).symlink_to(shared, target_is_directory=True)
        yield name


def _answer_clusters(
    corpus: OpenCorpus, family: np.ndarray, points: np.ndarray, settings: ClusterSettings
) -> Answered:
    """B-cubed F of each labelled title, noise as clusters of one; placeholders stay out."""
    kept = np.flatnonzero(corpus.split != PLACEHOLDER)
    near = settings.search.open(points[kept]).among_themselves(settings.strategy.neighbours)
    seeds = range(settings.seed, settings.seed + settings.seeds)
    found = several_seeds(settings.strategy, points[kept], Neighbours(*near), seeds).typical
    labels = corpus.labels.take(kept)
    reference = reference_labels(labels, len(corpus.label_names), corpus.split[kept] == TRAIN)
    labelled = reference >= 0
    clusters = noise_as_singletons(found.labels)[labelled]
    precision, recall = b_cubed_per_title(clusters, reference[labelled])
    both = 2 * precision * recall / (precision + recall)
    return {(CLUSTERS, CLUSTERS): Answer(both, None, family[kept][labelled], corpus.oov[kept][labelled])}
