"""One guide, split five times by salt; what a system answers to the held-out titles; figures of all folds."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq

from storage.artifacts import Corpus, Vocabulary
from storage.digests import hashes
from storage.formats.corpus import OpenCorpus, open_corpus
from storage.workspace import Workspace
from tasks.baselines import Baseline
from tasks.baselines.inputs import TitleInputs, dense_inputs
from tasks.baselines.predictions import LabelledTitles, Predictions
from tasks.baselines.tfidf import SEPARATOR
from tasks.scoring.bootstrap import count_groups, draw_groups, number_groups, resample_mean
from tasks.scoring.metrics import Judged, judge
from tasks.scoring.protocols import FORMS, PROTOCOLS, Titles, judge_knn
from tasks.text.titles import parse_title

SALTS = tuple(f"guidespace-{number}" for number in range(1, 6))
K, RESAMPLES = 10, 1000


class Answer(NamedTuple):
    """One number a held-out title; precision is None where nothing is a neighbour, family a hash."""

    correct: np.ndarray
    precision_at_10: np.ndarray | None
    family: np.ndarray


Answers = dict[tuple[str, str], Answer]  # of (form, protocol); without protocols that hold no labelled title


class Figure(NamedTuple):
    """A mean over titles or guides, its standard error, and how many titles or guides."""

    value: float
    error: float
    n: int

    @property
    def interval(self) -> tuple[float, float]:
        """Of 95 %."""
        return self.value - 1.96 * self.error, self.value + 1.96 * self.error


@dataclass(frozen=True)
class Fold:
    """A guide's Corpus under one salt, with how titles air."""

    home: Path
    vocabulary: Vocabulary
    corpus: Corpus

    @property
    def folder(self) -> Path:
        """Of the Corpus."""
        return Workspace(self.home).folder(self.corpus)

    @cached_property
    def opened(self) -> OpenCorpus:
        """The Corpus, mapped."""
        return open_corpus(self.folder)

    @cached_property
    def titles(self) -> Titles:
        """Splits and labels."""
        return Titles.of(self.opened)

    @cached_property
    def family(self) -> np.ndarray:
        """Hash of each title's first content word: the same in every fold."""
        raw = pq.read_table(self.folder / "titles.parquet", columns=["raw_title"])["raw_title"].to_pylist()
        return hashes((parse_title(title).family for title in raw), "family")

    def inputs(self, form: str) -> TitleInputs:
        """What baselines read."""
        about = pq.read_table(self.folder / "titles.parquet", columns=["raw_title", "context"])
        texts = about["raw_title"].to_pylist()
        if form == "title_context":
            contexts = about["context"].to_pylist()
            tokens = (" ".join("_".join(token.split()) for token in own or ()) for own in contexts)
            texts = [text + SEPARATOR + own for text, own in zip(texts, tokens, strict=True)]
        return TitleInputs(texts, dense_inputs(self.opened.sentences, self.opened.descriptions))

    def answer_ours(self) -> Answers:
        """Answers of GuideSpace: train, augment and embed with default settings, k-NN in both forms."""
        from prefect.logging import disable_run_logger

        from tasks.augment.settings import AugmentSettings
        from tasks.augment.task import augment
        from tasks.embed.task import embed
        from tasks.train.settings import TrainSettings
        from tasks.train.task import train

        place, settings = str(self.home), TrainSettings()
        with disable_run_logger():
            checkpoint = train.fn(place, self.corpus, settings)
            stages = self.vocabulary, self.corpus, checkpoint, settings.encoder, AugmentSettings()
            vectors = embed.fn(place, self.corpus, augment.fn(place, *stages))
        folder = Workspace(self.home).folder(vectors)
        alone, full = (np.load(folder / f"{name}.npy") for name in ("vectors", "full"))
        return answer_knn(self, "title_only", alone) | answer_knn(self, "title_context", full)


def make_folds(
    home: Path, feeds: Sequence[Path], salts: Sequence[str] = SALTS, encode: bool = True
) -> list[Fold]:
    """Reads feeds once and splits them by each salt; the corpora hold sentence vectors where ``encode``."""
    from prefect.logging import disable_run_logger

    from tasks.ingest.settings import IngestSettings
    from tasks.ingest.task import ingest
    from tasks.preprocess.settings import PreprocessSettings
    from tasks.preprocess.task import preprocess
    from tasks.sentences.none import NoSentences
    from tasks.sentences.settings import SentenceSettings
    from tasks.tokenize.settings import TokenizeSettings
    from tasks.tokenize.splits import SplitSettings
    from tasks.tokenize.task import tokenize

    folds, place = [], str(Workspace(home).home)
    settings = PreprocessSettings()
    if not encode:
        settings = PreprocessSettings(sentences=SentenceSettings(encoder=NoSentences()))
    with disable_run_logger():
        guide = ingest.fn(place, [str(feed) for feed in feeds], IngestSettings())
        for salt in salts:
            vocabulary = tokenize.fn(place, guide, TokenizeSettings(splits=SplitSettings(salt=salt)))
            corpus = preprocess.fn(place, guide, vocabulary, salt, settings)
            folds.append(Fold(Path(place), vocabulary, corpus))
    return folds


def answer(fold: Fold, baseline: Baseline) -> Answers:
    """Answers of a baseline in both forms; NoSentenceVectors as its ``fit``."""
    titles, answers = fold.titles, {}
    training = titles.labelled("train")
    labels = titles.labels.take(training)
    for form in FORMS:
        inputs = fold.inputs(form)
        fitted = baseline.fit(LabelledTitles(inputs.take(training), labels, titles.label_count))
        for protocol in PROTOCOLS:
            queries = titles.labelled(protocol)
            if len(queries):
                predictions: Predictions = fitted.predict(inputs.take(queries))
                judged = judge(predictions, titles.labels.take(queries), labels)
                answers[form, protocol] = _answer(judged, fold.family[queries])
    return answers


def answer_knn(fold: Fold, form: str, vectors: np.ndarray) -> Answers:
    """Answers of the k-NN by unit vectors, float32 (titles, dim), zero where nothing is known of a title."""
    titles, answers = fold.titles, {}
    training = titles.labelled("train")
    for protocol in PROTOCOLS:
        queries = titles.labelled(protocol)
        if len(queries):
            judged = judge_knn(titles, vectors, queries, training, K)
            answers[form, protocol] = _answer(judged, fold.family[queries])
    return answers


def _answer(judged: Judged, family: np.ndarray) -> Answer:
    return Answer(judged.correct.astype(np.float64), judged.precision_at_k, family)


def pool(answers: Sequence[Answer], resamples: int = RESAMPLES) -> dict[str, Figure]:
    """Accuracy and, of a k-NN, precision_at_10 of one held-out set over the folds.

    The bootstrap behind their errors draws families, each with its titles of all folds.
    """
    family = number_groups(np.concatenate([own.family for own in answers]))
    counts = draw_groups(count_groups(family), resamples, np.random.default_rng(1))
    columns = {"accuracy": [own.correct for own in answers]}
    columns["precision_at_10"] = [own.precision_at_10 for own in answers if own.precision_at_10 is not None]
    figures = {}
    for name, column in columns.items():
        if column:
            values = np.concatenate(column)
            error = float(resample_mean(values, family, counts).std())
            figures[name] = Figure(float(values.mean()), error, len(values))
    return figures
