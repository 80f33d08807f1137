"""Hashed n-grams of a text and of its shape, and a linear classifier on them.

A recurrent network encodes the complete sub-title, n-grams memorize words and punctuation. Their errors
differ, so predictions are averaged (classifier.py). The shape of a text has a single letter for every run of
letters: the shape of "Anna Loos, Tom" is "A A, A", that of "Kapitel 12" is "A 99".
"""

import re
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from storage.arrays import Ragged, offsets_of

_BUCKETS = 1 << 16
_LONGEST, _LONGEST_SHAPE = 5, 7
_PRIME = np.uint64(0x100000001B3)


def ngrams(texts: Sequence[str]) -> Ragged:
    """Hashes the n-grams of each text to ids below 65,536, int64."""
    marked = [f"\x02{text.lower()}\x03" for text in texts]
    shapes = [f"\x04{_shape(text)}\x05" for text in texts]
    owners, values = [], []
    for lines, longest in ((marked, _LONGEST), (shapes, _LONGEST_SHAPE)):
        points = np.frombuffer("".join(lines).encode("utf-32-le", "surrogatepass"), np.uint32)
        owner = np.repeat(np.arange(len(lines)), [len(line) for line in lines])
        hashed = np.full(len(points), longest, dtype=np.uint64)
        for length in range(1, longest + 1):
            count = max(0, len(points) - length + 1)
            hashed = (hashed[:count] ^ points[length - 1 :]) * _PRIME
            mixed = (hashed ^ (hashed >> np.uint64(29))) % np.uint64(_BUCKETS)
            inside = owner[:count] == owner[length - 1 :]
            owners.append(owner[:count][inside])
            values.append(mixed[inside].astype(np.int64))
    owner, value = np.concatenate(owners), np.concatenate(values)
    order = np.argsort(owner, kind="stable")
    return Ragged(offsets_of(np.bincount(owner, minlength=len(texts))), value[order])


def _shape(text: str) -> str:
    return re.sub(r"[^\W\d_]+", lambda run: "a" if run[0][0].islower() else "A", re.sub("['’]", "", text))


class TwoReaders(nn.Module):
    """Two linear classifiers: one on the vector of a text, one on its n-grams."""

    def __init__(self, hidden: int, classes: int, device: torch.device | None = None) -> None:
        """Initializes all weights to zero."""
        super().__init__()
        self.vector = nn.Linear(hidden, classes, device=device)
        self.ngrams = nn.EmbeddingBag(_BUCKETS, classes, mode="sum", device=device)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.zero_()

    def forward(self, vectors: Tensor, ngrams: Ragged) -> tuple[Tensor, Tensor]:
        """Computes the logits of each classifier, float32 (texts, classes)."""
        ids = torch.from_numpy(ngrams.values).to(vectors.device)
        weights = torch.from_numpy(np.maximum(ngrams.lengths, 1) ** -0.5)[ngrams.row_ids]
        offsets = torch.from_numpy(ngrams.offsets[:-1]).to(vectors.device)
        by_ngrams = self.ngrams(ids, offsets, per_sample_weights=weights.to(vectors.device, vectors.dtype))
        return self.vector(vectors), by_ngrams
