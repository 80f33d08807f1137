"""Logistic regressions of several columns at once, compared with scikit-learn."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from storage.arrays import Ragged
from tasks.kinds import logistic
from tasks.kinds.features import BITS, CHANNEL_SCALES, WORD_SCALE, Inputs


def test_columns_equal_those_of_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logistic, "ITERATIONS", 100)
    rng = np.random.default_rng(0)
    titles, features = 300, 8
    dense = rng.normal(size=(titles, features)).astype(np.float32)
    words = Ragged.from_rows([sorted({*rng.integers(0, 9, 3).tolist()}) for _ in range(titles)])
    channels = Ragged.from_rows([[5, (1 << BITS) + 7], [6]])
    inputs = Inputs(dense, words, channels, rng.integers(0, 2, titles))
    signs = np.where(rng.normal(size=(titles, 3)) + dense[:, :3] + inputs.channel_of[:, None] > 0, 1, -1)
    is_example = rng.random((titles, 3)) < 0.8
    weights = logistic.fit_columns(inputs, signs.astype(np.float32), is_example)

    names, hashed = np.zeros((2, 2 << BITS)), np.zeros((titles, 1 << BITS))
    hashed[words.row_ids, words.values] = WORD_SCALE
    names[channels.row_ids, channels.values] = CHANNEL_SCALES[channels.values, 0]
    explicit = np.hstack([dense, hashed, names[inputs.channel_of]])
    for column in range(3):
        rows = is_example[:, column]
        reference = LogisticRegression(C=1, tol=1e-6, max_iter=1000)
        reference.fit(explicit[rows], signs[rows, column])
        expected = reference.decision_function(explicit)
        np.testing.assert_allclose(inputs.margins(weights)[:, column], expected, atol=5e-3)
