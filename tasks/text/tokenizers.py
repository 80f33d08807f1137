"""Lists the tokenizers that settings can select, and saves and loads fitted tokenizers.

The method ``fit`` of a tokenizer trains on the training titles and returns a fitted tokenizer, which is
stored in tokenizer.json of the Vocabulary and in lexicon.json of the model.
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
    """Returns a description of a fitted tokenizer in JSON types, from which it can be restored."""
    return tokenizer.describe() if isinstance(tokenizer, TrainedSubwords) else dataclasses.asdict(tokenizer)


def restore_tokenizer(description: Mapping[str, Any]) -> FittedTokenizer:
    """Creates a fitted tokenizer from the description that ``describe_tokenizer`` has returned."""
    values = dict(description)
    model = values.pop("model", None)  # only of subwords
    tokenizer = TOKENIZERS[values["name"]](**values)
    if not isinstance(tokenizer, Subwords):
        return tokenizer
    return TrainedSubwords(settings=tokenizer, model=json.dumps(model, ensure_ascii=False))


def write_tokenizer(tokenizer: FittedTokenizer, folder: Path) -> None:
    """Writes a fitted tokenizer to the file tokenizer.json in a folder."""
    (folder / FILE).write_text(
        json.dumps(describe_tokenizer(tokenizer), ensure_ascii=False), encoding="utf-8"
    )


def read_tokenizer(folder: Path) -> FittedTokenizer:
    """Reads the fitted tokenizer from the file tokenizer.json in a folder."""
    return restore_tokenizer(json.loads((folder / FILE).read_text(encoding="utf-8")))
