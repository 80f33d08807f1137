"""What each baseline must do, and what every one of the family must."""

import dataclasses

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from storage.arrays import Ragged
from tasks.baselines import BASELINES, Majority, TfidfKnn, TfidfSvm
from tasks.baselines.predictions import LabelledTitles
from tasks.baselines.tfidf import TfidfFeatures
from tasks.baselines.tfidf_knn import top_by_product

COOK, SPORT, NEWS = range(3)
TEXTS = ["Kitchen Stories", "Hell's Kitchen", "Kitchen Nightmares", "Football Live", "Football Focus", "World News", "Evening News", "Football News"]
ROWS = [[COOK], [COOK], [COOK], [SPORT], [SPORT], [NEWS], [NEWS], [SPORT, NEWS]]
WORLD = LabelledTitles(TEXTS, Ragged.from_rows(ROWS), 3)


@pytest.mark.parametrize("baseline", [strategy() for strategy in BASELINES], ids=lambda strategy: strategy.name)
class TestEveryBaseline:
    def test_is_a_frozen_strategy_with_a_name(self, baseline):
        assert isinstance(baseline.name, str)
        with pytest.raises(dataclasses.FrozenInstanceError):
            baseline.name = "other"
        with pytest.raises(TypeError):
            type(baseline)("positional")

    def test_ranks_are_permutations_and_something_is_written(self, baseline):
        predictions = baseline.fit(WORLD).predict(["Kitchen News", "zzz", "", "★"])
        assert np.sort(predictions.ranks, axis=1).tolist() == [[1, 2, 3]] * 4
        assert predictions.predicted.any(axis=1).all()

    def test_same_bits_twice(self, baseline):
        one, other = (baseline.fit(WORLD).predict(TEXTS) for _ in range(2))
        assert (one.ranks == other.ranks).all() and (one.predicted == other.predicted).all()

    def test_no_queries_empty(self, baseline):
        predictions = baseline.fit(WORLD).predict([])
        assert predictions.ranks.shape == (0, 3) and predictions.predicted.shape == (0, 3)

    def test_one_training_title_single(self, baseline):
        predictions = baseline.fit(LabelledTitles(["News"], Ragged.from_rows([[1]]), 3)).predict(["Sport", "News"])
        assert predictions.top.tolist() == [1, 1]

    def test_labels_all_equal(self, baseline):
        predictions = baseline.fit(LabelledTitles(TEXTS, Ragged.from_rows([[2]] * 8), 3)).predict(TEXTS[:2])
        assert predictions.top.tolist() == [2, 2]
        assert np.flatnonzero(predictions.predicted[0]).tolist() == [2]

    def test_a_label_of_no_training_title_is_never_written(self, baseline):
        predictions = baseline.fit(LabelledTitles(TEXTS, WORLD.labels, 4)).predict(["Kitchen", "Football"])
        assert not predictions.predicted[:, 3].any()


def test_majority_ranks_by_frequency():
    predictions = Majority().fit(LabelledTitles(["a", "b", "c"], Ragged.from_rows([[1], [1, 2], [1, 2, 0]]), 3)).predict(["x"])
    assert predictions.ranks.tolist() == [[3, 1, 2]]
    assert predictions.predicted.tolist() == [[False, True, False]]
    assert predictions.neighbours is None


@pytest.mark.parametrize("baseline", [TfidfKnn(k=2), TfidfSvm()], ids=lambda strategy: strategy.name)
def test_text_baselines_read_the_title(baseline):
    predictions = baseline.fit(WORLD).predict(["Kitchen Impossible", "Football Tonight", "Morning News", "Kitchens"])
    assert predictions.top.tolist() == [COOK, SPORT, NEWS, COOK]  # the last by its letters alone


def test_knn_names_its_neighbours_and_none_where_nothing_is_shared():
    predictions = TfidfKnn(k=3).fit(WORLD).predict(["Kitchen", "qqq"])
    assert predictions.neighbours is not None
    assert set(predictions.neighbours[0].tolist()) == {0, 1, 2}
    assert predictions.neighbours[1].tolist() == [-1, -1, -1]
    assert predictions.top[1] == np.argsort(Majority().fit(WORLD).predict(["qqq"]).ranks[0])[0]


def test_knn_neighbours_equal_dense_cosines():
    rng = np.random.default_rng(3)
    letters = list("abcdefgh")
    texts = ["".join(rng.choice(letters, size=rng.integers(3, 9))) + " " + "".join(rng.choice(letters, size=4)) for _ in range(120)]
    features, fitted = TfidfFeatures().fit_transform(texts)
    base = features.transform(texts).toarray().astype(np.float64)
    np.testing.assert_array_equal(fitted.toarray(), base)
    base /= np.linalg.norm(base, axis=1, keepdims=True)
    predictor = TfidfKnn(k=5).fit(LabelledTitles(texts, Ragged.from_rows([[0]] * 120), 1))
    ids = predictor.predict(texts).neighbours
    assert ids is not None
    expected = np.sort(base @ base.T, axis=1)[:, ::-1][:, :5]
    found = np.where(ids >= 0, np.take_along_axis(base @ base.T, np.maximum(ids, 0), axis=1), 0)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert (ids[:, 0] == np.arange(120)).all()


def test_top_by_product_ties_go_to_the_lower_id_and_missing_ones_are_absent():
    from scipy.sparse import csr_matrix

    base = csr_matrix(np.array([[1, 0], [0, 1], [1, 0]], dtype=np.float32))
    ids, products = top_by_product(csr_matrix(np.array([[1, 0]], dtype=np.float32)), base, 5)
    assert ids.tolist() == [[0, 2, -1, -1, -1]]
    assert products.tolist() == [[1, 1, 0, 0, 0]]


def test_features_are_word_and_character_ngrams_each_of_unit_norm():
    features, _ = TfidfFeatures(longest_word_ngram=2, shortest_char_ngram=3, longest_char_ngram=3).fit_transform(["Blue Sky", "Red Sky"])
    words, chars = (set(part.vocabulary_) for part in features.parts)
    assert words == {"blue", "sky", "red", "blue sky", "red sky"}
    assert " sk" in chars and "ky " in chars and "e s" not in chars  # within words
    matrix = features.transform(["Blue Sky", "qqqq"])
    assert matrix.shape == (2, features.width) and matrix.dtype == np.float32
    assert np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel() == pytest.approx([2.0, 0.0])


def test_svm_margins_equal_scikit_learns_one_against_the_rest():
    predictor = TfidfSvm(cost=1.0, tolerance=1e-6).fit(WORLD)
    shared = {"sublinear_tf": True}
    parts = [TfidfVectorizer(token_pattern=r"\b\w+\b", ngram_range=(1, 2), **shared), TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), **shared)]
    inputs = np.hstack([part.fit_transform(TEXTS).toarray() for part in parts])
    queries = ["Kitchen News", "Football"]
    asked = np.hstack([part.transform(queries).toarray() for part in parts])
    targets = WORLD.labels.members(3)
    expected = np.column_stack([LinearSVC(C=1.0, tol=1e-8, max_iter=100_000, dual=True).fit(inputs, targets[:, label]).decision_function(asked) for label in range(3)])
    margins = predictor.features.transform(queries) @ predictor.weights.T + predictor.intercepts
    np.testing.assert_allclose(margins, expected, atol=1e-4)
    assert (predictor.predict(queries).ranks == (-expected).argsort(axis=1).argsort(axis=1) + 1).all()


def test_labelled_titles_refuse_what_does_not_fit():
    with pytest.raises(ValueError, match="2 texts for 1"):
        LabelledTitles(["a", "b"], Ragged.from_rows([[0]]), 1)
    with pytest.raises(ValueError, match="0 … 0"):
        LabelledTitles(["a"], Ragged.from_rows([[1]]), 1)
    with pytest.raises(ValueError, match="title 1 holds no label"):
        LabelledTitles(["a", "b"], Ragged.from_rows([[0], []]), 1)


def test_an_empty_range_of_ngrams_is_refused():
    with pytest.raises(ValueError, match="raise longest_char_ngram"):
        TfidfFeatures(shortest_char_ngram=4, longest_char_ngram=3)
