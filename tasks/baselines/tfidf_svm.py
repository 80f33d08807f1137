"""One linear SVM a label on TF-IDF: the strongest plain rival on titles, and the one to beat.

For each label apart, min_w ½‖w‖² + C Σ max(0, 1 − y w·x)², solved in the dual by coordinate descent (liblinear, by way
of scikit-learn). Labels are ranked by w·x; written are those with w·x > 0.

Chosen on four English guides (19,658 training titles, 138,236 features, 142 labels; two calm cores, 2026-11-21):

=====================================================  =====================  ====================  ========
choice                                                 accuracy unseen title  accuracy unseen show  seconds
=====================================================  =====================  ====================  ========
**squared hinge, C = .2, tolerance .1, one thread**    .477                   .407                  8.0
the same with C = 1 / .3 / .1 / .05                    .467 .472 .471 .459    .367 .397 .415 .407
hinge, C = 1 / .3                                      .469 .464              .379 .389
tolerance .3 / .01                                     .476 .477              .406 .407             the same
the same in two threads                                .476                   .407                  4.1
solved in the primal, tolerance .01, two threads       .474                   .408                  9.7
one multi-class machine, a row a (title, label)        .477                   .412                  27.6
features in two titles at least, C = .3                .467                   .391
=====================================================  =====================  ====================  ========

The multi-class machine's micro-F1 on unseen titles is .342 against .410: its margins do not say which labels to write.
One thread: liblinear's random numbers are global to the process, and two threads (4.1 s) gave other bits each time.

References: Hsieh, Chang, Lin, Keerthi, Sundararajan, *A dual coordinate descent method for large-scale linear SVM*, ICML 2008.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tasks.baselines.predictions import LabelledTitles, Predictions, predict_from_scores
from tasks.baselines.tfidf import FittedTfidf, TfidfFeatures
from tasks.form import FORM


@dataclass(frozen=True, kw_only=True)
class TfidfSvm:
    """A linear classifier a label."""

    __pydantic_config__ = FORM

    name: Literal["tfidf_svm"] = "tfidf_svm"
    cost: float = field(default=0.2, metadata={"description": "C: price of a margin not kept.", "gt": 0})
    tolerance: float = field(default=0.1, metadata={"description": "Stop when the optimality conditions hold this closely.", "gt": 0})
    seed: int = field(default=0, metadata={"description": "Order in which the solver visits the titles.", "ge": 0})
    features: TfidfFeatures = field(default=TfidfFeatures(), metadata={"description": "What is classified."})

    def fit(self, training: LabelledTitles) -> FittedTfidfSvm:
        """Fits one machine a label that some training titles hold and others do not.

        Raises:
            ValueError: No training title holds a feature.
        """
        from sklearn.svm import LinearSVC

        features, inputs = self.features.fit_transform(training.texts)
        inputs = inputs.astype(np.float64)  # what liblinear works in: saves a conversion a label
        targets = training.labels.members(training.label_count)
        weights = np.zeros((training.label_count, features.width), dtype=np.float32)
        intercepts = np.where(training.frequency > 0, 1.0, -np.inf)  # a label on all titles is always written, one on none is ranked last
        options: dict[str, Any] = {"C": self.cost, "tol": self.tolerance, "dual": True, "max_iter": 10_000, "random_state": self.seed}
        for label in np.flatnonzero((training.frequency > 0) & (training.frequency < len(training.texts))):
            machine = LinearSVC(**options)
            machine.fit(inputs, targets[:, label])
            weights[label] = np.asarray(machine.coef_).ravel()
            intercepts[label] = np.asarray(machine.intercept_).item()
        return FittedTfidfSvm(features, weights, intercepts, training.frequency)


@dataclass(frozen=True)
class FittedTfidfSvm:
    """Weights, float32, shape (labels, features), and intercepts, float64, shape (labels,)."""

    features: FittedTfidf
    weights: np.ndarray
    intercepts: np.ndarray
    frequency: np.ndarray

    def predict(self, texts: Sequence[str]) -> Predictions:
        """Ranks labels by their margins; writes those with a positive one."""
        margins = self.features.transform(texts) @ self.weights.T + self.intercepts
        return predict_from_scores(margins, margins > 0, self.frequency)
