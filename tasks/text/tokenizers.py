"""The family of tokenizers.

``fit`` of a strategy trains on the training titles and returns the fitted tokenizer, which is stored in the
Vocabulary as tokenizer.json and in the model's lexicon.json.
"""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasks.text.subwords import Subwords, TrainedSubwords
from tasks.text.words import Characters, Words, WordsAndNgrams

# Sorted so that pydantic chooses the right class: fewer fields first (tests/contracts/test_form.py).
Tokenizer = Words | Characters | Subwords | WordsAndNgrams
FittedTokenizer = Words | Characters | TrainedSubwords | WordsAndNgrams
TOKENIZERS = {kind().name: kind for kind in (Words, Characters, Subwords, WordsAndNgrams)}
FILE = "tokenizer.json"


def describe_tokenizer(tokenizer: FittedTokenizer) -> dict[str, Any]:
    """Returns a JSON-serializable description of a fitted tokenizer."""
    return tokenizer.describe() if isinstance(tokenizer, TrainedSubwords) else dataclasses.asdict(tokenizer)


def restore_tokenizer(description: Mapping[str, Any]) -> FittedTokenizer:
    """Creates a fitted tokenizer from the description that ``describe`` returned."""
    values = dict(description)
    model = values.pop("model", None)  # only of subwords
    tokenizer = TOKENIZERS[values["name"]](**values)
    if not isinstance(tokenizer, Subwords):
        return tokenizer
    return TrainedSubwords(settings=tokenizer, model=json.dumps(model, ensure_ascii=False))


def write_tokenizer(tokenizer: FittedTokenizer, folder: Path) -> None:
    """Writes tokenizer.json."""
    (folder / FILE).write_text(
        json.dumps(describe_tokenizer(tokenizer), ensure_ascii=False), encoding="utf-8"
    )


def read_tokenizer(folder: Path) -> FittedTokenizer:
    """Reads the tokenizer of a Vocabulary folder."""
    return restore_tokenizer(json.loads((folder / FILE).read_text(encoding="utf-8")))
