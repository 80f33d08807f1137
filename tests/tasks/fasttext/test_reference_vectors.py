"""Models compared with stored results of the fasttext package (see ``vectors.py``)."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tasks.fasttext import FastText, sentence_vectors

FOLDER = Path(__file__).with_name("vectors")
MODELS = sorted(file.name.removesuffix(".json.gz") for file in FOLDER.glob("*.json.gz"))


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[FastText, dict[str, Any]]:
    """Our model and the expected values that the fastText package computed."""
    file = tmp_path / request.param
    file.write_bytes(gzip.decompress((FOLDER / f"{request.param}.gz").read_bytes()))
    return FastText.open(file), json.loads(
        gzip.decompress((FOLDER / f"{request.param}.json.gz").read_bytes())
    )


def numbers(digits: list[str]) -> np.ndarray:
    return np.stack([np.frombuffer(bytes.fromhex(each), "<f4") for each in digits])


def test_models_of_every_kind_are_there() -> None:
    assert {name.partition("-")[2] for name in MODELS} == {
        "",
        "plain.ftz",
        "norms.ftz",
        "output.ftz",
        "pruned.ftz",
        "wide.ftz",
    }
    assert {
        "skipgram.bin",
        "cbow.bin",
        "hierarchical.bin",
        "without_ngrams.bin",
        "supervised.bin",
        "bigrams.bin",
    } <= set(MODELS)
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < 200_000


def test_words(model: tuple[FastText, dict[str, Any]]) -> None:
    ours, theirs = model
    np.testing.assert_array_equal(ours.vectors(theirs["asked"]), numbers(theirs["vectors"]))
    assert [word.decode() for word in ours.dictionary.words()] == theirs["words"]
    assert ours.dictionary.counts[: len(theirs["words"])].tolist() == theirs["counts"]


def test_sentences(model: tuple[FastText, dict[str, Any]]) -> None:
    ours, theirs = model
    np.testing.assert_array_equal(
        sentence_vectors(ours, theirs["sentences"]), numbers(theirs["sentence_vectors"])
    )


def test_ngrams(model: tuple[FastText, dict[str, Any]]) -> None:
    ours, theirs = model
    asked = list(theirs["ngrams"])
    assert [row.tolist() for row in ours.rows(asked)] == [theirs["ngrams"][word] for word in asked]
