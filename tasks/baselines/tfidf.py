"""Predicts categories from TF-IDF features of titles, by k-NN or by a linear SVM, the strongest baseline.

scikit-learn is imported inside functions, because importing it takes a second, and `--help` imports this
module for its settings.

For each label, the SVM approximates min_w ½‖w‖² + C Σ max(0, 1 − y w·x)² (``tasks/linear/svm.py``). Labels
are ranked by w·x; labels with w·x > 0 are predicted.

The defaults were chosen with liblinear on four English guides (19,658 training titles, 138,236 features, 142
labels, 2026-11-21):

====================================  =====================  ====================
choice                                accuracy unseen title  accuracy unseen show
====================================  =====================  ====================
**squared hinge, C = .2**             .477                   .407
squared hinge, C = 1 / .3 / .1 / .05  .467 .472 .471 .459    .367 .397 .415 .407
hinge, C = 1 / .3                     .469 .464              .379 .389
one multi-class SVM                   .477                   .412
only features in ≥ 2 titles, C = .3   .467                   .391
====================================  =====================  ====================

The micro-F1 of the multi-class SVM on unseen titles is .342 instead of .410, because its margins do not
determine which labels to predict.

The sentence features of 512 numbers are projected to the 32 directions that separate the labels best
(``label_directions``). The accuracy on unseen titles, unseen shows and the next period is .501 .454 .374.
With all 512 numbers it is .499 .451 .354, in 5.6 times the CPU time, and without sentence features .462 .416
.333 (docs/log, 2026-11-23).

On the mean of fourteen guides, the accuracy of four passes of our solver differs from that of liblinear at
tolerance 1 by at most .005. Our solver takes about a tenth of the CPU time of liblinear on four merged guides
(125 labels; benchmarks/linear/linear.py), and a seventh to an eighth on single guides (13 to 61 labels).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from tasks.baselines.inputs import TitleInputs
from tasks.baselines.nearest import nearest_rows
from tasks.baselines.predictions import LabelledTitles, Predictions, predict_from_scores, vote
from tasks.form import configurable, setting
from tasks.linear.solvers import fit_svms
from tasks.linear.svm import OnlineSvm

RIDGE = 3.0  # λ in label_directions; λ = 30 gives equal scores of the baseline
_MEMORY_HELP = (
    "Maximum memory of samples in bytes; more samples are read from disk, to a duality gap of 0.1 %."
)
_MIN_TITLES_HELP = (
    "Minimum number of training titles with a feature; 2 instead of 1 costs a point of accuracy."
)


@configurable
class TfidfFeatures:
    """Selects the words and n-grams that are features. The defaults scored best on four English guides."""

    longest_word_ngram: int = setting(2, "Maximum number of words of a word n-gram.", ge=1, le=5)
    shortest_char_ngram: int = setting(3, "Minimum length of a character n-gram, within words.", ge=1, le=10)
    longest_char_ngram: int = setting(5, "Maximum length of a character n-gram, within words.", ge=1, le=10)
    min_titles: int = setting(1, _MIN_TITLES_HELP, ge=1)

    def __post_init__(self) -> None:
        if self.longest_char_ngram < self.shortest_char_ngram:
            raise ValueError(
                f"there are no character n-grams of {self.shortest_char_ngram} to "
                f"{self.longest_char_ngram} characters; raise longest_char_ngram"
            )

    def fit_transform(self, titles: TitleInputs) -> tuple["Vectorizers", Any]:
        """Fits the vectorizers and computes the features of the titles: float32 CSR, (titles, features).

        The features of words, of characters and of contexts are normalized separately, so that they have
        equal weight. The result is cached for all baselines with these settings. The cached features of texts
        are used both with and without contexts. Raises a ValueError if no text has a feature.
        """
        from sklearn.feature_extraction.text import TfidfVectorizer

        cache, options = titles.cache, {"min_df": self.min_titles, "sublinear_tf": True}
        make_vectorizer = partial(TfidfVectorizer, dtype=np.float32, **options)
        if self not in cache:
            lengths = self.shortest_char_ngram, self.longest_char_ngram
            words = make_vectorizer(ngram_range=(1, self.longest_word_ngram), token_pattern=r"\b\w+\b")
            vectorizers = Vectorizers(words, make_vectorizer(ngram_range=lengths, analyzer="char_wb"))
            features = [words.fit_transform(titles.texts), vectorizers.chars.fit_transform(titles.texts)]
            cache[self] = vectorizers, _stack(features)
        if not any(titles.contexts):
            return cache[self]
        if (self, "contexts") not in cache:
            vectorizers, texts = cache[self]
            contexts = make_vectorizer(token_pattern=r"\S+", lowercase=False)
            features = _stack([texts, contexts.fit_transform(titles.contexts)])
            cache[self, "contexts"] = replace(vectorizers, contexts=contexts), features
        return cache[self, "contexts"]


@dataclass(frozen=True, eq=False)
class Vectorizers:
    """Fitted TfidfVectorizers of words, of characters, and of contexts if any title has a context."""

    words: Any
    chars: Any
    contexts: Any = None

    def transform(self, titles: TitleInputs) -> Any:
        """Computes the features of titles, CSR. They are cached for all baselines with these vectorizers."""
        cache = titles.cache
        if self.words not in cache:
            features = [self.words.transform(titles.texts), self.chars.transform(titles.texts)]
            cache[self.words] = _stack(features)
        if self.contexts is None:
            return cache[self.words]
        if self.contexts not in cache:
            contexts = self.contexts.transform(titles.contexts or [""] * len(titles))
            cache[self.contexts] = _stack([cache[self.words], contexts])
        return cache[self.contexts]


def _stack(matrices: Sequence[Any]) -> Any:
    from scipy import sparse

    return sparse.hstack(matrices).tocsr()


@dataclass(frozen=True)
class FittedTfidfKnn:
    """Trained baseline: the training titles, and their features ``base``, CSR (titles, features)."""

    features: Vectorizers
    base: Any
    training: LabelledTitles
    k: int

    def predict(self, titles: TitleInputs) -> Predictions:
        """Predicts labels by the vote of the nearest titles that share a feature with the title."""
        queries = self.features.transform(titles) if len(titles) else self.base[:0]
        ids, cosines = nearest_rows(queries, self.base, self.k)
        return vote(ids, cosines, self.training.labels, self.training.frequency)


@configurable
class TfidfKnn:
    """Baseline: the k training titles with the largest cosine of TF-IDF features vote for labels."""

    name: Literal["tfidf_knn"] = "tfidf_knn"
    k: int = setting(10, "Number of neighbours that vote.", ge=1)
    features: TfidfFeatures = setting(TfidfFeatures(), "Features of a title.")

    def fit(self, training: LabelledTitles) -> FittedTfidfKnn:
        """Stores the features of the training titles. Raises a ValueError if no title has a feature."""
        vectorizers, features = self.features.fit_transform(training.titles)
        return FittedTfidfKnn(vectorizers, features, training, self.k)


@dataclass(frozen=True)
class FittedTfidfSvm:
    """Trained baseline: the classifiers of all labels, and the name of the solver that trained them."""

    features: Vectorizers
    directions: np.ndarray  # projection of sentence vectors, float32 (features, directions), orthonormal
    classifiers: OnlineSvm
    label_counts: np.ndarray  # number of training titles with each label, int64 (labels,)
    solver: str

    def predict(self, titles: TitleInputs) -> Predictions:
        """Ranks labels by margin, labels without training titles last. Predicts labels with margin > 0."""
        margins = np.zeros((0, len(self.label_counts)))
        if len(titles):
            projected = titles.sentence_features @ self.directions
            inputs = _append_columns(self.features.transform(titles), projected)
            margins = np.where(self.label_counts > 0, self.classifiers.decision_function(inputs), -np.inf)
        return predict_from_scores(margins, margins > 0, self.label_counts)


@configurable
class LinearSvm:
    """Base class of linear SVMs, one per label, on TF-IDF features and projected sentence vectors."""

    cost: float = setting(0.2, "C: weight of the losses of training titles.", gt=0)
    epochs: int = setting(4, "Number of passes over the training titles.", ge=1)
    seed: int = setting(0, "Seed of the order in which titles are visited.", ge=0)
    memory_bytes: int = setting(1 << 30, _MEMORY_HELP, ge=1)
    features: TfidfFeatures = setting(TfidfFeatures(), "Features of a title.")

    def fit_to(self, training: LabelledTitles, directions: np.ndarray) -> FittedTfidfSvm:
        """Trains the classifiers on TF-IDF features and on sentence vectors projected to ``directions``."""
        vectorizers, text_features = self.features.fit_transform(training.titles)
        inputs = _append_columns(text_features, training.titles.sentence_features @ directions)
        classifiers, solver = fit_svms(
            inputs,
            training.labels,
            training.label_count,
            cost=self.cost,
            epochs=self.epochs,
            seed=self.seed,
            memory_bytes=self.memory_bytes,
        )
        return FittedTfidfSvm(vectorizers, directions, classifiers, training.frequency, solver)


@configurable
class TfidfSvm(LinearSvm):
    """Baseline: a linear SVM per label on TF-IDF features."""

    name: Literal["tfidf_svm"] = "tfidf_svm"

    def fit(self, training: LabelledTitles) -> FittedTfidfSvm:
        """Trains the classifiers, without sentence vectors."""
        no_directions = np.zeros((training.titles.sentence_features.shape[1], 0), dtype=np.float32)
        return self.fit_to(training, no_directions)


@configurable
class TfidfSvmSentence(LinearSvm):
    """Baseline: a linear SVM per label on TF-IDF features and on the projected sentence vector."""

    name: Literal["tfidf_svm_sentence"] = "tfidf_svm_sentence"
    directions: int = setting(32, "Number of directions to which sentence vectors are projected.", ge=1)

    def fit(self, training: LabelledTitles) -> FittedTfidfSvm:
        """Trains the classifiers. Raises NoSentenceVectors if the titles have no sentence vectors."""
        features, labels = training.titles.require_sentence_features(), training.labels
        directions = label_directions(features, labels.multi_hot(training.label_count), self.directions)
        return self.fit_to(training, directions)


def label_directions(features: np.ndarray, is_label: np.ndarray, count: int) -> np.ndarray:
    """Computes the directions of sentence features that best predict the labels of training titles.

    The directions are the first left singular vectors of W = (XᵀX + λI)⁻¹XᵀY, the weights of a ridge
    regression, where X are the centred sentence features and Y the labels.

    Args:
        features: Sentence features of the titles, float32 (titles, features).
        is_label: Whether each title has each label, bool (titles, labels).
        count: Number of directions.

    Returns:
        The directions as orthonormal columns, float32 (features, count).
    """
    from scipy import sparse

    mean, label_counts = features.mean(axis=0), is_label.sum(axis=0)
    gram = (features.T @ features).astype(np.float64) - len(features) * np.outer(mean, mean)
    products = (sparse.csr_matrix(is_label, dtype=np.float32).T @ features).T - np.outer(mean, label_counts)
    weights = np.linalg.solve(gram + RIDGE * np.eye(len(mean)), products)
    return np.linalg.svd(weights, full_matrices=False)[0][:, :count].astype(np.float32)


def _append_columns(text_features: Any, columns: np.ndarray) -> Any:
    from scipy import sparse

    return _stack([text_features, sparse.csr_matrix(columns)]) if columns.shape[1] else text_features
