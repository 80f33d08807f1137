"""Vectors of unseen words: hidden words of a distilled model, and titles of real guides with unseen words.

Words: a tenth of the trained words is hidden, and their vectors are predicted by ridge regression and by the
mean vector. Scores are the centred cosine, since the plain cosine of the mean is high, and neighbour recall:
the share of the ten nearest trained words of a hidden word that are also nearest to its predicted vector.

Titles: precision@10 of titles with an unseen word, and of titles without one. Three models: words only; with
n-grams in training; with n-grams and the sentence vector, the default. Comparisons: each with augmentation
against the same model without; n-grams against words only, both without augmentation, where the second has no
vector for unseen words; and the model with the sentence vector against the same model without.

Distillation: 50,000 words of 100 dimensions.
"""

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from benchmarks.claims import Claim, guides, run
from benchmarks.stages import ingest, preprocess, tokenize, train_and_augment
from benchmarks.text.fasttext_reader import random_words
from storage.formats.corpus import OpenCorpus, open_corpus
from storage.home.workspace import Workspace
from tasks.augment.distilled import Distilled
from tasks.augment.settings import AugmentSettings
from tasks.encoder.fasttext_export import word_vectors
from tasks.encoder.title_encoder import TitleEncoder
from tasks.fasttext.ngrams import bucket_ids
from tasks.preprocess.settings import PreprocessSettings
from tasks.scoring.metrics import measure
from tasks.scoring.protocols import CorpusTitles, score_knn
from tasks.sentences import NoSentences
from tasks.sentences.settings import SentenceSettings
from tasks.text.tokenizers import Tokenizer
from tasks.text.words import Words, WordsAndNgrams
from tasks.tokenize.settings import TokenizeSettings

PROTOCOLS = ("unseen_title", "unseen_show")
GROUPS = ("with unseen words", "of unseen words alone")
WORDS, NGRAMS, SENTENCE = "words alone", "words and n-grams", "words, n-grams and the sentence vector"
Learnt = tuple[OpenCorpus, list[str], TitleEncoder]


def learn(home: Path, feeds: Sequence[Path], tokenizer: Tokenizer, sentences: SentenceSettings) -> Learnt:
    """Trains a model on feeds; returns its corpus, the raw titles and the title encoder."""
    tokenizing = TokenizeSettings(tokenizer=tokenizer)
    guide = ingest(home, feeds)
    vocabulary = tokenize(home, guide, tokenizing)
    settings = PreprocessSettings(sentences=sentences)
    corpus = preprocess(home, guide, vocabulary, tokenizing.splits.salt, settings)
    encoder = train_and_augment(home, vocabulary, corpus, AugmentSettings(strategy=Distilled()))
    folder = Workspace(home).folder(corpus)
    return (
        open_corpus(folder),
        pq.read_table(folder / "titles.parquet")["raw_title"].to_pylist(),
        TitleEncoder.open(Workspace(home).folder(encoder)),
    )


def title_precision(learnt: Learnt, *, augmented: bool) -> dict[tuple[str, str], tuple[float, int]]:
    """Returns precision@10 and the number of titles, by group and protocol."""
    corpus, raw, encoder = learnt
    titles = CorpusTitles.from_corpus(corpus)
    dense = encoder.bag.sentence_features(corpus.sentences, corpus.descriptions)
    vectors = (encoder if augmented else encoder.without_unseen_words()).embed(raw, dense)
    words, unseen = encoder.count_unseen(raw)
    precisions = {}
    for group, is_selected in zip(GROUPS, (titles.oov, (unseen == words) & (words > 0)), strict=True):
        for protocol in PROTOCOLS:
            queries = titles.labelled(protocol)
            queries = queries[is_selected[queries]]
            measured = measure(score_knn(titles, vectors, queries, 10))
            precisions[group, protocol] = (measured["precision_at_k"] or 0.0, len(queries))
    return precisions


def title_claims(models: dict[str, Learnt]) -> list[Claim]:
    """Measures the gain of augmentation for each model, and of n-grams and of the sentence vector."""
    values = {
        (name, augmented_model): title_precision(learnt, augmented=augmented_model)
        for name, learnt in models.items()
        for augmented_model in (True, False)
    }
    pairs = [(name, name, False) for name in models] + [(NGRAMS, WORDS, False), (SENTENCE, NGRAMS, True)]
    claims = []
    for group in GROUPS:
        for protocol in PROTOCOLS:
            for name, rival, augmented in pairs:
                value, number = values[name, True][group, protocol]
                claims.append(
                    Claim(
                        f"precision@10, {name}, {protocol}, {number} titles {group}",
                        value,
                        rival if augmented else f"{rival}, without augmentation",
                        values[rival, augmented][group, protocol][0],
                        aim=1.15,
                    )
                )
    return claims


def word_claims(name: str, encoder: TitleEncoder) -> list[Claim]:
    """Compares ridge regression with the mean vector on hidden words: centred cosine, neighbour recall."""
    words, rows = word_vectors(encoder)
    hidden = np.random.default_rng(0).random(len(words)) < 0.1
    unit_rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    mean = unit_rows[~hidden].mean(axis=0)
    seen, unseen = (
        [word for word, own in zip(words, hidden, strict=True) if own == which] for which in (False, True)
    )

    vectors = Distilled().fit(seen, rows[~hidden], np.ones(len(seen), dtype=np.int64)).vectors(unseen)[0]
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    qualities = {"ridge": _quality(vectors, unit_rows[hidden], unit_rows[~hidden], mean)}
    qualities["mean vector"] = _quality(
        np.tile(mean, (len(unseen), 1)), unit_rows[hidden], unit_rows[~hidden], mean
    )
    about = f"{name}, {len(unseen)} hidden of {len(words)} words"
    measures = ("centred cosine", "cosine as it is", "neighbour recall at 10")
    centred = Claim(f"{measures[0]}, {about}", qualities["ridge"][0])  # the centred mean vector is zero
    pairs = list(zip(measures, qualities["ridge"], qualities["mean vector"], strict=True))[1:]
    plain = [Claim(f"{what}, {about}", own, "mean vector", other, aim=1) for what, own, other in pairs]
    return [centred, *plain]


def _quality(
    vectors: np.ndarray, truth: np.ndarray, trained: np.ndarray, mean: np.ndarray
) -> tuple[float, float, float]:
    """Returns centred cosine, plain cosine, and recall of the ten nearest trained words."""
    neighbour_ids = [np.argpartition(-(rows @ trained.T), 10, axis=1)[:, :10] for rows in (vectors, truth)]
    recall = np.mean(
        [len(set(ids) & set(true_ids)) / 10 for ids, true_ids in zip(*neighbour_ids, strict=True)]
    )
    return _cosine(vectors - mean, truth - mean), _cosine(vectors, truth), float(recall)


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    norms = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    return float(np.mean(np.einsum("ij,ij->i", one, other) / np.maximum(norms, 1e-12)))


def distilling_claim(words: int) -> Claim:
    """Measures the seconds of distilling n-gram rows from synthetic words of 100 dimensions."""
    rng = np.random.default_rng(0)
    names = random_words(words, rng)
    ids = bucket_ids(names, 3, 6, 2000)
    rows = np.add.reduceat(
        rng.standard_normal((2000, 100)).astype(np.float32)[ids.values], ids.offsets[:-1]
    ) + rng.standard_normal((words, 100)).astype(np.float32)
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        Distilled().fit(names, rows, np.ones(words, dtype=np.int64))
        seconds.append(time.perf_counter() - start)
    return Claim(f"distilling {words} words × 100, s", sorted(seconds)[1], aim=3, better="less")


def measure_oov(quick: bool) -> Sequence[Claim]:
    """Measures all claims of this file."""
    claims: list[Claim] = []
    feeds = guides("ZA1") if quick else guides("UK1", "US1", "AU1", "ZA1")
    with tempfile.TemporaryDirectory() as folder:
        no_sentences = SentenceSettings(encoder=NoSentences())
        models = {
            WORDS: learn(Path(folder), feeds, Words(), no_sentences),
            NGRAMS: learn(Path(folder), feeds, WordsAndNgrams(), no_sentences),
            SENTENCE: learn(Path(folder), feeds, WordsAndNgrams(), SentenceSettings()),
        }
        claims += title_claims(models)
        for name in (WORDS, NGRAMS):
            claims += word_claims(name, models[name][2])
    return [*claims, distilling_claim(5_000 if quick else 50_000)]


if __name__ == "__main__":
    sys.exit(run(measure_oov, __doc__ or ""))
