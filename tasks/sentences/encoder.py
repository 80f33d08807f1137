"""Defines the interface of sentence encoders, which map texts to vectors by pretrained models."""

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Protocol

import numpy as np

DESCRIPTION_CHARACTERS = 400  # length to which descriptions are cut, since cost grows with length


class SentenceEncoder(Protocol):
    """Interface of a sentence encoder that is ready to encode texts."""

    @property
    def identity(self) -> str:
        """Package, version and model. Encoders with the same identity compute the same vectors."""
        ...

    @property
    def dim(self) -> int:
        """Number of dimensions of a vector."""
        ...

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Returns the vectors of texts, float32 (texts, dim), with unit norm, or zero for an empty text."""
        ...


class SentenceEncoderMissing(ImportError):
    """Error: the package of a sentence encoder is not installed. The message says how to install it."""


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
            "choose another: --set preprocess.sentences.encoder=none"
        ) from error
