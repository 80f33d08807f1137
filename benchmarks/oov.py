"""Words never seen: what n-grams know of them, on words hidden from distilling and on titles of real guides.

Words: a tenth of the trained words is hidden; ridge regression and the mean vector are asked for them. Centred cosine, since the mean alone has a high plain one; neighbour
recall: share of a hidden word's ten nearest trained words that are found again.

Titles: precision@10 of titles that hold an unseen word. For a model of words alone and for one with n-grams in training: with
augmentation against the same model without; and n-grams in training with augmentation against words alone without, the model
that has nothing for a word never seen.

Distilling: 50,000 words of 100 dimensions.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.claims import Claim, guides, run
from benchmarks.fasttext_reader import random_words
from tasks.augment.distilled import Distilled
from tasks.augment.fasttext.exporting import word_vectors
from tasks.augment.lexicon import Lexicon
from tasks.augment.ngrams import bucket_ids
from tasks.evaluate.metrics import measure
from tasks.evaluate.protocols import Titles, judge_knn
from tasks.preprocess.corpus import OpenCorpus
from tasks.tokenize.splits import SPLITS
from tasks.tokenize.strategies import Tokenizer
from tasks.tokenize.words import Words, WordsAndNgrams

PROTOCOLS = ("unseen_title", "unseen_show")
Learnt = tuple[OpenCorpus, list[str], Lexicon]


def learn(home: Path, feeds: Sequence[Path], tokenizer: Tokenizer) -> Learnt:
    """Corpus, raw titles and lexicon of some feeds."""
    import pyarrow.parquet as pq
    from prefect.logging import disable_run_logger

    from storage.workspace import Workspace
    from tasks.augment.settings import AugmentSettings
    from tasks.augment.task import augment
    from tasks.ingest.settings import IngestSettings
    from tasks.ingest.task import ingest
    from tasks.preprocess.corpus import open_corpus
    from tasks.preprocess.settings import PreprocessSettings
    from tasks.preprocess.task import preprocess
    from tasks.tokenize.settings import TokenizeSettings
    from tasks.tokenize.task import tokenize
    from tasks.train.settings import TrainSettings
    from tasks.train.task import train

    place, tokenizing, training = str(Workspace(home).home), TokenizeSettings(tokenizer=tokenizer), TrainSettings()
    with disable_run_logger():
        guide = ingest.fn(place, [str(feed) for feed in feeds], IngestSettings())
        vocabulary = tokenize.fn(place, guide, tokenizing)
        corpus = preprocess.fn(place, guide, vocabulary, tokenizing, PreprocessSettings())
        checkpoint = train.fn(place, corpus, training)
        lexicon = augment.fn(place, vocabulary, checkpoint, tokenizing, training, AugmentSettings())
    folder = Workspace(home).folder(corpus)
    return open_corpus(folder), pq.read_table(folder / "titles.parquet")["raw_title"].to_pylist(), Lexicon.open(Workspace(home).folder(lexicon))


def title_precision(learnt: Learnt, *, augmented: bool) -> dict[str, tuple[float, int]]:
    """Precision@10 on titles with unseen words, and how many there are, by protocol."""
    corpus, raw, lexicon = learnt
    split = np.array([SPLITS[code] for code in corpus.split])
    titles = Titles(split=split, labels=corpus.labels, label_count=len(corpus.label_names), show=corpus.show, family=corpus.family, oov=np.asarray(corpus.oov))
    vectors, training = (lexicon if augmented else lexicon.without_ngrams()).embed(raw), titles.labelled("train")
    found = {}
    for protocol in PROTOCOLS:
        queries = titles.labelled(protocol)
        queries = queries[titles.oov[queries]]
        found[protocol] = measure(judge_knn(titles, vectors, queries, training, 10))["precision_at_10"] or 0.0, len(queries)
    return found


def title_claims(words: Learnt, ngrams: Learnt) -> list[Claim]:
    """What augmenting adds to each model; and, of two models, what n-grams of both kinds have over words alone."""
    values = {(name, own): title_precision(learnt, augmented=own) for name, learnt in (("words alone", words), ("words and n-grams", ngrams)) for own in (True, False)}
    rivals = (("words alone", "words alone"), ("words and n-grams", "words and n-grams"), ("words and n-grams", "words alone"))
    claims = []
    for protocol in PROTOCOLS:
        for name, rival in rivals:
            (value, number), (other, _) = values[name, True][protocol], values[rival, False][protocol]
            models = f"{name} in training" if name == rival else f"two models: {name} in training beside {rival}"
            about = f"precision@10, {models}, {protocol}, {number} titles with unseen words"
            claims.append(Claim(name=about, value=value, rival=f"{rival}, without augmentation", rival_value=other, aim=1.15))
    return claims


def word_claims(name: str, lexicon: Lexicon) -> list[Claim]:
    """Hidden words: centred cosine and neighbour recall of ridge regression, beside the mean vector."""
    words, rows = word_vectors(lexicon)
    hidden = np.random.default_rng(0).random(len(words)) < 0.1
    unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    mean = unit[~hidden].mean(axis=0)
    seen, unseen = ([word for word, own in zip(words, hidden, strict=True) if own == which] for which in (False, True))

    vectors = Distilled().fit(seen, rows[~hidden], np.ones(len(seen), dtype=np.int64)).vectors(unseen)[0]
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    found = {"ridge": _quality(vectors, unit[hidden], unit[~hidden], mean)}
    found["mean vector"] = _quality(np.tile(mean, (len(unseen), 1)), unit[hidden], unit[~hidden], mean)
    about = f"{name}, {len(unseen)} hidden of {len(words)} words"
    measures = ("centred cosine", "cosine as it is", "neighbour recall at 10")
    centred = Claim(name=f"{measures[0]}, {about}", value=found["ridge"][0])  # the mean vector has none
    return [centred] + [
        Claim(
            name=f"{measures[number]}, {about}", value=found["ridge"][number],
            rival="mean vector", rival_value=found["mean vector"][number], aim=1,
        )
        for number in (1, 2)
    ]  # fmt: skip


def _quality(vectors: np.ndarray, truth: np.ndarray, trained: np.ndarray, mean: np.ndarray) -> tuple[float, float, float]:
    """Centred cosine, plain cosine, share of the ten nearest trained words found again."""
    nearest = [np.argpartition(-(own @ trained.T), 10, axis=1)[:, :10] for own in (vectors, truth)]
    recall = np.mean([len(set(found) & set(wanted)) / 10 for found, wanted in zip(*nearest, strict=True)])
    return _cosine(vectors - mean, truth - mean), _cosine(vectors, truth), float(recall)


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    norms = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    return float(np.mean(np.einsum("ij,ij->i", one, other) / np.maximum(norms, 1e-12)))


def distilling_claim(words: int) -> Claim:
    """Seconds for so many words of 100 dimensions whose vectors their n-grams make, with noise."""
    rng = np.random.default_rng(0)
    names = random_words(words, rng)
    ids = bucket_ids(names, 3, 6, 2000)
    rows = np.add.reduceat(rng.standard_normal((2000, 100)).astype(np.float32)[ids.values], ids.offsets[:-1]) + rng.standard_normal((words, 100)).astype(np.float32)
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        Distilled().fit(names, rows, np.ones(words, dtype=np.int64))
        seconds.append(time.perf_counter() - start)
    return Claim(name=f"distilling {words} words × 100, s", value=sorted(seconds)[1], aim=10, better="less")


def measure_oov(quick: bool) -> Sequence[Claim]:
    """All claims of this file."""
    claims: list[Claim] = []
    feeds = guides("ZA1") if quick else guides("UK1", "US1", "AU1", "ZA1")
    with tempfile.TemporaryDirectory() as folder:
        words, ngrams = (learn(Path(folder) / tokenizer.name, feeds, tokenizer) for tokenizer in (Words(), WordsAndNgrams()))
        claims += title_claims(words, ngrams)
        for name, learnt in (("words alone", words), ("words and n-grams", ngrams)):
            claims += word_claims(name, learnt[2])
    return [*claims, distilling_claim(5_000 if quick else 50_000)]


if __name__ == "__main__":
    sys.exit(run(measure_oov, __doc__ or ""))
