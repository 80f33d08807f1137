"""Vectors of unseen words by stems: batches, loss and neighbours."""

from typing import get_args

import numpy as np
import pytest
import torch

from tasks.augment.stems import Language, StemPairs, Stems, find_stems, triplet_loss


def test_the_languages_are_the_packages():
    import snowballstemmer

    assert set(get_args(Language)) <= set(snowballstemmer.algorithms())


def test_stems_number_the_words():
    assert find_stems(["goals", "goal", "baking", "baked"], "english").tolist() == [1, 1, 0, 0]
    german = find_stems(["häuser", "haus", "hauses"], "german")
    assert len(set(german.tolist())) == 1


def test_each_epoch_contains_every_stem_once_with_a_second_word_if_possible():
    stems = np.array([0, 1, 0, 2, 0, 1])
    for seed in range(20):
        drawn = list(StemPairs(stems).batches(np.random.default_rng(seed), 2))
        assert [len(words) for words in drawn] == [4, 2]
        pairs = np.concatenate([words.reshape(2, -1).T for words in drawn])
        assert sorted(stems[pairs[:, 0]].tolist()) == [0, 1, 2]
        assert (stems[pairs[:, 0]] == stems[pairs[:, 1]]).all()
        for one, other in pairs:
            assert (one == other) == (stems[one] == 2)


def test_the_loss_is_the_hardest_triplet_of_each_word():
    vectors = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    unit = torch.nn.functional.normalize(vectors, dim=1)
    losses = []
    for word in range(6):
        others = [float(unit[word] @ unit[other]) for other in range(6) if other % 3 != word % 3]
        partner = float(unit[word] @ unit[(word + 3) % 6])
        losses.append(max(0.0, 0.3 - partner + max(others)))
    assert triplet_loss(vectors, 0.3).item() == pytest.approx(np.mean(losses), abs=1e-6)
    assert triplet_loss(vectors[:2], 0.3).item() == 0  # one stem has nothing to be pushed from


def test_words_of_one_stem_are_nearest_even_if_unseen():
    roots = ["kitchen", "murder", "harbour", "plant", "garden", "walk", "paint", "report", "record", "visit"]
    words = [root + ending for root in roots for ending in ("", "s", "ing")]
    shown = Stems(epochs=40, batch_size=20)
    found = shown.fit(words, np.eye(len(words), dtype=np.float32), np.ones(len(words), dtype=np.int64))
    codes = found.encoder.vectors([root + "ed" for root in roots])
    codes /= np.linalg.norm(codes, axis=1, keepdims=True)
    nearest = (codes @ found.word_vectors.T).argmax(axis=1) // 3
    assert (nearest == np.arange(len(roots))).mean() >= 0.8


def test_the_most_frequent_words_train_and_all_are_neighbours():
    words = ["aaa", "bbb", "ccc", "ddd"]
    shown = Stems(most_words=2, epochs=1)
    found = shown.fit(words, np.eye(4, dtype=np.float32), np.array([1, 5, 1, 5]))
    assert found.encoder.alphabet.characters == "bd" and found.size == 4
