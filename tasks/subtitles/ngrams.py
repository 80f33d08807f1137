"""Hashed n-grams of a text and of its shape, and a linear classifier on them.

A recurrent network encodes the complete sub-title; n-grams memorize words and punctuation. Their errors
differ, so their predictions are averaged (classifier.py). The shape of a text has a single letter for every
run of letters: "Anna Loos, Tom" has the shape "A A, A", and "Kapitel 99" has the shape "A 99" (classifier.py
replaces digits by 9).
"""

import re
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from storage.arrays import Ragged, offsets_of

_BUCKETS = 1 << 16  # hashes modulo this are the ids of n-grams
_MAX_LENGTH, _MAX_SHAPE_LENGTH = 5, 7  # characters of n-grams of texts and of shapes
_PRIME = np.uint64(0x100000001B3)


def ngrams(texts: Sequence[str]) -> Ragged:
    """Returns the ids of the n-grams of each text and its shape, int64 (any,), below 65,536."""
    marked = [f"\x02{text.lower()}\x03" for text in texts]
    shapes = [f"\x04{_shape(text)}\x05" for text in texts]
    owners, values = [], []
    for lines, longest in ((marked, _MAX_LENGTH), (shapes, _MAX_SHAPE_LENGTH)):
        points = np.frombuffer("".join(lines).encode("utf-32-le", "surrogatepass"), np.uint32)
        owner = np.repeat(np.arange(len(lines)), [len(line) for line in lines])
        hashes = np.full(len(points), longest, dtype=np.uint64)
        for length in range(1, longest + 1):
            count = max(0, len(points) - length + 1)
            hashes = (hashes[:count] ^ points[length - 1 :]) * _PRIME
            mixed = (hashes ^ (hashes >> np.uint64(29))) % np.uint64(_BUCKETS)
            inside = owner[:count] == owner[length - 1 :]
            owners.append(owner[:count][inside])
            values.append(mixed[inside].astype(np.int64))
    owner, value = np.concatenate(owners), np.concatenate(values)
    order = np.argsort(owner, kind="stable")
    return Ragged(offsets_of(np.bincount(owner, minlength=len(texts))), value[order])


def _shape(text: str) -> str:
    return re.sub(r"[^\W\d_]+", lambda run: "a" if run[0][0].islower() else "A", re.sub("['’]", "", text))


class VectorAndNgramHead(nn.Module):
    """Two linear classifiers: one reads the vector of a text, the other its n-grams."""

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
