"""Encodes texts by the package model2vec: means of token vectors that are distilled from a large encoder.

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
def _load(
    model: str, identity: str
) -> Any:  # cached by identity as well, since the content of a folder may change
    from model2vec import StaticModel  # pyright: ignore[reportMissingImports]

    return StaticModel.from_pretrained(model)


@dataclass(frozen=True)
class _OpenModel2Vec:
    model: str
    identity: str

    @property
    def dim(self) -> int:
        return int(_load(self.model, self.identity).dim)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        model = _load(self.model, self.identity)  # zero if no token is in the vocabulary
        return unit_rows(np.asarray(model.encode(list(texts), use_multiprocessing=False), dtype=np.float32))


@configurable
class Model2Vec:
    """Strategy: a static model of the package model2vec (extra model2vec)."""

    name: Literal["model2vec"] = "model2vec"
    model: str = setting("", "Folder of a model, or name of a model to download", content=True)

    def open(self) -> _OpenModel2Vec:
        """Opens the encoder.

        Raises:
            SentenceEncoderMissing: The package is not installed.
            ValueError: The setting ``model`` is empty.
        """
        package_version = installed_version(PACKAGE, "pip install 'guidespace[model2vec]'")
        return _OpenModel2Vec(self.model, model_identity(PACKAGE, package_version, self.name, self.model))
