"""All kinds of models equal the fasttext package, bit for bit."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tasks.fasttext import FastText, sentence_vectors
from tasks.fasttext.ngrams import extract_ngrams, hash_strings
from tests.tasks.fasttext.conftest import SENTENCES, UNKNOWN, WORDS

QUANTISED = ("plain", "norms", "output", "pruned", "wide")
KINDS = ["skipgram", "cbow", "hierarchical", "without_ngrams", "supervised", "supervised_ngrams", "bigrams"]
KINDS += [f"{name}-{kind}" for name in ("supervised_ngrams", "bigrams") for kind in QUANTISED]


@pytest.mark.parametrize("kind", KINDS)
def test_words(fasttext: Any, trained: dict[str, Path], kind: str):
    theirs, ours = fasttext.load_model(str(trained[kind])), FastText.open(trained[kind])
    asked = [*theirs.get_words(), *UNKNOWN, *(word + "xy" for word in WORDS)]
    expected = np.stack([theirs.get_word_vector(word) for word in asked])
    np.testing.assert_array_equal(ours.vectors(asked), expected)
    assert np.any(expected[len(theirs.get_words()) :]) or ours.header.maxn == 0
    assert [word.decode() for word in ours.dictionary.words()] == theirs.get_words()


@pytest.mark.parametrize("kind", KINDS)
def test_sentences(fasttext: Any, trained: dict[str, Path], kind: str):
    theirs, ours = fasttext.load_model(str(trained[kind])), FastText.open(trained[kind])
    expected = np.stack([theirs.get_sentence_vector(sentence) for sentence in SENTENCES])
    np.testing.assert_array_equal(sentence_vectors(ours, SENTENCES), expected)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "pruned" not in kind])
def test_ngrams_are_aligned(fasttext: Any, trained: dict[str, Path], kind: str):
    theirs, ours = fasttext.load_model(str(trained[kind])), FastText.open(trained[kind])
    asked = [*theirs.get_words()[:40], *(word for word in UNKNOWN if word)]
    together = ours.rows(asked)
    for number, (word, own) in enumerate(zip(asked, ours.ngrams(asked), strict=True)):
        names, rows = theirs.get_subwords(word)
        assert [ngram.row for ngram in own] == together[number].tolist() == list(rows), word
        assert [ngram.text for ngram in own] == names[: len(rows)], word
        for ngram in own:
            np.testing.assert_array_equal(ngram.vector, theirs.get_input_vector(ngram.row))


def test_ngrams_of_a_pruned_model_have_the_right_rows(fasttext: Any, trained: dict[str, Path]):
    """The package prints the first names with the wrong rows here; ours name the n-gram that the row belongs
    to."""
    ours = FastText.open(trained["supervised_ngrams-pruned"])
    dictionary, buckets = ours.dictionary, ours.header.bucket
    assert dictionary.kept_buckets is not None
    kept = dict(zip(*(column.tolist() for column in dictionary.kept_buckets), strict=True))
    found = [
        ngram
        for own in ours.ngrams(UNKNOWN[:2] + WORDS)
        for ngram in own
        if ngram.row >= dictionary.word_count
    ]
    assert found
    for ngram in found:
        assert ngram.row == dictionary.word_count + kept[int(hash_strings([ngram.text])[0]) % buckets]


@pytest.mark.parametrize("kind", ["skipgram", "supervised_ngrams"])
def test_version_11(fasttext: Any, trained: dict[str, Path], tmp_path: Path, kind: str):
    """The same but for supervised models, which had no n-grams then, whatever their header says."""
    body = bytearray(trained[kind].read_bytes())
    struct.pack_into("<i", body, 4, 11)
    place = tmp_path / "old.bin"
    place.write_bytes(bytes(body))
    theirs, ours = fasttext.load_model(str(place)), FastText.open(place)
    asked = [*theirs.get_words(), *UNKNOWN]
    np.testing.assert_array_equal(
        ours.vectors(asked), np.stack([theirs.get_word_vector(word) for word in asked])
    )
    np.testing.assert_array_equal(
        sentence_vectors(ours, SENTENCES),
        np.stack([theirs.get_sentence_vector(sentence) for sentence in SENTENCES]),
    )
    assert ours.header.version == 11 and (ours.header.maxn == 0) == (kind == "supervised_ngrams")


@pytest.mark.parametrize("kind", ["skipgram", "cbow", "without_ngrams"])
def test_files_without_a_version(trained: dict[str, Path], tmp_path: Path, kind: str):
    """Magic, version, the number of pruned n-grams and both flags left out: the same vectors, but </s> has
    n-grams."""
    body, model = trained[kind].read_bytes(), FastText.open(trained[kind])
    after = int(model.dictionary.ends[-1]) + 10
    output = after + 1 + 16 + len(model.matrix.codes) * model.dim * 4
    place = tmp_path / "older.bin"
    place.write_bytes(body[8:84] + body[92:after] + body[after + 1 : output] + body[output + 1 :])
    ours = FastText.open(place)
    asked = [word for word in [*model.dictionary.words(), *UNKNOWN] if word not in ("</s>", b"</s>")]
    np.testing.assert_array_equal(ours.vectors(asked), model.vectors(asked))
    assert ours.header.version == 0 and ours.dictionary.counts.tolist() == model.dictionary.counts.tolist()


@pytest.mark.parametrize("kind", ["skipgram", "supervised_ngrams"])
def test_dictionary(fasttext: Any, trained: dict[str, Path], kind: str):
    theirs, ours = fasttext.load_model(str(trained[kind])), FastText.open(trained[kind])
    words, counts = theirs.get_words(include_freq=True)
    assert ours.dictionary.counts[: len(words)].tolist() == counts.tolist()
    assert ours.dictionary.ids(words).tolist() == [theirs.get_word_id(word) for word in words]
    assert ours.dictionary.ids(["nothing of the kind", ""]).tolist() == [-1, -1]
    if kind == "supervised_ngrams":
        labels = map(ours.dictionary.word, range(len(words), len(ours.dictionary)))
        assert [label.decode() for label in labels] == theirs.get_labels()
        np.testing.assert_array_equal(ours.output.take(np.arange(300)), theirs.get_output_matrix())


def test_a_label_has_only_ngrams(trained: dict[str, Path]):
    """Its number is no row of the input matrix; the package reads whatever lies there."""
    ours = FastText.open(trained["supervised_ngrams"])
    (own,) = ours.ngrams(["__label__film1"])
    assert ours.dictionary.ids(["__label__film1"])[0] >= ours.dictionary.word_count and own[0].text == "<_"
    assert FastText.open(trained["supervised"]).rows(["__label__film1"]).lengths.tolist() == [0]


def test_hash_of_twenty_thousand_random_strings(fasttext: Any, trained: dict[str, Path]):
    """The id of <word> in a model of 2,000 buckets; surrogates are no text."""
    theirs = fasttext.load_model(str(trained["skipgram"]))
    words = theirs.get_dimension() and len(theirs.get_words())
    rng = np.random.default_rng(0)
    planes = np.array([0x20, 0x80, 0x400, 0x3040, 0x4E00, 0xAC00, 0x1F300, 0xE000])
    points = planes[rng.integers(0, len(planes), size=(20_000, 12))] + rng.integers(0, 96, size=(20_000, 12))
    texts = [
        "".join(map(chr, row[:length]))
        for row, length in zip(points.tolist(), rng.integers(1, 13, size=20_000), strict=True)
    ]
    expected = [theirs.get_subword_id(text) - words for text in texts]
    assert (hash_strings(texts) % np.uint32(2000)).tolist() == expected


def test_words_that_are_no_utf8(trained: dict[str, Path]):
    """A code point is a byte that is no continuation byte, with what continuation bytes follow."""
    assert extract_ngrams(b"\x80a\xff", 1, 2) == [b"<\x80a", b"a", b"a\xff", b"\xff", b"\xff>"]
    ours = FastText.open(trained["cbow"])
    assert np.isfinite(ours.vectors([b"\xff\xfe", b"\x80", b"k\xc3"])).all()


def test_empty_queries(trained: dict[str, Path]):
    ours = FastText.open(trained["skipgram"])
    assert (
        ours.vectors([]).shape == (0, ours.dim) == sentence_vectors(ours, []).shape and ours.ngrams([]) == []
    )
    assert (ours.rows(["tatort", "tatortx", ""]).lengths > 0).tolist() == [True, True, False]
    with pytest.raises(ValueError, match="sentence 1 contains a line feed at byte 2"):
        sentence_vectors(ours, ["a", "ab\nc"])


def test_real_files(fasttext: Any, real: Path):
    for name in ("crime-and-punishment.bin", "lee_fasttext_new.bin"):
        theirs, ours = fasttext.load_model(str(real / name)), FastText.open(real / name)
        asked = [*theirs.get_words(), "neverseen", "преступник"]
        np.testing.assert_array_equal(
            ours.vectors(asked), np.stack([theirs.get_word_vector(word) for word in asked])
        )


@pytest.mark.parametrize("name", ["lee_fasttext", "crime-and-punishment"])
def test_binary_and_text_models_have_equal_vectors(real: Path, name: str):
    """The .vec beside a model holds the same vectors, rounded to five digits; lee_fasttext.bin has no magic
    number."""
    ours = FastText.open(real / f"{name}.bin")
    lines = (real / f"{name}.vec").read_text(encoding="utf-8").splitlines()[1:]
    words, values = zip(
        *((line.split(" ")[0], [float(value) for value in line.split()[1:]]) for line in lines), strict=True
    )
    np.testing.assert_allclose(ours.vectors(words), np.array(values), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize(
    ("name", "encoding"), [("cp852_fasttext.bin", "cp852"), ("non_ascii_fasttext.bin", "utf-8")]
)
def test_headerless_files_against_gensim(real: Path, name: str, encoding: str):
    facebook = pytest.importorskip("gensim.models.fasttext", reason="gensim is not installed (extra dev)")
    theirs, ours = (
        facebook.load_facebook_vectors(str(real / name), encoding=encoding),
        FastText.open(real / name),
    )
    words = [word for word in ours.dictionary.words() if word != b"</s>"]
    assert ours.header.version == 0 and len(words) > 50
    rows = np.stack([theirs.vectors_vocab[theirs.key_to_index[word.decode(encoding)]] for word in words])
    np.testing.assert_array_equal(ours.matrix.take(ours.dictionary.ids(words)), rows)
