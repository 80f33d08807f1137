"""Each baseline, and the contract of all baselines."""

import dataclasses
from collections.abc import Sequence
from typing import get_args

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from storage.arrays import Ragged
from tasks.baselines import Baseline, Majority, SentenceKnn, TfidfKnn, TfidfSvm, TfidfSvmSentence, sentence
from tasks.baselines.inputs import NoSentenceVectors, TitleInputs, unit_sentence_features
from tasks.baselines.nearest import nearest_rows
from tasks.baselines.predictions import LabelledTitles
from tasks.baselines.tfidf import TfidfFeatures, label_directions

COOK, SPORT, NEWS = range(3)
TEXTS = [
    "Kitchen Stories",
    "Hell's Kitchen",
    "Kitchen Nightmares",
    "Football Live",
    "Football Focus",
    "World News",
    "Evening News",
    "Football News",
]
ROWS = [[COOK], [COOK], [COOK], [SPORT], [SPORT], [NEWS], [NEWS], [SPORT, NEWS]]
SUBJECTS = {"kitchen": COOK, "football": SPORT, "news": NEWS}


def titles(texts: Sequence[str]) -> TitleInputs:
    """Texts with the dense vector of what they are about: axis 0 to 2, and zero where that is unknown."""
    words = [text.lower().split() for text in texts]
    rows = [
        sum((np.eye(4)[SUBJECTS[word]] for word in own if word in SUBJECTS), np.zeros(4)) for own in words
    ]
    dense = np.array(rows, dtype=np.float32).reshape(-1, 4)
    return TitleInputs(texts, unit_sentence_features(dense, np.zeros((len(texts), 0)), np.arange(len(texts))))


def labelled(texts: Sequence[str], rows: Sequence[Sequence[int]], label_count: int = 3) -> LabelledTitles:
    return LabelledTitles(titles(texts), Ragged.from_rows(rows), label_count)


WORLD = labelled(TEXTS, ROWS)


@pytest.mark.parametrize(
    "baseline", [strategy() for strategy in get_args(Baseline)], ids=lambda strategy: strategy.name
)
class TestEveryBaseline:
    def test_is_a_frozen_strategy_with_a_name(self, baseline):
        assert isinstance(baseline.name, str)
        with pytest.raises(dataclasses.FrozenInstanceError):
            baseline.name = "other"
        with pytest.raises(TypeError):
            type(baseline)("positional")

    def test_ranks_are_permutations_and_something_is_written(self, baseline):
        predictions = baseline.fit(WORLD).predict(titles(["Kitchen News", "zzz", "", "★"]))
        assert np.sort(predictions.ranks, axis=1).tolist() == [[1, 2, 3]] * 4
        assert predictions.predicted.any(axis=1).all()

    def test_same_bits_twice(self, baseline):
        one, other = (baseline.fit(WORLD).predict(titles(TEXTS)) for _ in range(2))
        assert (one.ranks == other.ranks).all() and (one.predicted == other.predicted).all()

    def test_no_queries_empty(self, baseline):
        predictions = baseline.fit(WORLD).predict(titles([]))
        assert predictions.ranks.shape == (0, 3) and predictions.predicted.shape == (0, 3)

    def test_one_training_title_single(self, baseline):
        predictions = baseline.fit(labelled(["News"], [[1]])).predict(titles(["Sport", "News"]))
        assert predictions.top.tolist() == [1, 1]

    def test_labels_all_equal(self, baseline):
        predictions = baseline.fit(labelled(TEXTS, [[2]] * 8)).predict(titles(TEXTS[:2]))
        assert predictions.top.tolist() == [2, 2]
        assert np.flatnonzero(predictions.predicted[0]).tolist() == [2]

    def test_a_label_of_no_training_title_is_never_written(self, baseline):
        predictions = baseline.fit(labelled(TEXTS, ROWS, 4)).predict(titles(["Kitchen", "Football"]))
        assert not predictions.predicted[:, 3].any()


def test_majority_ranks_by_frequency():
    predictions = Majority().fit(labelled(["a", "b", "c"], [[1], [1, 2], [1, 2, 0]])).predict(titles(["x"]))
    assert predictions.ranks.tolist() == [[3, 1, 2]]
    assert predictions.predicted.tolist() == [[False, True, False]]
    assert predictions.neighbours is None


@pytest.mark.parametrize(
    "baseline", [SentenceKnn(k=2), TfidfSvmSentence()], ids=lambda strategy: strategy.name
)
class TestBaselinesThatReadSentenceVectors:
    def test_a_title_with_unknown_words_is_predicted_by_its_vector(self, baseline):
        asked = TitleInputs(["qqq", "xxx", "zzz"], np.eye(4, dtype=np.float32)[[COOK, SPORT, NEWS]])
        assert baseline.fit(WORLD).predict(asked).top.tolist() == [COOK, SPORT, NEWS]

    def test_missing_sentence_vectors_are_refused(self, baseline):
        bare = LabelledTitles(TitleInputs(TEXTS, np.zeros((8, 0), np.float32)), WORLD.labels, 3)
        with pytest.raises(NoSentenceVectors, match=r"preprocess\.sentences"):
            baseline.fit(bare)


def test_sentence_knn_searches_once_for_both_forms(
    monkeypatch: pytest.MonkeyPatch,
):
    searched, search = [], sentence.top_neighbours
    monkeypatch.setattr(sentence, "top_neighbours", lambda *given: searched.append(1) or search(*given))
    asked = titles(["Football", "Kitchen News"])
    first = SentenceKnn(k=3).fit(WORLD).predict(asked)
    alone = dataclasses.replace(WORLD, titles=WORLD.titles.without_contexts())
    again = SentenceKnn(k=3).fit(alone).predict(asked.without_contexts())
    np.testing.assert_array_equal(first.top, again.top)
    assert len(searched) == 1
    SentenceKnn(k=2).fit(WORLD).predict(asked)
    some = SentenceKnn(k=3).fit(labelled(TEXTS[:3], ROWS[:3])).predict(asked)
    assert len(searched) == 3 and (some.top == COOK).all()


def test_sentence_knn_has_no_neighbours_for_unknown_titles():
    predictions = SentenceKnn(k=3).fit(WORLD).predict(titles(["Football", "qqq"]))
    assert predictions.neighbours is not None
    assert set(predictions.neighbours[0].tolist()) == {3, 4, 7}
    assert predictions.neighbours[1].tolist() == [-1, -1, -1]


def test_the_svm_on_texts_alone_does_not_read_the_dense_vector():
    lying = TitleInputs(["Kitchen Stories"], np.eye(4, dtype=np.float32)[[SPORT]])
    assert TfidfSvm().fit(WORLD).predict(lying).top.tolist() == [COOK]


def test_label_directions_are_the_dimensions_that_separate_labels():
    rng = np.random.default_rng(4)
    noise = rng.normal(0, 3, (400, 20))  # most of the variance; principal components would keep it
    labels = rng.integers(0, 3, 400)
    dense = np.hstack([noise, np.eye(3)[labels] + rng.normal(0, 0.1, (400, 3))]).astype(np.float32)
    found = label_directions(dense, np.eye(3, dtype=bool)[labels], 2)
    assert found.shape == (23, 2) and found.dtype == np.float32
    np.testing.assert_allclose(found.T @ found, np.eye(2), atol=1e-5)
    assert (found[20:] ** 2).sum() > 1.9  # of 2, the squared length of both
    assert label_directions(dense, np.eye(3, dtype=bool)[labels], 64).shape == (23, 3)


def test_dense_inputs_are_unit_norm_sums_and_zero_where_nothing_is_known():
    sentences = np.array([[1, 0], [1, 0], [0, 0], [0, 0]], dtype=np.float16)
    descriptions = np.array([[0, 1], [0, 0], [0, 1], [0, 0]], dtype=np.float16)
    half, every = np.sqrt(0.5), np.arange(4)
    expected = [[half, half], [1, 0], [0, 1], [0, 0]]
    np.testing.assert_allclose(unit_sentence_features(sentences, descriptions, every), expected, atol=1e-6)
    assert unit_sentence_features(sentences, sentences[:, :0], every[1:]).tolist() == sentences[1:].tolist()
    assert unit_sentence_features(sentences[:, :0], sentences[:, :0], every).shape == (4, 0)


def test_features_of_training_titles_are_computed_once_for_all_baselines():
    world = labelled(TEXTS, ROWS)
    knn, svm = TfidfKnn().fit(world), TfidfSvm().fit(world)
    assert knn.features is svm.features
    assert TfidfSvm(features=TfidfFeatures(min_titles=2)).fit(world).features is not svm.features


@pytest.mark.parametrize(
    "baseline", [TfidfKnn(k=2), TfidfSvm(), TfidfSvmSentence()], ids=lambda strategy: strategy.name
)
def test_text_baselines_read_the_title(baseline):
    predictions = baseline.fit(WORLD).predict(
        titles(["Kitchen Impossible", "Football Tonight", "Morning News", "Kitchens"])
    )
    assert predictions.top.tolist() == [COOK, SPORT, NEWS, COOK]  # the last by its letters alone


def test_knn_has_no_neighbours_without_common_features():
    predictions = TfidfKnn(k=3).fit(WORLD).predict(titles(["Kitchen", "qqq"]))
    assert predictions.neighbours is not None
    assert set(predictions.neighbours[0].tolist()) == {0, 1, 2}
    assert predictions.neighbours[1].tolist() == [-1, -1, -1]
    assert predictions.top[1] == np.argsort(Majority().fit(WORLD).predict(titles(["qqq"])).ranks[0])[0]


def test_knn_neighbours_equal_dense_cosines():
    rng = np.random.default_rng(3)
    letters = list("abcdefgh")
    texts = [
        "".join(rng.choice(letters, size=rng.integers(3, 9))) + " " + "".join(rng.choice(letters, size=4))
        for _ in range(120)
    ]
    features, fitted = TfidfFeatures().fit_transform(titles(texts))
    base = features.transform(titles(texts)).toarray().astype(np.float64)
    np.testing.assert_array_equal(fitted.toarray(), base)
    base /= np.linalg.norm(base, axis=1, keepdims=True)
    predictor = TfidfKnn(k=5).fit(labelled(texts, [[0]] * 120, 1))
    ids = predictor.predict(titles(texts)).neighbours
    assert ids is not None
    expected = np.sort(base @ base.T, axis=1)[:, ::-1][:, :5]
    found = np.where(ids >= 0, np.take_along_axis(base @ base.T, np.maximum(ids, 0), axis=1), 0)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert (ids[:, 0] == np.arange(120)).all()


def test_nearest_rows_ties_go_to_the_lower_id_and_missing_ones_are_absent():
    from scipy.sparse import csr_matrix

    base = csr_matrix(np.array([[1, 0], [0, 1], [1, 0]], dtype=np.float32))
    ids, products = nearest_rows(csr_matrix(np.array([[1, 0]], dtype=np.float32)), base, 5)
    assert ids.tolist() == [[0, 2, -1, -1, -1]]
    assert products.tolist() == [[1, 1, 0, 0, 0]]


def test_sparse_neighbours_are_those_of_scikit_learn_bit_for_bit():
    from scipy.sparse import random as random_matrix
    from sklearn.neighbors import NearestNeighbors

    base, queries = (
        random_matrix(rows, 300, 0.05, format="csr", dtype=np.float32, random_state=seed)
        for seed, rows in enumerate((2000, 50))
    )
    ids, cosines = nearest_rows(queries, base, 7)
    distances, near = NearestNeighbors(metric="cosine", algorithm="brute").fit(base).kneighbors(queries, 7)
    np.testing.assert_array_equal(ids, near)
    np.testing.assert_array_equal(cosines, 1 - distances)


def test_features_are_word_and_character_ngrams_each_of_unit_norm():
    features, _ = TfidfFeatures(
        longest_word_ngram=2, shortest_char_ngram=3, longest_char_ngram=3
    ).fit_transform(titles(["Blue Sky", "Red Sky"]))
    words, chars = (set(part.vocabulary_) for part in (features.words, features.chars))
    assert words == {"blue", "sky", "red", "blue sky", "red sky"}
    assert " sk" in chars and "ky " in chars and "e s" not in chars  # within words
    matrix = features.transform(titles(["Blue Sky", "qqqq"]))
    assert matrix.shape == (2, len(words) + len(chars)) and matrix.dtype == np.float32
    assert np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel() == pytest.approx([2.0, 0.0])


def test_svm_margins_are_close_to_scikit_learns_one_against_the_rest():
    predictor = TfidfSvm(cost=1.0, epochs=200).fit(WORLD)
    shared = {"sublinear_tf": True}
    parts = [
        TfidfVectorizer(token_pattern=r"\b\w+\b", ngram_range=(1, 2), **shared),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), **shared),
    ]
    inputs = np.hstack([part.fit_transform(TEXTS).toarray() for part in parts])
    queries = ["Kitchen News", "Football"]
    asked = np.hstack([part.transform(queries).toarray() for part in parts])
    targets = WORLD.labels.multi_hot(3)
    expected = np.column_stack(
        [
            LinearSVC(C=1.0, tol=1e-8, max_iter=100_000, dual=True)
            .fit(inputs, targets[:, label])
            .decision_function(asked)
            for label in range(3)
        ]
    )
    margins = predictor.classifiers.decision_function(predictor.features.transform(titles(queries)))
    np.testing.assert_allclose(margins, expected, atol=0.1)  # its intercept is drawn to 0, ours to −1
    assert (predictor.predict(titles(queries)).ranks == (-expected).argsort(axis=1).argsort(axis=1) + 1).all()


def test_svm_above_its_memory_is_trained_from_disk_with_the_same_margins():
    in_memory, from_disk = (
        TfidfSvm(epochs=300, memory_bytes=memory_bytes).fit(WORLD) for memory_bytes in (1 << 20, 1)
    )
    assert (in_memory.solver, from_disk.solver) == (
        "the online SVM in memory",
        "the dual cached SVM from disk",
    )
    queries = in_memory.features.transform(titles(["Kitchen News", "Football"]))
    margins = [predictor.classifiers.decision_function(queries) for predictor in (in_memory, from_disk)]
    np.testing.assert_allclose(*margins, atol=0.02)


def test_labelled_titles_refuse_what_does_not_fit():
    with pytest.raises(ValueError, match="2 titles and 1 rows of labels"):
        labelled(["a", "b"], [[0]], 1)
    with pytest.raises(ValueError, match="from 0 to 0"):
        labelled(["a"], [[1]], 1)
    with pytest.raises(ValueError, match="title 1 has no label"):
        labelled(["a", "b"], [[0], []], 1)
    with pytest.raises(ValueError, match="2 texts, 1 sentence vectors"):
        TitleInputs(["a", "b"], np.zeros((1, 4), np.float32))


def test_an_empty_range_of_ngrams_is_refused():
    with pytest.raises(ValueError, match="raise longest_char_ngram"):
        TfidfFeatures(shortest_char_ngram=4, longest_char_ngram=3)
