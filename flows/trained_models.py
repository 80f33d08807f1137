"""Finds models of earlier nights, which a night uses again if only few titles have changed.

A model fits if its night would be repeated unchanged today: guide and titles are those of that night, but
settings, corrections, code and package versions are those of this run (they are in the cache keys).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from storage.artifacts import (
    Baselines,
    Checkpoint,
    Corpus,
    Guide,
    TitleEncoderFiles,
    Vocabulary,
    read_inputs,
)
from storage.home.workspace import Workspace, newest_first
from tasks.augment.task import STAGE as AUGMENT
from tasks.evaluate.task import BASELINES
from tasks.preprocess.categories import LabelSources
from tasks.preprocess.task import STAGE as PREPROCESS
from tasks.settings import Settings
from tasks.tokenize.reuse import TOKENS_OF
from tasks.tokenize.task import STAGE as TOKENIZE
from tasks.train.task import STAGE as TRAIN


@dataclass(frozen=True, kw_only=True)
class TrainedModel:
    """Artifacts of the night that trained a model."""

    vocabulary: Vocabulary
    corpus: Corpus
    checkpoint: Checkpoint
    encoder: TitleEncoderFiles
    baselines: Baselines


def trained_models(home: str, settings: Settings, sources: LabelSources) -> Iterator[TrainedModel]:
    """Yields the models that were trained with the settings and code of this run, newest first."""
    workspace, salt = Workspace(home), settings.tokenize.splits.salt
    for vocabulary in newest_first(workspace, Vocabulary) if settings.tokenize.reuse_share else ():
        guides = [
            Guide(path=item["path"], digest=item["digest"])
            for item in read_inputs(workspace.folder(vocabulary))
            if item["kind"] == Guide.kind
        ]
        keys = [TOKENIZE.key(guide, settings.tokenize) for guide in guides]
        if TOKENS_OF in workspace.details(vocabulary) or vocabulary.path.rpartition("/")[2] not in keys:
            continue
        (guide,) = guides
        inputs = guide, vocabulary, salt, settings.preprocess, sources
        if (corpus := workspace.read(Corpus, PREPROCESS.key(*inputs))) is None:
            continue
        checkpoint = workspace.read(Checkpoint, TRAIN.key(corpus, settings.train))
        baselines = workspace.read(Baselines, BASELINES.key(corpus, settings.evaluate))
        if checkpoint is None or baselines is None:
            continue
        inputs = vocabulary, corpus, checkpoint, settings.train.encoder, settings.augment
        if encoder := workspace.read(TitleEncoderFiles, AUGMENT.key(*inputs)):
            yield TrainedModel(
                vocabulary=vocabulary,
                corpus=corpus,
                checkpoint=checkpoint,
                encoder=encoder,
                baselines=baselines,
            )


def fitting_model(
    home: str, vocabulary: Vocabulary, corpus: Corpus, settings: Settings, sources: LabelSources
) -> TrainedModel | None:
    """Returns the model whose tokens a Vocabulary has, or None if this night has to train.

    The model is not used if another sentence encoder was chosen, or if the labels of more than
    ``tokenize.reuse_share`` of the titles have changed.
    """
    workspace = Workspace(home)
    digest = workspace.details(vocabulary).get(TOKENS_OF)
    for model in trained_models(home, settings, sources) if digest else ():
        if model.vocabulary.digest == digest:
            then, now = (workspace.details(each)["sentences"] for each in (model.corpus, corpus))
            share = _changed_labels(*(workspace.folder(each) for each in (model.corpus, corpus)))
            return model if then == now and share <= settings.tokenize.reuse_share else None
    return None


def _changed_labels(earlier: Path, corpus: Path) -> float:
    """Returns the share of titles of an earlier Corpus that have other labels now; removed titles count."""
    labels = []
    for folder in (earlier, corpus):
        table = pq.read_table(folder / "titles.parquet", columns=["show_key", "labels"])
        labels.append(dict(zip(*(column.to_pylist() for column in table.columns), strict=True)))
    changed = sum(labels[1].get(show) != names for show, names in labels[0].items())
    return changed / max(1, len(labels[0]))
