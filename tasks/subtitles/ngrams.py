"""Computes hashed n-grams of texts and of the shapes of texts, and logits of a linear classifier of n-grams.

n-grams memorize words and punctuation, while the recurrent network encodes the complete sub-title. The two
make different errors, so their predictions are averaged (classifier.py). The shape of a text has one letter
for every run of letters: "A A, A" for "Anna Loos, Tom", and "A 99" for "Kapitel 99".
"""

import re
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from storage.arrays import Ragged, offsets_of

_BUCKETS = 1 << 16  # number of n-gram ids, which are hashes modulo this number
_MAX_LENGTH, _MAX_SHAPE_LENGTH = 5, 7  # maximum characters of the n-grams of texts and of shapes
_PRIME = np.uint64(0x100000001B3)  # FNV prime


def ngrams(texts: Sequence[str]) -> Ragged:
    """Returns the ids of the n-grams of each text and of its shape, int64, one row per text."""
    delimited_texts = [f"\x02{text.lower()}\x03" for text in texts]
    shapes = [f"\x04{_text_shape(text)}\x05" for text in texts]
    text_id_parts, id_parts = [], []
    for strings, max_length in ((delimited_texts, _MAX_LENGTH), (shapes, _MAX_SHAPE_LENGTH)):
        code_points = np.frombuffer("".join(strings).encode("utf-32-le", "surrogatepass"), np.uint32)
        text_ids = np.repeat(np.arange(len(strings)), [len(string) for string in strings])
        hashes = np.full(len(code_points), max_length, dtype=np.uint64)
        for length in range(1, max_length + 1):
            count = max(0, len(code_points) - length + 1)
            hashes = (hashes[:count] ^ code_points[length - 1 :]) * _PRIME
            bucket_ids = (hashes ^ (hashes >> np.uint64(29))) % np.uint64(_BUCKETS)
            is_within_text = text_ids[:count] == text_ids[length - 1 :]
            text_id_parts.append(text_ids[:count][is_within_text])
            id_parts.append(bucket_ids[is_within_text].astype(np.int64))
    text_ids, ids = np.concatenate(text_id_parts), np.concatenate(id_parts)
    order = np.argsort(text_ids, kind="stable")
    return Ragged(offsets_of(np.bincount(text_ids, minlength=len(texts))), ids[order])


def _text_shape(text: str) -> str:
    """Replaces every run of letters by "a" if its first letter is lower-case, else by "A"."""
    return re.sub(r"[^\W\d_]+", lambda run: "a" if run[0][0].islower() else "A", re.sub("['’]", "", text))


class VectorAndNgramHead(nn.Module):
    """Adds the outputs of two linear layers: one of the vector of a text, and one of its n-grams."""

    def __init__(self, hidden: int, classes: int, device: torch.device | None = None) -> None:
        """Creates classifiers with zero weights for vectors of size ``hidden`` and ``classes`` classes."""
        super().__init__()
        self.vector = nn.Linear(hidden, classes, device=device)
        self.ngrams = nn.EmbeddingBag(_BUCKETS, classes, mode="sum", device=device)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.zero_()

    def forward(self, vectors: Tensor, ngrams: Ragged) -> tuple[Tensor, Tensor]:
        """Computes the logits of both classifiers, each float32 (texts, classes).

        The n-gram weights of a text are divided by the square root of its number of n-grams.
        """
        ids = torch.from_numpy(ngrams.values).to(vectors.device)
        weights = torch.from_numpy(np.maximum(ngrams.lengths, 1) ** -0.5)[ngrams.row_ids]
        offsets = torch.from_numpy(ngrams.offsets[:-1]).to(vectors.device)
        by_ngrams = self.ngrams(ids, offsets, per_sample_weights=weights.to(vectors.device, vectors.dtype))
        return self.vector(vectors), by_ngrams
