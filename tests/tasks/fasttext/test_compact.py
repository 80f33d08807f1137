"""Stores answer as the model does, in float32 to the bit; and every file of word vectors opens by what it
holds."""

from pathlib import Path

import numpy as np
import pytest

from tasks.fasttext import FastText
from tasks.fasttext.compact import CompactStore, Precision, build_store
from tasks.fasttext.text_forms import WordTable, nearest_words, open_words, write_vectors
from tests.tasks.fasttext.conftest import WORDS


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 0), ("float16", 1e-3)])
@pytest.mark.parametrize("kind", ["skipgram", "supervised_ngrams-norms", "without_ngrams"])
def test_words_and_unseen_words(
    trained: dict[str, Path], tmp_path: Path, kind: str, precision: Precision, tolerance: float
):
    model = FastText.open(trained[kind])
    store = build_store(model, tmp_path / "store", precision=precision, all_ngrams=True)
    asked = [*model.dictionary.words(), "tatortx", "küchenfee", "", "日本", "x"]
    np.testing.assert_allclose(store.vectors(asked), model.vectors(asked), atol=tolerance)
    assert store.vectors(asked).any(axis=1).tolist() == model.has_vector(asked).tolist()
    assert np.load(tmp_path / "store" / "vectors.npy", mmap_mode="r").dtype == precision and isinstance(
        store.word_rows, np.memmap
    )


def test_only_what_a_vocabulary_needs(trained: dict[str, Path], tmp_path: Path):
    model = FastText.open(trained["skipgram"])
    store = build_store(model, tmp_path / "store", ["tatort", "tatortschau", "öl", "tatort"], "float32")
    assert store.words == [b"tatort", b"tatortschau", "öl".encode()] and len(store.ngram_rows) < 60
    np.testing.assert_array_equal(
        store.vectors(["tatortschau", "tatort"]), model.vectors(["tatortschau", "tatort"])
    )
    partly = store.vectors(["tatörtchen"])[0]  # "<tat" and others were kept, the rest counts as nothing
    assert partly.any() and np.linalg.norm(partly) <= np.linalg.norm(model.vectors(["tatörtchen"])[0]) * 2
    assert not store.vectors(["zzz"]).any()


def test_a_folder_is_not_overwritten_and_pruned_models_are_refused(trained: dict[str, Path], tmp_path: Path):
    with pytest.raises(ValueError, match="pruned"):
        build_store(FastText.open(trained["supervised_ngrams-pruned"]), tmp_path / "none")
    (tmp_path / "there").mkdir()
    with pytest.raises(FileExistsError):
        build_store(FastText.open(trained["skipgram"]), tmp_path / "there")


def test_nearest_words_are_those_of_a_plain_search(trained: dict[str, Path], tmp_path: Path):
    model = FastText.open(trained["skipgram"])
    words, vectors = model.dictionary.words(), model.vectors(model.dictionary.words())
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit @ unit[words.index(b"tatort")]
    order = [place for place in np.argsort(-cosines) if words[place] != b"tatort"][:5]
    found = nearest_words(model, "tatort", 5)
    assert [name for name, _ in found] == [words[place].decode() for place in order]
    assert [cosine for _, cosine in found] == pytest.approx(cosines[order].tolist(), abs=1e-5)
    assert nearest_words(build_store(model, tmp_path / "store", precision="float32"), "tatort", 5) == found
    assert len(nearest_words(model, "neverseen", 10_000)) == len(words)


def test_opening_looks_at_the_content(trained: dict[str, Path], tmp_path: Path):
    vectors = np.ones((len(WORDS), 3), dtype=np.float32)
    kinds = {}
    for form in ("vec", "glove", "word2vec"):
        write_vectors(tmp_path / f"{form}.bin", form, WORDS, vectors)
        kinds[form] = open_words(tmp_path / f"{form}.bin")
    assert all(isinstance(opened, WordTable) and opened.dim == 3 for opened in kinds.values())
    assert isinstance(open_words(trained["bigrams-wide"]), FastText)
    build_store(FastText.open(trained["cbow"]), tmp_path / "store")
    assert isinstance(open_words(tmp_path / "store"), CompactStore)
