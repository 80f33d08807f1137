"""Finds the model of an earlier night, which a night reuses if only few titles have changed since then.

A model can be reused if this run would train the same model from the guide of the earlier night. The module
therefore computes the cache keys of the stages from that guide and from the settings, corrections, code and
package versions of this run, and looks for artifacts with these keys.
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
from storage.home.files import mark_used
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
    """Artifacts of a night that has trained a model."""

    vocabulary: Vocabulary
    corpus: Corpus
    checkpoint: Checkpoint
    encoder: TitleEncoderFiles
    baselines: Baselines


def find_trained_models(home: str, settings: Settings, sources: LabelSources) -> Iterator[TrainedModel]:
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
        corpus_key = PREPROCESS.key(guide, vocabulary, salt, settings.preprocess, sources)
        if (corpus := workspace.read(Corpus, corpus_key)) is None:
            continue
        checkpoint = workspace.read(Checkpoint, TRAIN.key(corpus, settings.train))
        baselines = workspace.read(Baselines, BASELINES.key(corpus, settings.evaluate))
        if checkpoint is None or baselines is None:
            continue
        encoder_key = AUGMENT.key(vocabulary, corpus, checkpoint, settings.train.encoder, settings.augment)
        if encoder := workspace.read(TitleEncoderFiles, encoder_key):
            mark_used(workspace.folder(vocabulary))
            yield TrainedModel(
                vocabulary=vocabulary,
                corpus=corpus,
                checkpoint=checkpoint,
                encoder=encoder,
                baselines=baselines,
            )


def find_reusable_model(
    home: str, vocabulary: Vocabulary, corpus: Corpus, settings: Settings, sources: LabelSources
) -> TrainedModel | None:
    """Returns the model whose tokens the Vocabulary of this night reuses, or None if this night has to train.

    The model is not reused if the sentence encoder has changed, or if more than the share
    ``tokenize.reuse_share`` of the titles have changed labels.
    """
    workspace = Workspace(home)
    digest = workspace.details(vocabulary).get(TOKENS_OF)
    for model in find_trained_models(home, settings, sources) if digest else ():
        if model.vocabulary.digest == digest:
            encoders = [workspace.details(item)["sentences"] for item in (model.corpus, corpus)]
            share = _changed_label_share(workspace.folder(model.corpus), workspace.folder(corpus))
            return model if encoders[0] == encoders[1] and share <= settings.tokenize.reuse_share else None
    return None


def _changed_label_share(earlier_corpus: Path, corpus: Path) -> float:
    """Returns the share of titles of ``earlier_corpus`` that ``corpus`` lacks or has with other labels."""
    earlier_labels, labels = _read_labels(earlier_corpus), _read_labels(corpus)
    changed_count = sum(labels.get(show_key) != names for show_key, names in earlier_labels.items())
    return changed_count / max(1, len(earlier_labels))


def _read_labels(corpus: Path) -> dict[str, list[str]]:
    """Returns the labels of the titles in the folder of a Corpus by show key."""
    table = pq.read_table(corpus / "titles.parquet", columns=["show_key", "labels"])
    return dict(zip(table["show_key"].to_pylist(), table["labels"].to_pylist(), strict=True))
