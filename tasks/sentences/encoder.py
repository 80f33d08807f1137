"""What every sentence encoder gives: frozen vectors of whole texts, learnt by others on far larger text."""

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Protocol

import numpy as np

DESCRIPTION_CHARACTERS = 400  # of a description are encoded; a text costs by its length


class SentenceEncoder(Protocol):
    """An opened sentence encoder."""

    @property
    def identity(self) -> str:
        """Package, version and model: texts encoded under one identity have one vector."""
        ...

    @property
    def dim(self) -> int:
        """Numbers in a vector."""
        ...

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """float32 (texts, dim): unit norm, or zero for a text of which the model knows nothing."""
        ...


class SentenceEncoderMissing(ImportError):
    """The package of a sentence encoder is not installed; the message says what to do."""


def installed_version(package: str, remedy: str) -> str:
    """Version of a package of a sentence encoder; SentenceEncoderMissing with the remedy where absent."""
    try:
        return version(package)
    except PackageNotFoundError as error:
        problem = f"the sentence encoder needs the package {package}, which is not installed"
        other = "or choose another: --set preprocess.sentences.encoder=none"
        raise SentenceEncoderMissing(f"{problem}: {remedy}, {other}") from error
