"""Static models of the package model2vec: the mean of token vectors that were distilled from a large encoder.

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
def _load(model: str, identity: str) -> Any:  # by identity, too: a folder's content may change
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
        model = _load(self.model, self.identity)  # with no known token the mean is zero
        return unit_rows(np.asarray(model.encode(list(texts), use_multiprocessing=False), dtype=np.float32))


@configurable
class Model2Vec:
    """A static model of model2vec (extra of that name)."""

    name: Literal["model2vec"] = "model2vec"
    model: str = setting("", "Folder of a model, or the name of one that is then downloaded", content=True)

    def open(self) -> _OpenModel2Vec:
        """The encoder; SentenceEncoderMissing where the package is absent, ValueError without a model."""
        found = installed_version(PACKAGE, "pip install 'guidespace[model2vec]'")
        return _OpenModel2Vec(self.model, model_identity(PACKAGE, found, self.name, self.model))
