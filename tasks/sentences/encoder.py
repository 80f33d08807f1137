"""Defines the interface of sentence encoders, which map texts to vectors by pretrained models."""

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Protocol

import numpy as np

DESCRIPTION_CHARACTERS = 400  # longer descriptions are cut, because long texts take longer to encode


class SentenceEncoder(Protocol):
    """Interface of a sentence encoder that is ready to encode texts."""

    @property
    def identity(self) -> str:
        """Name of package, version and model. Encoders with equal identities compute equal vectors."""
        ...

    @property
    def dim(self) -> int:
        """Number of dimensions of a vector."""
        ...

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Returns the vectors of texts, float32 (texts, dim): with unit norm, but zero for an empty text."""
        ...


class SentenceEncoderMissing(ImportError):
    """Raised if the package of a sentence encoder is not installed; the message says how to install it."""


def installed_version(package: str, remedy: str) -> str:
    """Returns the version of an installed package.

    Raises:
        SentenceEncoderMissing: The package is not installed; the message contains ``remedy``.
    """
    try:
        return version(package)
    except PackageNotFoundError as error:
        raise SentenceEncoderMissing(
            f"the sentence encoder needs the package {package}, which is not installed: {remedy}, or "
            "use no sentence vectors: --set preprocess.sentences.encoder=none"
        ) from error
