"""Writes corpora of any size: Zipf words of a vocabulary that grows with the titles (Heaps' law)."""

import json
from pathlib import Path

import numpy as np

from storage.arrays import Ragged

# Heaps' law with 13,000 distinct words in 60,000 titles, as in the four English guides
LABELS, HEAPS_FACTOR, HEAPS_POWER = 150, 6.0, 0.7
MEAN_WORDS = 3.5


def make_synthetic_corpus(folder: Path, titles: int, seed: int) -> Path:
    """Writes a Corpus of labelled training titles and returns its folder.

    Args:
        folder: Folder that is created.
        titles: Number of titles.
        seed: Seed of all random numbers.
    """
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    tokens = int(HEAPS_FACTOR * titles**HEAPS_POWER)
    lengths = 1 + rng.poisson(MEAN_WORDS - 1, size=titles)
    cumulative = np.cumsum(1 / np.arange(1, tokens + 1))
    values = np.searchsorted(cumulative, rng.random(int(lengths.sum())) * cumulative[-1]).astype(np.int32)
    Ragged(np.concatenate([[0], lengths.cumsum()]), values).save(folder, "tokens")
    labels = (LABELS * rng.random(titles) ** 2).astype(np.int32)  # some categories are large
    Ragged(np.arange(titles + 1), labels).save(folder, "labels")
    arrays = {
        "split": np.zeros(titles, dtype=np.int8),
        "show": np.arange(titles, dtype=np.int32),
        "family": np.arange(titles, dtype=np.int32),
        "oov": np.zeros(titles, dtype=bool),
        "rare": np.zeros(titles, dtype=bool),
        "kinds": np.zeros(tokens, dtype=np.int8),
        "weights": np.ones(tokens, dtype=np.float32),
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    (folder / "label_names.json").write_text(
        json.dumps([f"label {number}" for number in range(LABELS)]), encoding="utf-8"
    )
    return folder
