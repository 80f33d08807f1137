"""Encodes texts by the package model2vec, as means of token vectors that were distilled from an encoder.

References:
    Tulkens, van Dongen. Model2Vec: fast state-of-the-art static embeddings. 2024.
    https://github.com/MinishLab/model2vec
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from storage.arrays import unit_rows
from tasks.form import configurable, setting
from tasks.sentences.encoder import installed_version
from tasks.sentences.models import model_identity

PACKAGE = "model2vec"


@functools.cache
def _load(model: str, identity: str) -> Any:
    """Loads a model. The cache key includes ``identity``, because the content of a folder may change."""
    from model2vec import StaticModel  # pyright: ignore[reportMissingImports]

    return StaticModel.from_pretrained(model)


@dataclass(frozen=True)
class _Model2VecEncoder:
    model: str
    identity: str

    @property
    def dim(self) -> int:
        return int(_load(self.model, self.identity).dim)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        model = _load(self.model, self.identity)  # returns zeros for a text without tokens in the vocabulary
        return unit_rows(np.asarray(model.encode(list(texts), use_multiprocessing=False), dtype=np.float32))


@configurable
class Model2Vec:
    """Strategy: a static model of the package model2vec (extra model2vec)."""

    name: Literal["model2vec"] = "model2vec"
    model: str = setting("", "Folder of a model, or name of a model to download", content=True)

    def open(self) -> _Model2VecEncoder:
        """Opens the encoder.

        Raises:
            SentenceEncoderMissing: The package is not installed.
            ValueError: The setting ``model`` is empty.
        """
        package_version = installed_version(PACKAGE, "pip install 'guidespace[model2vec]'")
        return _Model2VecEncoder(self.model, model_identity(PACKAGE, package_version, self.name, self.model))
