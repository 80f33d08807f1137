"""Splits one guide five times by salt and answers its held-out titles."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from benchmarks.stages import WITHOUT_SENTENCES, ingest, preprocess, tokenize, train_and_augment
from storage.artifacts import Corpus, Vocabulary
from storage.digests import hashes
from storage.formats.corpus import OpenCorpus, open_corpus
from storage.home.workspace import Workspace
from tasks.baselines import Baseline
from tasks.baselines.inputs import TitleInputs, join_contexts, unit_sentence_features
from tasks.baselines.predictions import LabelledTitles, Predictions
from tasks.encoder.bags import Bagger
from tasks.preprocess.settings import PreprocessSettings
from tasks.scoring.folds import SALTS, ScoresByCell, combine_predictions, predict_held_out
from tasks.scoring.metrics import judge
from tasks.scoring.protocols import FORMS, PROTOCOLS, CorpusTitles
from tasks.text.titles import parse_title
from tasks.tokenize.settings import TokenizeSettings
from tasks.tokenize.splits import SplitSettings
from tasks.train.early_stopping import without_context
from tasks.train.step import Trainer


@dataclass(frozen=True)
class Fold:
    """The Corpus of a guide, split by one salt, with airing contexts."""

    home: Path
    vocabulary: Vocabulary
    corpus: Corpus

    @property
    def folder(self) -> Path:
        """Folder of the Corpus."""
        return Workspace(self.home).folder(self.corpus)

    @cached_property
    def opened(self) -> OpenCorpus:
        """The memory-mapped Corpus."""
        return open_corpus(self.folder)

    @cached_property
    def titles(self) -> CorpusTitles:
        """Splits and labels of the titles."""
        return CorpusTitles.from_corpus(self.opened)

    @cached_property
    def family(self) -> np.ndarray:
        """Hash of each title's first content word: the same in every fold."""
        raw = pq.read_table(self.folder / "titles.parquet", columns=["raw_title"])["raw_title"].to_pylist()
        return hashes((parse_title(title).family for title in raw), "family")

    def inputs(self, form: str) -> TitleInputs:
        """Input of the baselines."""
        about = pq.read_table(self.folder / "titles.parquet", columns=["raw_title", "context"])
        contexts = join_contexts(about["context"].to_pylist()) if form == "title_context" else ()
        every = np.arange(len(self.opened))
        dense = unit_sentence_features(self.opened.sentences, self.opened.descriptions, every)
        return TitleInputs(about["raw_title"].to_pylist(), dense, contexts)

    def answer_ours(self) -> ScoresByCell:
        """Trains with default settings; returns answers of the k-NN, with and without airing context."""
        from prefect.logging import disable_run_logger

        from tasks.embed.task import embed

        encoder = train_and_augment(self.home, self.vocabulary, self.corpus)
        with disable_run_logger():
            vectors = embed.fn(str(self.home), self.corpus, encoder)
        folder = Workspace(self.home).folder(vectors)
        alone, full = (np.load(folder / f"{name}.npy") for name in ("vectors", "full"))
        return self.predict_held_out("title_only", alone) | self.predict_held_out("title_context", full)

    def predict_held_out(self, form: str, vectors: np.ndarray) -> ScoresByCell:
        """Returns the answers of the k-NN by unit vectors, float32 (titles, dim)."""
        return predict_held_out(self.titles, self.family, form, vectors)


def make_folds(
    home: Path, feeds: Sequence[Path], salts: Sequence[str] = SALTS, encode: bool = True
) -> list[Fold]:
    """Reads feeds once and splits them by each salt; ``encode`` adds sentence vectors to the corpora."""
    home = Workspace(home).home
    settings, folds = PreprocessSettings() if encode else WITHOUT_SENTENCES, []
    guide = ingest(home, feeds)
    for salt in salts:
        vocabulary = tokenize(home, guide, TokenizeSettings(splits=SplitSettings(salt=salt)))
        folds.append(Fold(home, vocabulary, preprocess(home, guide, vocabulary, salt, settings)))
    return folds


def answer(fold: Fold, baseline: Baseline) -> ScoresByCell:
    """Returns the answers of a baseline with and without context.

    Raises:
        NoSentenceVectors: The baseline needs sentence vectors, and the corpus has none.
    """
    titles, answers = fold.titles, {}
    training = titles.labelled("train")
    labels = titles.labels.take(training)
    for form in FORMS:
        inputs = fold.inputs(form)
        fitted_model = baseline.fit(LabelledTitles(inputs.take(training), labels, titles.label_count))
        for protocol in PROTOCOLS:
            queries = titles.labelled(protocol)
            if len(queries):
                predictions: Predictions = fitted_model.predict(inputs.take(queries))
                judgement = judge(predictions, titles.labels.take(queries), labels)
                answers[form, protocol] = combine_predictions(
                    judgement, fold.family[queries], titles.oov[queries]
                )
    return answers


def vectors_alone(learner: Trainer, corpus: OpenCorpus) -> np.ndarray:
    """Returns the trained unit vectors of all titles without airing context, float32 (titles, dim)."""
    tokens = without_context(corpus, np.arange(len(corpus.tokens)))
    dense = learner.settings.encoder.sentence_features(corpus.sentences[:], corpus.descriptions[:])
    return learner.vectors(tokens, Bagger(corpus.kinds), dense).numpy()
