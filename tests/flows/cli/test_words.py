"""The commands on model files, and words exported for other programs."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flows.cli.main import main
from flows.cli.words import WordsError, ngram_lines
from tasks.encoder.title_encoder import TitleEncoder
from tasks.export.export import _export_words
from tasks.fasttext import FastText
from tasks.fasttext.layout import Header
from tasks.fasttext.text_forms import read_vectors, write_vectors
from tasks.fasttext.writer import write_bin

WORDS = ["tatort", "küche", "maus"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("words") / "model.bin"
    header = Header(dim=4, bucket=500, minn=3, maxn=4)
    rows = np.arange(503, dtype=np.float32)[:, None]
    write_bin(
        file,
        header,
        [(word.encode(), 3) for word in WORDS],
        [np.hstack([rows, 503 - rows, 0 * rows, 0 * rows])],
        [np.zeros((3, 4), dtype=np.float32)],
    )
    return file


def test_ngrams_are_triples(model: Path, capsys: pytest.CaptureFixture[str]):
    """Its row, then n-grams at 3 + FNV-1a of their bytes modulo 500."""
    assert main(["ngrams", str(model), "küche", "neu"]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    kueche = {"küche": 1, "<kü": 466, "<küc": 183, "küc": 257, "küch": 225, "üch": 152, "üche": 423}
    kueche |= {"che": 116, "che>": 400, "he>": 283}
    neu = {"<ne": 417, "<neu": 428, "neu": 330, "neu>": 370, "eu>": 302}
    assert [(line[0], line[1], int(line[2])) for line in lines] == [
        *(("küche", *ngram) for ngram in kueche.items()),
        *(("neu", *ngram) for ngram in neu.items()),
    ]
    assert [[float(number) for number in line[3].split()] for line in lines] == [
        [row, 503 - row, 0, 0] for row in (*kueche.values(), *neu.values())
    ]
    assert main(["ngrams", str(model), "neu", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["word"] == "neu" and [each["ngram"] for each in document["ngrams"]] == list(neu)


def test_vector(model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """The mean of a word's row and its n-grams': (0 + 487 + 467 + … + 42) / 12 = 2945 / 12; 1847 / 5."""
    monkeypatch.setattr("sys.stdin", io.StringIO("tatort\nneu\n"))
    assert main(["vector", str(model), "-"]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines] == ["tatort", "neu"]
    np.testing.assert_allclose(
        np.array([line[1].split() for line in lines], dtype=np.float64),
        [[2945 / 12, 503 - 2945 / 12, 0, 0], [369.4, 133.6, 0, 0]],
        rtol=1e-5,
    )


def test_neighbours(model: Path, capsys: pytest.CaptureFixture[str]):
    """Means of rows: tatort 2945 / 12, küche 250.6, maus 144.5."""
    assert main(["neighbours", str(model), "tatort", "-k", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["word"] for each in found] == ["küche", "maus"]
    assert [each["cosine"] for each in found] == pytest.approx([0.999788, 0.929380], abs=1e-5)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["vector", "NONE", "a"], "No such file"),
        (["vector", "BAD", "a"], "at byte 0"),
        (["vector", "TEXT", "a"], "line 2"),
        (["ngrams", "VEC", "a"], "no n-grams"),
        (["neighbours", "MODEL", ""], "neither the word ''"),
        (["neighbours", "MODEL", "tatort", "-k", "0"], "k must be at least 1"),
    ],
)
def test_errors_are_one_line(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
):
    (tmp_path / "bad").write_bytes(bytes(100))
    (tmp_path / "text").write_text("a 1 2\nword\n", encoding="utf-8")
    write_vectors(tmp_path / "vec", "vec", ["a"], np.ones((1, 2)))
    places = {
        "NONE": tmp_path / "none",
        "BAD": tmp_path / "bad",
        "TEXT": tmp_path / "text",
        "VEC": tmp_path / "vec",
        "MODEL": model,
    }
    assert main([str(places.get(argument, argument)) for argument in arguments]) == 2
    told = capsys.readouterr().err
    assert reason in told and told.count("\n") == 1


def test_exported_export_words(learnt: Any, tmp_path: Path):
    home, *_, encoder = learnt
    folder = home / encoder.path
    assert "3000 buckets" in _export_words(folder, "fasttext", tmp_path / "model.bin", 3000)
    model = FastText.open(tmp_path / "model.bin")
    for form in ("vec", "glove", "word2vec-binary"):
        assert "16 dimensions" in _export_words(folder, form, tmp_path / form, None)
        found = read_vectors(tmp_path / form)
        assert sorted(found.words) == sorted(model.dictionary.words())
        np.testing.assert_allclose(found.matrix, model.vectors(found.words), atol=1e-6)


def test_a_model_without_rows_for_unseen_words_gets_them_in_the_file(learnt: Any, tmp_path: Path):
    home, *_, made = learnt
    encoder = TitleEncoder.open(home / made.path).without_unseen_words()
    (folder := tmp_path / "model").mkdir()
    encoder.save(folder, home / made.path / "tokens.parquet")
    assert "1 buckets" in _export_words(folder, "fasttext", tmp_path / "model.bin", 1)
    assert FastText.open(tmp_path / "model.bin").vectors(["unheardof"]).any()


def test_a_text_form_has_no_ngrams(tmp_path: Path) -> None:
    (tmp_path / "words.vec").write_text("1 2\ngoal 1 0\n", encoding="utf-8")
    with pytest.raises(WordsError, match="no n-grams"):
        list(ngram_lines(tmp_path / "words.vec", ["goal"], as_json=False))
