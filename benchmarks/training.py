"""Training alone, imports excluded: titles a second of the nightly training against the plain PyTorch recipe.

The plain recipe: nn.EmbeddingBag(sparse=True), triplet margin loss on unit vectors with one positive of the same
category and ten sampled negatives, SparseAdam, batch 1024; token ids prepared beforehand, as ours are. Both see the same
titles and the same tokens; a title counts once, as an anchor, in both.

Claims: throughput on words alone and on the nightly run's tokens (median of repeats, in turn), and what both learnt:
precision@10 on unseen_title after the same number of epochs.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.claims import Claim, guides, run
from benchmarks.road import make_corpus
from tasks.evaluate.metrics import measure
from tasks.evaluate.protocols import Titles, judge_knn
from tasks.preprocess.bags import Bagger
from tasks.preprocess.corpus import OpenCorpus, open_corpus
from tasks.tokenize.splits import SPLITS
from tasks.tokenize.words import Words, WordsAndNgrams
from tasks.train.loop import Training
from tasks.train.settings import TrainSettings

DIM, BATCH, NEGATIVES, MARGIN, EPOCHS = 128, 1024, 10, 0.2, 6


class PlainRecipe:
    """What the PyTorch documentation leads to."""

    def __init__(self, corpus: OpenCorpus, seed: int) -> None:
        self.corpus, self.rng = corpus, np.random.default_rng(seed)
        torch.manual_seed(seed)
        self.table = nn.EmbeddingBag(len(corpus.kinds), DIM, mode="mean", sparse=True)
        nn.init.normal_(self.table.weight, std=0.1)
        self.optimizer = torch.optim.SparseAdam(self.table.parameters(), lr=0.01)
        self.rows = corpus.training
        labels = corpus.labels.take(self.rows)
        by_label = np.argsort(labels.values, kind="stable")
        self.members = np.repeat(self.rows, labels.lengths)[by_label]  # titles, label by label
        self.sizes = np.bincount(labels.values, minlength=len(corpus.label_names))
        self.firsts = np.cumsum(self.sizes) - self.sizes

    def _encode(self, rows: np.ndarray) -> torch.Tensor:
        bags = self.corpus.tokens.take(rows)
        return F.normalize(self.table(torch.from_numpy(bags.values.astype(np.int64)), torch.from_numpy(bags.offsets[:-1])), dim=1)

    def epoch(self) -> None:
        """One pass over the training titles."""
        order = self.rng.permutation(self.rows)
        for start in range(0, len(order), BATCH):
            anchors = order[start : start + BATCH]
            offsets, lengths = self.corpus.labels.offsets[anchors], self.corpus.labels.offsets[anchors + 1] - self.corpus.labels.offsets[anchors]
            chosen = self.corpus.labels.values[offsets + (self.rng.random(len(anchors)) * lengths).astype(np.int64)]
            positives = self.members[self.firsts[chosen] + (self.rng.random(len(anchors)) * self.sizes[chosen]).astype(np.int64)]
            negatives = self.rng.choice(self.rows, size=len(anchors) * NEGATIVES)
            anchor, positive = self._encode(anchors), self._encode(positives)
            negative = self._encode(negatives).view(len(anchors), NEGATIVES, DIM)
            near = (anchor * positive).sum(1, keepdim=True)
            far = (anchor.unsqueeze(1) * negative).sum(2)
            loss = (MARGIN - near + far).clamp(min=0).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def vectors(self) -> np.ndarray:
        """Unit vectors of every title of the corpus."""
        with torch.inference_mode():
            return self._encode(np.arange(len(self.corpus))).numpy()


def measure_training(quick: bool) -> Sequence[Claim]:
    """All claims of this file."""
    claims: list[Claim] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, tokenizer in (("words", Words()), ("words and n-grams", WordsAndNgrams())):
            corpus_folder = make_corpus(Path(folder) / name.replace(" ", "-"), guides("ZA1") if quick else guides("UK1", "US1", "AU1", "ZA1"), tokenizer)
            corpus = open_corpus(corpus_folder)
            ours, theirs, quality = [], [], (float("nan"), float("nan"))
            repeats, epochs = (3, 2) if quick else (5, EPOCHS)
            for repeat in range(repeats):
                training = Training(corpus_folder, TrainSettings(dim=DIM, epochs=epochs, seed=repeat))
                started = time.perf_counter()
                for _ in training.run():
                    pass
                ours.append(len(corpus.training) * epochs / (time.perf_counter() - started))
                plain = PlainRecipe(corpus, repeat)
                theirs.append(max(_speed(plain, corpus, threads) for threads in (1, 2)))  # whichever suits it better just now
                if repeat == 0:
                    torch.set_num_threads(1)
                    for _ in range(epochs - 2):
                        plain.epoch()
                    quality = _precision(corpus, _our_vectors(training, corpus)), _precision(corpus, plain.vectors())
            claims.append(Claim(name=f"training on {name}, titles/s", value=statistics.median(ours), rival="plain PyTorch", rival_value=statistics.median(theirs), aim=3))
            claims.append(Claim(name=f"precision@10 on unseen_title after {epochs} epochs, {name}", value=quality[0], rival="plain PyTorch", rival_value=quality[1], aim=1))
    return claims


def _speed(plain: PlainRecipe, corpus: OpenCorpus, threads: int) -> float:
    """Titles a second of one epoch of the plain recipe."""
    torch.set_num_threads(threads)
    started = time.perf_counter()
    plain.epoch()
    return len(corpus.training) / (time.perf_counter() - started)


def _our_vectors(training: Training, corpus: OpenCorpus) -> np.ndarray:
    bags = Bagger(corpus.kinds).bags(corpus.tokens.take(np.arange(len(corpus))))
    with torch.inference_mode():
        return training.settings.encoder.encode(training.table.gather(bags.ids)[0], bags).numpy()


def _precision(corpus: OpenCorpus, vectors: np.ndarray) -> float:
    split = np.array([SPLITS[code] for code in corpus.split])
    titles = Titles(split=split, labels=corpus.labels, label_count=len(corpus.label_names), show=corpus.show, family=corpus.family, oov=corpus.oov)
    value = measure(judge_knn(titles, vectors, titles.labelled("unseen_title"), titles.labelled("train"), 10))["precision_at_10"]
    return float("nan") if value is None else value


if __name__ == "__main__":
    sys.exit(run(measure_training, __doc__ or ""))
