"""fastText supervised (PyPI fasttext-wheel): softmax over the labels of a title."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from benchmarks.rivals.contest import DIM, Contest, Spent, Trained, timed


@dataclass(frozen=True)
class FastText:
    """Rival that trains fastText on our tokens, or on words with n-grams in as many buckets as our rows."""

    name: str
    reads: Literal["tokens", "words"]
    longest_ngram: int = 0
    learning_rate: float = (
        0.5  # its tutorial's value for short texts; the default of 0.1 needs five times as many epochs
    )
    epochs: Sequence[int] = (2, 5, 10, 25, 50)

    def train(self, contest: Contest, epochs: int, seed: int, threads: int) -> Trained:
        """Trains a supervised fastText model.

        Reading the words of the file and creating the rows (measured by a call with zero epochs) are
        subtracted, because ours are not measured either.
        """
        import fasttext

        texts = contest.token_texts() if self.reads == "tokens" else contest.word_texts()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "train.txt"
            lines = (
                " ".join([*(f"__label__{label}" for label in contest.labels_of(row)), texts[row]])
                for row in contest.training
            )
            file.write_text("\n".join(lines) + "\n", encoding="utf-8")
            models = []
            ngrams = (
                {"minn": 3, "maxn": self.longest_ngram, "bucket": len(contest.corpus.kinds)}
                if self.longest_ngram
                else {"minn": 0, "maxn": 0}
            )
            options = ngrams | {
                "lr": self.learning_rate,
                "dim": DIM,
                "thread": threads,
                "seed": seed,
                "verbose": 0,
            }
            reading = min(
                (timed(lambda: fasttext.train_supervised(str(file), epoch=0, **options)) for _ in range(2)),
                key=lambda spent: spent.wall,
            )
            seconds = timed(
                lambda: models.append(fasttext.train_supervised(str(file), epoch=epochs, **options))
            )
        spent = Spent(seconds.wall - reading.wall, seconds.cpu - reading.cpu)
        return Trained(spent, lambda: np.stack([models[0].get_sentence_vector(text) for text in texts]))
