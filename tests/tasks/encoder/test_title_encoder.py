"""The TitleEncoder: trained rows, unseen words, saving and loading."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.numpy import load_file

from storage.arrays import unit_rows
from storage.artifacts import Checkpoint, Corpus, Guide, TitleEncoderFiles, Vocabulary
from storage.formats.corpus import open_corpus
from tasks.encoder import Bag
from tasks.encoder.bags import Bagger, encode_bags
from tasks.encoder.title_encoder import ENCODERS, TitleEncoder
from tasks.search.parts import MEMORY, split_into_parts
from tasks.text.tokenizers import TOKENIZERS
from tasks.text.words import CONTEXT, KINDS, WORD, Words, WordsAndNgrams
from tasks.train.settings import TrainSettings
from tests.worlds import TRAINING, UNSEEN, WORDS, centred

Learnt = tuple[Path, Guide, Vocabulary, Corpus, Checkpoint, TitleEncoderFiles]


@pytest.fixture(scope="module")
def encoder(learnt: Learnt) -> TitleEncoder:
    home, *_, made = learnt
    return TitleEncoder.open(home / made.path)


def test_known_words_keep_their_rows(learnt: Learnt, encoder: TitleEncoder):
    home, _, vocabulary, _, checkpoint, _ = learnt
    trained = load_file(home / checkpoint.path / "checkpoint.safetensors")
    np.testing.assert_array_equal(encoder.rows, trained["rows"])
    tokens = pq.read_table(home / vocabulary.path / "tokens.parquet").to_pylist()
    assert encoder.ids == {
        (KINDS.index(row["kind"]), row["token"]): row["token_id"]
        for row in tokens
        if trained["touched"][row["token_id"]]
    }


def test_a_title_of_the_guide_has_its_trained_vector(learnt: Learnt, encoder: TitleEncoder):
    home, _, _, corpus_artifact, checkpoint, _ = learnt
    corpus = open_corpus(home / corpus_artifact.path)
    trained = load_file(home / checkpoint.path / "checkpoint.safetensors")
    rows, layer = (torch.from_numpy(trained[name]) for name in ("rows", "sentence.rows"))
    dense = TRAINING.encoder.sentence_features(corpus.sentences, corpus.descriptions)
    assert layer.shape == (TRAINING.dim, 512) and dense.any(axis=1).all()
    bags = Bagger(corpus.kinds).bags(corpus.tokens, features=dense)
    expected = encode_bags(TRAINING.encoder, rows[bags.ids], bags, layer).numpy()
    titles = pq.read_table(home / corpus_artifact.path / "titles.parquet", columns=["raw_title", "context"])
    known = ~corpus.oov
    assert known.sum() > 200
    own = titles["raw_title"].to_pylist(), titles["context"].to_pylist(), dense
    alone, full = encoder.embed_with_context(*own)
    np.testing.assert_allclose(full[known], expected[known], atol=1e-6)
    bags = Bagger(corpus.kinds).bags(corpus.tokens, corpus.kinds[corpus.tokens.values] < CONTEXT, dense)
    expected = encode_bags(TRAINING.encoder, rows[bags.ids], bags, layer).numpy()
    np.testing.assert_allclose(alone[known], expected[known], atol=1e-6)


def test_vectors_are_unit_or_zero(encoder: TitleEncoder):
    vectors = encoder.embed(["Harbour kitchen recipes", "Kitchenette bakers", "", "ᚠᚢ", "ᚠᚢᚦ"])
    norms = np.linalg.norm(vectors, axis=1)
    assert vectors.dtype == np.float32 and vectors.shape == (5, TRAINING.dim)
    assert norms == pytest.approx([1, 1, 0, 0, 0], abs=1e-6)


@pytest.mark.parametrize("tokenizer", [Words, WordsAndNgrams])
def test_a_title_without_known_tokens_has_a_zero_vector(encoder: TitleEncoder, tokenizer: type):
    """Though its length and its shape are known: they say nothing by themselves."""
    own = TitleEncoder(
        tokenizer(), encoder.bag, encoder.ids, encoder.rows, encoder.kinds, encoder.unseen_words
    )
    vectors = own.embed(["цщъ юяэ", "Harbour kitchen", "", "Цщъ Юяэ (4/6)", "kitchenette"])
    assert vectors.any(axis=1).tolist() == [False, True, False, False, True]


@pytest.fixture
def with_slots(encoder: TitleEncoder) -> TitleEncoder:
    keys = unit_rows(np.random.default_rng(1).normal(size=(20, encoder.dim)).astype(np.float32))
    return replace(encoder, slots=keys, bag=replace(encoder.bag, nearest_slot=0.5))


def test_the_key_of_the_nearest_slot_is_appended(
    encoder: TitleEncoder, with_slots: TitleEncoder, learnt: Learnt, tmp_path: Path
):
    titles = ["Harbour kitchen recipes", "Kitchenette bakers", "Goalpost", "ᚠᚢ"]
    alone, vectors, keys = encoder.embed(titles), with_slots.embed(titles), with_slots.slots
    assert keys is not None and with_slots.width == 2 * encoder.dim == vectors.shape[1]
    for own, vector in zip(alone[:3], vectors[:3], strict=True):
        expected = np.concatenate([own, 0.5 * keys[(keys @ own).argmax()]]) / np.sqrt(1.25)
        np.testing.assert_allclose(vector, expected, atol=1e-6)
    assert not vectors[3].any()
    with_slots.save(tmp_path, learnt[0] / learnt[2].path / "tokens.parquet")
    # sums depend on the alignment of arrays in memory
    np.testing.assert_allclose(TitleEncoder.open(tmp_path).embed(titles), vectors, atol=1e-6)


def test_parts_with_a_slot_add_up(with_slots: TitleEncoder):
    titles = ["Harbour kitchen recipes", "Goalpost", "ᚠᚢ"]
    names, offsets, parts = split_into_parts(with_slots, titles)
    dense = with_slots.sentence_features(titles)
    expected = with_slots.similarity(dense, with_slots.embed(titles, dense))
    np.testing.assert_allclose(unit_rows(np.add.reduceat(parts, offsets[:-1])), expected, atol=1e-5)
    assert all(own[-1] == MEMORY for own in names)
    assert parts[offsets[1:] - 1][:, -with_slots.dim :].any(axis=1).tolist() == [True, True, False]


@pytest.mark.parametrize("weight", [0.5, 1])
def test_slots_without_a_memory_are_refused_in_one_line(weight: float):
    with pytest.raises(ValueError, match=r"nearest_slot is .* with objective label; .*rare_memory") as error:
        TrainSettings(encoder=Bag(nearest_slot=weight))
    assert "\n" not in str(error.value)


def test_vectors_do_not_depend_on_other_titles(encoder: TitleEncoder):
    titles = ["Harbour kitchenette", "Murderers at large", "Goalpost", "Lisbon league leagues", "Goalpost"]
    together = encoder.embed(titles)
    for title, vector in zip(titles, together, strict=True):
        np.testing.assert_allclose(encoder.embed([title])[0], vector, atol=1e-6)
    assert encoder.embed([]).shape == (0, TRAINING.dim)


def test_an_unseen_word_is_near_its_family(encoder: TitleEncoder):
    """Centred cosine of the word alone with the words of its own category, against those of the others."""
    known = [word for words in WORDS.values() for word in words]
    category = np.array([name for name, words in WORDS.items() for _ in words])
    space = np.stack([encoder.rows[encoder.ids[WORD, word]] for word in known])
    space = space / np.linalg.norm(space, axis=1, keepdims=True)
    for name, words in UNSEEN.items():
        for word in words:
            assert (WORD, word) not in encoder.ids
            vectors, found = encoder.unseen_words.vectors([word])
            cosines = centred(np.concatenate([space, vectors / np.linalg.norm(vectors)]))
            cosines = cosines[:-1] @ cosines[-1]
            assert found.all()
            assert cosines[category == name].mean() > cosines[category != name].mean() + 0.2, word


def test_a_title_of_unseen_words_is_near_its_category(encoder: TitleEncoder):
    centres = {
        name: encoder.embed([f"{word} {other}" for word in words for other in words[:4]]).mean(axis=0)
        for name, words in WORDS.items()
    }
    for name, words in UNSEEN.items():
        vector = encoder.embed([" ".join(words)])[0]
        assert max(centres, key=lambda own: float(vector @ centres[own])) == name


def test_the_folder_gives_the_same_bits(encoder: TitleEncoder, learnt: Learnt, tmp_path: Path):
    home, _, vocabulary, *_ = learnt
    encoder.save(tmp_path, home / vocabulary.path / "tokens.parquet")
    again = TitleEncoder.open(tmp_path)
    titles = ["Harbour kitchen recipes", "Kitchenette (4/6)", "Ember penalty goals", "Xyzzy"]
    np.testing.assert_array_equal(again.embed(titles), encoder.embed(titles))
    assert (again.tokenizer, again.bag, again.ids) == (encoder.tokenizer, encoder.bag, encoder.ids)
    assert again.unseen_words.norm == encoder.unseen_words.norm
    np.testing.assert_array_equal(again.unseen_words.rows, encoder.unseen_words.rows)


def test_every_strategy_can_be_opened_again():
    """A tokenizer or encoder that is not in these lists could be trained with and never served."""
    from typing import get_args

    from tasks.encoder import Encoder
    from tasks.text.tokenizers import Tokenizer

    assert set(TOKENIZERS.values()) == set(get_args(Tokenizer)) and all(
        name == kind().name for name, kind in TOKENIZERS.items()
    )
    assert set(ENCODERS.values()) == (set(get_args(Encoder)) or {Encoder}) and all(
        name == kind().name for name, kind in ENCODERS.items()
    )


def test_context_changes_only_the_vector_with_context(learnt: Learnt, encoder: TitleEncoder):
    home, _, _, corpus, _, _ = learnt
    titles = pq.read_table(home / corpus.path / "titles.parquet", columns=["raw_title", "context"])
    raw_titles, contexts = titles["raw_title"].to_pylist(), titles["context"].to_pylist()
    alone, full = encoder.embed_with_context(raw_titles, contexts)
    np.testing.assert_array_equal(alone, encoder.embed(raw_titles))
    np.testing.assert_allclose(np.linalg.norm(full, axis=1), 1, atol=1e-5)
    assert (np.abs(full - alone).max(axis=1) > 1e-3).all()
    nothing = encoder.embed_with_context(raw_titles, [()] * len(raw_titles))
    np.testing.assert_array_equal(nothing[0], nothing[1])
    unknown = encoder.embed_with_context(raw_titles, [("channel:never heard of",)] * len(raw_titles))
    np.testing.assert_array_equal(unknown[1], alone)
