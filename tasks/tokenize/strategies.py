"""The family of tokenizers: what a title's tokens are. A strategy is fitted to the training titles; what comes out tokenizes.

``words``, ``characters`` and ``words_and_ngrams`` learn nothing and are their own fitted form; ``subwords`` learns its pieces. The
fitted tokenizer is kept in the Vocabulary as tokenizer.json and repeated in lexicon.json, so that a served model needs no more.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasks.tokenize.characters import Characters
from tasks.tokenize.subwords import Subwords, TrainedSubwords
from tasks.tokenize.words import Words, WordsAndNgrams

Tokenizer = Words | Characters | Subwords | WordsAndNgrams  # smaller set of fields first: tests/contracts/test_form.py
Fitted = Words | Characters | TrainedSubwords | WordsAndNgrams
TOKENIZERS = {kind().name: kind for kind in (Words, Characters, Subwords, WordsAndNgrams)}
FILE = "tokenizer.json"


def describe(tokenizer: Fitted) -> dict[str, Any]:
    """A fitted tokenizer as JSON holds it."""
    return tokenizer.describe() if isinstance(tokenizer, TrainedSubwords) else dataclasses.asdict(tokenizer)


def restore(description: Mapping[str, Any]) -> Fitted:
    """The tokenizer that ``describe`` described.

    Raises:
        KeyError: No strategy has that name.
        ValueError: A model of subwords is missing.
    """
    values = dict(description)
    model = values.pop("model", None)
    tokenizer = TOKENIZERS[values["name"]](**values)
    if not isinstance(tokenizer, Subwords):
        return tokenizer
    if model is None:
        raise ValueError("the description of subwords holds no model; it was written before they were learnt")
    return TrainedSubwords(settings=tokenizer, model=json.dumps(model, ensure_ascii=False))


def write_tokenizer(tokenizer: Fitted, folder: Path) -> None:
    """Writes tokenizer.json."""
    (folder / FILE).write_text(json.dumps(describe(tokenizer), ensure_ascii=False), encoding="utf-8")


def read_tokenizer(folder: Path) -> Fitted:
    """The tokenizer of a Vocabulary folder."""
    return restore(json.loads((folder / FILE).read_text(encoding="utf-8")))
