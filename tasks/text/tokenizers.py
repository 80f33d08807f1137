"""The family of tokenizers. A strategy is fitted to the training titles; what comes out tokenizes. It is
kept in the Vocabulary as tokenizer.json and in lexicon.json, so that a served model needs no more.
"""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasks.text.subwords import Subwords, TrainedSubwords
from tasks.text.words import Characters, Words, WordsAndNgrams

# Smaller set of fields first: tests/contracts/test_form.py.
Tokenizer = Words | Characters | Subwords | WordsAndNgrams
Fitted = Words | Characters | TrainedSubwords | WordsAndNgrams
TOKENIZERS = {kind().name: kind for kind in (Words, Characters, Subwords, WordsAndNgrams)}
FILE = "tokenizer.json"


def describe(tokenizer: Fitted) -> dict[str, Any]:
    """A fitted tokenizer as JSON holds it."""
    return tokenizer.describe() if isinstance(tokenizer, TrainedSubwords) else dataclasses.asdict(tokenizer)


def restore(description: Mapping[str, Any]) -> Fitted:
    """The tokenizer that ``describe`` described."""
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
