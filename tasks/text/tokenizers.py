"""Tokenizers that settings can select, and functions that save and load trained tokenizers.

``fit`` trains a tokenizer on the training titles. The trained tokenizer is stored in tokenizer.json of the
artifact Vocabulary and in lexicon.json of the model.
"""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasks.text.subwords import Subwords, TrainedSubwords
from tasks.text.words import Characters, Words, WordsAndNgrams

# Classes with fewer fields come first, so that pydantic selects the right one (tests/contracts/test_form.py).
Tokenizer = Words | Characters | Subwords | WordsAndNgrams
FittedTokenizer = Words | Characters | TrainedSubwords | WordsAndNgrams
TOKENIZERS = {kind().name: kind for kind in (Words, Characters, Subwords, WordsAndNgrams)}
FILE = "tokenizer.json"


def describe_tokenizer(tokenizer: FittedTokenizer) -> dict[str, Any]:
    """Returns a trained tokenizer as a dictionary, which can be written as JSON."""
    return tokenizer.describe() if isinstance(tokenizer, TrainedSubwords) else dataclasses.asdict(tokenizer)


def restore_tokenizer(description: Mapping[str, Any]) -> FittedTokenizer:
    """Creates a trained tokenizer from the dictionary that ``describe_tokenizer`` returns."""
    values = dict(description)
    model = values.pop("model", None)  # only of subwords
    tokenizer = TOKENIZERS[values["name"]](**values)
    if not isinstance(tokenizer, Subwords):
        return tokenizer
    return TrainedSubwords(settings=tokenizer, model=json.dumps(model, ensure_ascii=False))


def write_tokenizer(tokenizer: FittedTokenizer, folder: Path) -> None:
    """Writes a trained tokenizer to the file tokenizer.json in a folder."""
    (folder / FILE).write_text(
        json.dumps(describe_tokenizer(tokenizer), ensure_ascii=False), encoding="utf-8"
    )


def read_tokenizer(folder: Path) -> FittedTokenizer:
    """Reads the trained tokenizer from the file tokenizer.json in a folder."""
    return restore_tokenizer(json.loads((folder / FILE).read_text(encoding="utf-8")))
