"""Words never seen: what n-grams know of them, on words hidden from distilling and on titles of real guides.

Words: a tenth of the trained words is hidden; ridge regression, bag of substrings by SGD (Zhao et al. 2018: mean of n-gram
rows, squared error, rate 1, 20 epochs, 5 with --quick) and the mean vector are asked for them. Centred cosine, since the mean alone has a
high plain one; neighbour recall: share of a hidden word's ten nearest trained words that are found again.

Titles: precision@10 of titles that hold an unseen word, with augmentation against the same model without those words, for
a model of words alone (n-grams come only afterwards) and for one that has n-grams in training itself.

Distilling: 50,000 words of 100 dimensions.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

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
from tasks.tokenize.words import Tokenizer, Words, WordsAndNgrams

EPOCHS, RATE, BATCH = 20, 1.0, 128
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


def title_claims(name: str, learnt: Learnt) -> list[Claim]:
    """Precision@10 on titles with unseen words, with and without augmentation."""
    corpus, raw, lexicon = learnt
    split = np.array([SPLITS[code] for code in corpus.split])
    titles = Titles(split=split, labels=corpus.labels, label_count=len(corpus.label_names), show=corpus.show, family=corpus.family, oov=np.asarray(corpus.oov))
    with_ngrams, without = lexicon.embed(raw), lexicon.without_ngrams().embed(raw)
    claims, training = [], titles.labelled("train")
    for protocol in ("unseen_title", "unseen_show"):
        queries = titles.labelled(protocol)
        queries = queries[titles.oov[queries]]
        scores = [measure(judge_knn(titles, vectors, queries, training, 10))["precision_at_10"] or 0.0 for vectors in (with_ngrams, without)]
        about = f"precision@10, {name}, {protocol}, {len(queries)} titles with unseen words"
        claims.append(Claim(name=about, value=scores[0], rival="without augmentation", rival_value=scores[1], aim=1.15))
    return claims


def word_claims(name: str, lexicon: Lexicon, epochs: int) -> list[Claim]:
    """Hidden words: centred cosine and neighbour recall of ridge, of SGD and of the mean."""
    words, rows = word_vectors(lexicon)
    hidden = np.random.default_rng(0).random(len(words)) < 0.1
    unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    mean = unit[~hidden].mean(axis=0)
    seen, unseen = ([word for word, own in zip(words, hidden, strict=True) if own == which] for which in (False, True))
    ridge = Distilled().fit(seen, rows[~hidden], np.ones(len(seen), dtype=np.int64)).vectors(unseen)[0]
    ridge = ridge / np.maximum(np.linalg.norm(ridge, axis=1, keepdims=True), 1e-12)
    sgd = bag_of_substrings(seen, unit[~hidden], unseen, epochs)
    plain = np.tile(mean, (len(unseen), 1))
    found = {kind: _quality(vectors, unit[hidden], unit[~hidden], mean) for kind, vectors in (("ridge", ridge), ("SGD", sgd), ("mean", plain))}
    about = f"{name}, {len(unseen)} hidden of {len(words)} words"
    return [
        Claim(name=f"centred cosine, {about}", value=found["ridge"][0], rival="bag of substrings by SGD", rival_value=found["SGD"][0], aim=1),
        Claim(name=f"cosine as it is, {about}", value=found["ridge"][1], rival="mean vector", rival_value=found["mean"][1], aim=1),
        Claim(name=f"neighbour recall at 10, {about}", value=found["ridge"][2], rival="bag of substrings by SGD", rival_value=found["SGD"][2], aim=1),
        Claim(name=f"neighbour recall at 10, {about}", value=found["ridge"][2], rival="mean vector", rival_value=found["mean"][2], aim=1),
    ]


def bag_of_substrings(words: Sequence[str], targets: np.ndarray, asked: Sequence[str], epochs: int) -> np.ndarray:
    """The published recipe, in plain PyTorch; the released code steps each n-gram's row as if it stood alone in its word."""
    torch.manual_seed(0)
    both = bucket_ids([*words, *asked], 3, 6, 2_000_000)
    _, columns = np.unique(both.values, return_inverse=True)
    columns, offsets = torch.from_numpy(columns), torch.from_numpy(both.offsets)
    rows = torch.zeros(int(columns.max()) + 1, targets.shape[1])
    wanted = torch.from_numpy(np.ascontiguousarray(targets, dtype=np.float32))
    for _ in range(epochs):
        order = torch.randperm(len(words))
        for start in range(0, len(order), BATCH):
            chosen = order[start : start + BATCH]
            lengths = offsets[chosen + 1] - offsets[chosen]
            owner = torch.repeat_interleave(torch.arange(len(chosen)), lengths)
            entries = columns[torch.arange(len(owner)) - torch.repeat_interleave(lengths.cumsum(0) - lengths, lengths) + offsets[chosen][owner]]
            bags = torch.zeros(len(chosen), rows.shape[1]).index_add_(0, owner, rows[entries]) / lengths.clamp(min=1).unsqueeze(1)
            rows.index_add_(0, entries, ((wanted[chosen] - bags) * (RATE / rows.shape[1]))[owner])
    first = len(words)
    lengths = offsets[first + 1 :] - offsets[first:-1]
    owner = torch.repeat_interleave(torch.arange(len(asked)), lengths)
    return (torch.zeros(len(asked), rows.shape[1]).index_add_(0, owner, rows[columns[offsets[first] :]]) / lengths.clamp(min=1).unsqueeze(1)).numpy()


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
        for name, tokenizer in (("words alone", Words()), ("words and n-grams", WordsAndNgrams())):
            learnt = learn(Path(folder) / name.replace(" ", "-"), feeds, tokenizer)
            claims += title_claims(name, learnt) + word_claims(name, learnt[2], 5 if quick else EPOCHS)
    return [*claims, distilling_claim(5_000 if quick else 50_000)]


if __name__ == "__main__":
    sys.exit(run(measure_oov, __doc__ or ""))
