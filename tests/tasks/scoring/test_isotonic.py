"""Isotonic regression against SciPy's."""

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from tasks.scoring.isotonic import increasing_fit


@pytest.mark.parametrize("count", [0, 1, 2, 7, 400])
def test_fit_equals_that_of_scipy(count: int):
    rng = np.random.default_rng(count)
    values = np.sort(rng.random(count)) + rng.normal(size=count) * 0.3
    weights = rng.integers(1, 9, count)
    expected = isotonic_regression(values, weights=weights).x if count else np.zeros(0)
    np.testing.assert_allclose(increasing_fit(values, weights), expected, atol=1e-12)
