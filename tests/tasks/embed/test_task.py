"""The stage embed."""

import dataclasses
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from storage.artifacts import Checkpoint, Corpus, Guide, TitleEncoderFiles, Vectors, Vocabulary
from storage.formats.corpus import open_corpus
from storage.home.workspace import Workspace
from tasks.embed.corpus import embed_corpus
from tasks.encoder.title_encoder import TitleEncoder
from tasks.search.parts import split_into_parts
from tasks.text.words import NGRAM, WORD
from tests.worlds import TRAINING

Learnt = tuple[Path, Guide, Vocabulary, Corpus, Checkpoint, TitleEncoderFiles]


@pytest.fixture(scope="module")
def vectors(learnt: Learnt) -> Vectors:
    from prefect.logging import disable_run_logger

    from tasks.embed.task import embed

    home, _, _, corpus, _, encoder = learnt
    with disable_run_logger():
        return embed.fn(str(home), corpus, encoder)


def test_rows_are_in_the_order_of_the_titles(learnt: Learnt, vectors: Vectors):
    home, _, _, corpus, _, encoder = learnt
    raw = pq.read_table(home / corpus.path / "titles.parquet")["raw_title"].to_pylist()
    found = np.load(home / vectors.path / "vectors.npy")
    opened, read = TitleEncoder.open(home / encoder.path), open_corpus(home / corpus.path)
    dense = opened.bag.sentence_features(read.sentences, read.descriptions)
    np.testing.assert_array_equal(found, opened.embed(raw, dense))
    np.testing.assert_allclose(found, opened.embed(raw), atol=1e-3)  # a corpus keeps float16
    for name, own in (("similarity", "full"), ("similarity_alone", "vectors")):
        similarity = np.load(home / vectors.path / f"{name}.npy")
        parts = np.hstack([0.7 * opened.meaning.project(dense), np.load(home / vectors.path / f"{own}.npy")])
        np.testing.assert_allclose(
            similarity, parts / np.linalg.norm(parts, axis=1, keepdims=True), atol=1e-6
        )
    assert found.shape == (270, TRAINING.dim) and found.dtype == np.float32
    assert vectors.counts == {"titles": 270, "dim": TRAINING.dim, "unknown": 0}


def test_known_rows_have_unit_norm(learnt: Learnt, vectors: Vectors):
    home = learnt[0]
    found, known = np.load(home / vectors.path / "vectors.npy"), np.load(home / vectors.path / "known.npy")
    assert known.dtype == bool and known.all()
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


def test_the_same_inputs_are_the_same_artifact(learnt: Learnt, vectors: Vectors, without_run):
    from tasks.embed.task import embed

    home, _, _, corpus, _, encoder = learnt
    assert without_run(embed, str(home), corpus, encoder) == vectors
    assert Workspace(home).read(Vectors, vectors.path.split("/")[-1]) == vectors


def test_vectors_record_their_checkpoint(learnt: Learnt, vectors: Vectors):
    home, _, _, _, checkpoint, encoder = learnt
    assert (
        Workspace(home).details(vectors)["checkpoint"]
        == Workspace(home).details(encoder)["checkpoint"]
        == checkpoint.digest
    )


def test_token_ids_and_texts_give_equal_vectors(learnt: Learnt):
    home, _, _, corpus, _, encoder = learnt
    folder, opened = home / corpus.path, TitleEncoder.open(home / encoder.path)
    (by_ids,) = embed_corpus(folder, opened)
    given = by_ids.raw_titles, by_ids.contexts, by_ids.features
    for vectors, expected in zip(by_ids[-2:], opened.embed_with_context(*given), strict=True):
        np.testing.assert_array_equal(vectors, expected)
    # Titles of which no ids are given, and words and n-grams without a row.
    ids = open_corpus(folder).complete_tokens(np.arange(len(by_ids.oov)))
    ids = ids.where(ids.row_ids % 3 > 0)
    touched = {token: row for token, row in opened.ids.items() if token[0] not in (WORD, NGRAM) or row % 3}
    lacking = dataclasses.replace(opened, ids=touched)
    for vectors, expected in zip(
        lacking.embed_with_context(*given, ids), lacking.embed_with_context(*given), strict=True
    ):
        np.testing.assert_array_equal(vectors, expected)
    (names, offsets, parts), expected = (
        split_into_parts(lacking, *given, ids),
        split_into_parts(lacking, *given),
    )
    assert names == expected[0]
    np.testing.assert_array_equal(offsets, expected[1])
    np.testing.assert_array_equal(parts, expected[2])


def test_blocks_of_titles_give_the_vectors_of_all_at_once(learnt: Learnt, monkeypatch: pytest.MonkeyPatch):
    home, _, _, corpus, _, encoder = learnt
    folder, opened = home / corpus.path, TitleEncoder.open(home / encoder.path)
    (whole,) = embed_corpus(folder, opened)
    monkeypatch.setattr("storage.arrays.BLOCK_ROWS", 100)
    blocks = list(embed_corpus(folder, opened))
    assert [len(own.vectors) for own in blocks] == [100, 100, 70]
    for name in ("raw_titles", "splits", "oov", "features", "vectors", "full"):
        parts = np.concatenate([np.asarray(getattr(own, name)) for own in blocks])
        if name in ("vectors", "full"):
            np.testing.assert_allclose(parts, getattr(whole, name), atol=1e-6)
        else:
            np.testing.assert_array_equal(parts, np.asarray(getattr(whole, name)))
