"""StaticEmbedding of sentence-transformers with MultipleNegativesRankingLoss and the library's trainer."""

import sys
import tempfile
import warnings
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass

import numpy as np

from benchmarks.rivals.contest import DIM, Contest, Trained, timed

BATCH, RATE = 2048, 0.2  # values of its authors for their static models


@dataclass(frozen=True)
class StaticEmbedding:
    """Rival that trains on pairs of titles of one category; the other pairs of a batch are the negatives."""

    name: str = "StaticEmbedding"
    epochs: Sequence[int] = (1, 3, 10)

    def train(self, contest: Contest, epochs: int, seed: int, threads: int) -> Trained:
        """Trains with MultipleNegativesRankingLoss and the trainer of sentence-transformers."""
        # the trainer prints, but our standard output may be JSON
        with warnings.catch_warnings(), redirect_stdout(sys.stderr):
            warnings.simplefilter("ignore")
            return self._train(contest, epochs, seed)

    def _train(self, contest: Contest, epochs: int, seed: int) -> Trained:
        import torch
        from datasets import Dataset, disable_progress_bars  # pyright: ignore[reportMissingImports]
        from sentence_transformers import (  # pyright: ignore[reportMissingImports]
            SentenceTransformer,
            SentenceTransformerTrainer,
            SentenceTransformerTrainingArguments,
        )
        from sentence_transformers.losses import MultipleNegativesRankingLoss  # pyright: ignore[reportMissingImports]
        from sentence_transformers.models import StaticEmbedding as Module  # pyright: ignore[reportMissingImports]
        from tokenizers import Tokenizer, models, pre_tokenizers  # pyright: ignore[reportMissingImports]

        disable_progress_bars()
        torch.manual_seed(seed)
        texts = contest.token_texts()
        vocabulary = {f"t{number}": number for number in range(len(contest.corpus.kinds))} | {
            "[UNK]": len(contest.corpus.kinds)
        }
        tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()  # pyright: ignore[reportAttributeAccessIssue]
        model = SentenceTransformer(modules=[Module(tokenizer, embedding_dim=DIM)], device="cpu")
        rng = np.random.default_rng(seed)
        epoch_pairs = [contest.pairs(rng) for _ in range(epochs)]  # new pairs in every epoch
        anchors, positives = (np.concatenate([pairs[side] for pairs in epoch_pairs]) for side in (0, 1))
        pairs = Dataset.from_dict(
            {"anchor": [texts[row] for row in anchors], "positive": [texts[row] for row in positives]}
        )
        with tempfile.TemporaryDirectory() as folder:
            arguments = SentenceTransformerTrainingArguments(
                output_dir=folder,
                num_train_epochs=1,
                per_device_train_batch_size=BATCH,
                learning_rate=RATE,
                warmup_steps=0.1,
                seed=seed,
                save_strategy="no",
                logging_strategy="no",
                report_to=[],
                disable_tqdm=True,
                use_cpu=True,
            )
            trainer = SentenceTransformerTrainer(
                model=model, args=arguments, train_dataset=pairs, loss=MultipleNegativesRankingLoss(model)
            )
            spent = timed(trainer.train)
        return Trained(spent, lambda: model.encode(texts, batch_size=1024, show_progress_bar=False))
