"""fastText supervised (PyPI fasttext-wheel): a title against its labels, softmax."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from benchmarks._rivals.contest import DIM, Contest, Trained, timed


@dataclass(frozen=True)
class FastText:
    """On our tokens, or on words from which it cuts n-grams of its own."""

    name: str
    reads: Literal["tokens", "words"]
    longest_ngram: int = 0
    learning_rate: float = 0.5  # its tutorial's value for short texts; at the default of 0.1 it needs five times the epochs
    epochs: Sequence[int] = (2, 5, 10, 25, 50)

    def train(self, contest: Contest, epochs: int, seed: int) -> Trained:
        """Trains with two threads; reading the file is part of its training, as it is always."""
        import fasttext

        texts = contest.token_texts() if self.reads == "tokens" else contest.word_texts()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "train.txt"
            lines = (" ".join([*(f"__label__{label}" for label in contest.labels_of(row)), texts[row]]) for row in contest.training)
            file.write_text("\n".join(lines) + "\n", encoding="utf-8")
            models = []
            ngrams = {"minn": 3 if self.longest_ngram else 0, "maxn": self.longest_ngram}
            options = {"lr": self.learning_rate, "epoch": epochs, "dim": DIM, "thread": 2, "seed": seed, "verbose": 0}
            seconds = timed(lambda: models.append(fasttext.train_supervised(str(file), **ngrams, **options)))
        return Trained(seconds, lambda: np.stack([models[0].get_sentence_vector(text) for text in texts]))
