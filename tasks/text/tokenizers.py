"""Lists the tokenizers that settings can select, and saves and loads their settings.

The settings of the tokenizer are stored in tokenizer.json of a Vocabulary and in lexicon.json of a Model.
"""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasks.text.words import Words, WordsAndNgrams

# Classes with fewer fields come first, so that pydantic selects the right one (tests/contracts/test_form.py).
Tokenizer = Words | WordsAndNgrams
TOKENIZERS = {kind().name: kind for kind in (Words, WordsAndNgrams)}
FILE = "tokenizer.json"


def describe_tokenizer(tokenizer: Tokenizer) -> dict[str, Any]:
    """Returns the settings of a tokenizer as a dictionary that JSON can represent."""
    return dataclasses.asdict(tokenizer)


def restore_tokenizer(description: Mapping[str, Any]) -> Tokenizer:
    """Creates the tokenizer with the settings that ``describe_tokenizer`` has returned."""
    return TOKENIZERS[description["name"]](**description)


def write_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """Writes a tokenizer to the file tokenizer.json in a folder."""
    (folder / FILE).write_text(
        json.dumps(describe_tokenizer(tokenizer), ensure_ascii=False), encoding="utf-8"
    )


def read_tokenizer(folder: Path) -> Tokenizer:
    """Reads the tokenizer from the file tokenizer.json in a folder."""
    return restore_tokenizer(json.loads((folder / FILE).read_text(encoding="utf-8")))
