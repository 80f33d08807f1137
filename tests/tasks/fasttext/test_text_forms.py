"""Text formats of vectors round-trip, and gensim reads them."""

from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from tasks.fasttext import FastText
from tasks.fasttext.text_forms import (
    TextFormat,
    VectorFileError,
    WordTable,
    nearest_words,
    open_words,
    read_vectors,
    write_vectors,
)

WORDS = ["tatort", "küche", "日本語", "a", "12", "1.5", "naïve"]
VECTORS = (
    np.random.default_rng(0).standard_normal((7, 5)) * [[1], [1e-30], [1e20], [1], [0], [0.1], [3]]
).astype(np.float32)
FORMS = get_args(TextFormat)


@pytest.mark.parametrize("form", FORMS)
def test_round_trip(tmp_path: Path, form: TextFormat):
    write_vectors(tmp_path / "out", form, WORDS, VECTORS)
    found = read_vectors(tmp_path / "out")
    assert [word.decode() for word in found.words] == WORDS
    np.testing.assert_array_equal(found.matrix, VECTORS)
    np.testing.assert_array_equal(found.vectors(["a", "nothing"]), [VECTORS[3], np.zeros(5)])


@pytest.mark.parametrize("form", FORMS)
def test_round_trip_with_many_dimensions(tmp_path: Path, form: TextFormat):
    vectors = np.random.default_rng(0).standard_normal((3, 512)).astype(np.float32)
    write_vectors(tmp_path / "out", form, WORDS[:3], vectors)
    table = read_vectors(tmp_path / "out")
    assert [word.decode() for word in table.words] == WORDS[:3]
    np.testing.assert_array_equal(table.matrix, vectors)


@pytest.mark.parametrize("form", FORMS)
def test_gensim_reads_it(tmp_path: Path, form: TextFormat):
    keyed = pytest.importorskip("gensim.models", reason="gensim is not installed (extra dev)").KeyedVectors
    write_vectors(tmp_path / "out", form, WORDS, VECTORS)
    theirs = keyed.load_word2vec_format(
        str(tmp_path / "out"), binary=form == "word2vec", no_header=form == "glove"
    )
    assert theirs.index_to_key == WORDS
    np.testing.assert_array_equal(theirs.vectors, VECTORS)
    for binary in (False, True):
        theirs.save_word2vec_format(str(tmp_path / "theirs"), binary=binary)
        again = read_vectors(tmp_path / "theirs")
        assert [word.decode() for word in again.words] == WORDS
        np.testing.assert_allclose(again.matrix, VECTORS, rtol=1e-6)


def test_glove_words_may_hold_spaces(tmp_path: Path):
    (tmp_path / "glove.txt").write_text("the 0.5 -1\n. . . 1 2\nat name@domain.com 3 4\n", encoding="utf-8")
    assert read_vectors(tmp_path / "glove.txt").words == [b"the", b". . .", b"at name@domain.com"]


def test_trailing_spaces_of_fasttext(tmp_path: Path):
    (tmp_path / "x.vec").write_text("2 2\na 1 2 \nb 3 4 \n", encoding="utf-8")
    assert read_vectors(tmp_path / "x.vec").matrix.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"3 2\na 1 2\nb 3 4\n", "expected 3 words, as in the first line, but it has 2"),
        (b"2 2\na 1 2\nb 3\n", "line 3 is b'b 3"),
        (b"a 1 2\nb 1 x\n", "line 2 is"),
        (b"word\n", "line 1 is not a word with numbers"),
        (b"a" + b" 1" * (1 << 20), "line 1 does not end within 1048576 bytes"),
        (b"", "line 1 is not a word with numbers"),
        (b"99999999999 300\na 1 2\n", "6 bytes cannot contain"),
        (b"2 2\na " + bytes(8) + b"\nb " + bytes(5), "word 1 of 2 does not end within the file"),
        (b"1 2\na " + bytes(8) + b"\nb " + bytes(8), "follow the last of 1 words"),
    ],
)
def test_damaged_files(tmp_path: Path, content: bytes, reason: str):
    (tmp_path / "bad").write_bytes(content)
    with pytest.raises(VectorFileError, match=reason):
        read_vectors(tmp_path / "bad")


@pytest.mark.parametrize("word", ["", "two words", "line\nfeed"])
def test_words_that_text_formats_cannot_represent_are_refused(tmp_path: Path, word: str):
    with pytest.raises(ValueError, match="cannot be written as vec"):
        write_vectors(tmp_path / "out", "vec", [word], VECTORS[:1])
    assert not list(tmp_path.iterdir())


def test_nearest_words_are_those_of_a_plain_search(trained: dict[str, Path]):
    model = FastText.open(trained["skipgram"])
    words, vectors = model.dictionary.words(), model.vectors(model.dictionary.words())
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit @ unit[words.index(b"tatort")]
    order = [place for place in np.argsort(-cosines) if words[place] != b"tatort"][:5]
    found = nearest_words(model, "tatort", 5)
    assert [name for name, _ in found] == [words[place].decode() for place in order]
    assert [cosine for _, cosine in found] == pytest.approx(cosines[order].tolist(), abs=1e-5)
    assert len(nearest_words(model, "neverseen", 10_000)) == len(words)


def test_opening_looks_at_the_content(trained: dict[str, Path], tmp_path: Path):
    vectors = np.ones((len(WORDS), 3), dtype=np.float32)
    kinds = {}
    for form in ("vec", "glove", "word2vec"):
        write_vectors(tmp_path / f"{form}.bin", form, WORDS, vectors)
        kinds[form] = open_words(tmp_path / f"{form}.bin")
    assert all(isinstance(opened, WordTable) and opened.dim == 3 for opened in kinds.values())
    assert isinstance(open_words(trained["bigrams-wide"]), FastText)
