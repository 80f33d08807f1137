"""Encodes texts by a model of sentence-transformers, which is in a folder or is downloaded by its name.

References:
    Reimers, Gurevych. Sentence-BERT: sentence embeddings using Siamese BERT-networks. EMNLP 2019.
    https://arxiv.org/abs/1908.10084
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

PACKAGE = "sentence-transformers"


@functools.cache
def _load(model: str, identity: str) -> Any:
    """Loads a model. The cache key includes ``identity``, because the content of a folder may change."""
    from sentence_transformers import SentenceTransformer  # pyright: ignore[reportMissingImports]

    return SentenceTransformer(model)


@dataclass(frozen=True)
class _SentenceTransformersEncoder:
    model: str
    identity: str

    @property
    def dim(self) -> int:
        return self.encode([""]).shape[1]

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        model = _load(self.model, self.identity)
        vectors = model.encode(list(texts), batch_size=64, show_progress_bar=False, convert_to_numpy=True)
        # Models return a nonzero vector for an empty text.
        is_nonempty = np.array([bool(text.strip()) for text in texts])
        return unit_rows(np.asarray(vectors, dtype=np.float32)) * is_nonempty[:, None]


@configurable
class SentenceTransformers:
    """Strategy: a model of the package sentence-transformers (extra sentence-transformers)."""

    name: Literal["sentence_transformers"] = "sentence_transformers"
    model: str = setting("", "Folder of a model, or name of a model to download", content=True)

    def open(self) -> _SentenceTransformersEncoder:
        """Opens the encoder.

        Raises:
            SentenceEncoderMissing: The package is not installed.
            ValueError: The setting ``model`` is empty.
        """
        package_version = installed_version(PACKAGE, "pip install 'guidespace[sentence-transformers]'")
        identity = model_identity(PACKAGE, package_version, self.name, self.model)
        return _SentenceTransformersEncoder(self.model, identity)
