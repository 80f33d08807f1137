"""Interface of sentence encoders, which map texts to vectors by models pretrained on large corpora."""

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Protocol

import numpy as np

DESCRIPTION_CHARACTERS = 400  # length to which descriptions are cut, since cost grows with length


class SentenceEncoder(Protocol):
    """An opened sentence encoder."""

    @property
    def identity(self) -> str:
        """Package, version and model. Vectors of the same text under one identity are equal."""
        ...

    @property
    def dim(self) -> int:
        """Number of dimensions of a vector."""
        ...

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Encodes texts, float32 (texts, dim), with unit norm, or zero for a text without information."""
        ...


class SentenceEncoderMissing(ImportError):
    """The package of a sentence encoder is not installed. The message has the remedy."""


def installed_version(package: str, remedy: str) -> str:
    """Returns the version of a package; raises SentenceEncoderMissing with the remedy if it is absent."""
    try:
        return version(package)
    except PackageNotFoundError as error:
        problem = f"the sentence encoder needs the package {package}, which is not installed"
        alternative = "or choose another: --set preprocess.sentences.encoder=none"
        raise SentenceEncoderMissing(f"{problem}: {remedy}, {alternative}") from error
