"""Predicts categories by logistic regression with an L1 penalty on TF-IDF, a baseline with sparse weights.

The classifiers, one per label (``tasks/linear/logistic.py``), are trained in the same passes over the titles.
Labels are ranked by their margins; labels with a positive margin are predicted.

The defaults were chosen on four English guides (18,314 training titles, 132,619 features, 125 labels) and a
German month (9,442 training titles, 108,265 features, 55 labels). The table shows the accuracy on unseen
titles, unseen shows and the next period after four passes (2026-11-23). For English, it also shows the CPU
seconds of training and the share of nonzero weights. For the row with α = 3e-6, English had five passes.

=====================================  =================  =================  ====  =====
title only                             English            German             s     not 0
=====================================  =================  =================  ====  =====
**proximal SGD, rate 1, α = 1e-6**     .464 .406 .313     .548 .439 .583     .8    25 %
proximal SGD, rate 1, α = 1e-5         .445 .395 .303                        .7    6 %
proximal SGD, as in row 1, two passes  .458 .404 .303     .552 .423 .572     .3    27 %
proximal SGD, rate 2, α = 3e-6         .452 .400 .323     .561 .444 .583     .7    8 %
FTRL-proximal, rate .1, α = 1e-6       .455 .413 .354     .531 .435 .572     1.4   36 %
FTRL-proximal, rate .2, α = 1e-6       .465 .396 .303     .567 .433 .574     1.4   20 %
FTRL-proximal, rate 1, α = 1e-6        .457 .377 .273                        1.4   9 %
SVM of liblinear, C = .2               .463 .419 .333     .558 .435 .589     3.4   all
with context, proximal SGD             .722 .728 .636     .690 .644 .690     .8    14 %
with context, FTRL-proximal, rate .2   .715 .714 .566     .697 .626 .690     1.7   9 %
with context, SVM                      .727 .735 .606     .676 .642 .705     4.1   all
=====================================  =================  =================  ====  =====
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tasks.baselines.inputs import TitleInputs
from tasks.baselines.predictions import LabelledTitles, Predictions, predict_from_scores
from tasks.baselines.tfidf import TfidfFeatures, Vectorizers
from tasks.form import configurable, setting
from tasks.linear.logistic import SparseLogistic
from tasks.linear.proximal import ProximalSgd


@dataclass(frozen=True)
class FittedL1Logistic:
    """Trained baseline: the vectorizers of titles and a classifier per label."""

    features: Vectorizers
    model: SparseLogistic
    label_counts: np.ndarray  # number of training titles with each label, int64 (labels,)

    def predict(self, titles: TitleInputs) -> Predictions:
        """Ranks labels by margin, labels without training titles last. Predicts labels with margin > 0."""
        margins = np.zeros((0, len(self.label_counts)))
        if len(titles):
            inputs = self.features.transform(titles)
            margins = self.model.decision_function(inputs).astype(np.float64)
        margins[:, self.label_counts == 0] = -np.inf
        return predict_from_scores(margins, margins > 0, self.label_counts)


@configurable
class L1Logistic:
    """Baseline: a logistic regression per label on TF-IDF features, with sparse weights."""

    name: Literal["l1_logistic"] = "l1_logistic"
    alpha: float = setting(
        1e-6, "Weight of ‖w‖₁ relative to the mean loss; larger values set more weights to 0.", ge=0
    )
    learning_rate: float = setting(1.0, "Initial learning rate; about 1 / ‖x‖² is suitable.", gt=0)
    epochs: int = setting(4, "Number of passes over the training titles.", ge=1)
    seed: int = setting(0, "Seed of the order in which titles are visited.", ge=0)
    features: TfidfFeatures = setting(TfidfFeatures(), "Features of a title.")

    def fit(self, training: LabelledTitles) -> FittedL1Logistic:
        """Trains a classifier per label. Raises a ValueError if no title has a feature."""
        vectorizers, features = self.features.fit_transform(training.titles)
        model = SparseLogistic(
            features.shape[1],
            training.label_count,
            alpha=self.alpha,
            solver=ProximalSgd(learning_rate=self.learning_rate),
            epochs=self.epochs,
            seed=self.seed,
        )
        model.partial_fit(features, training.labels)
        return FittedL1Logistic(vectorizers, model, training.frequency)
