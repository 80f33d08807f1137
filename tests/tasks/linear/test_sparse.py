"""Invalid samples are refused before compiled loops read them."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from storage.arrays import Ragged
from tasks.linear.sparse import validate_labels, validate_rows

ROWS = csr_matrix(np.array([[0, 2.5, 0], [0, 0, 0], [1, 0, 3]]))


def test_rows_become_arrays_of_the_types_that_the_loops_read() -> None:
    offsets, ids, values = validate_rows(ROWS)
    assert (offsets.dtype, ids.dtype, values.dtype) == (np.int64, np.int32, np.float32)
    assert offsets.tolist() == [0, 1, 1, 3] and ids.tolist() == [1, 0, 2] and values.tolist() == [2.5, 1, 3]


def test_values_of_one_feature_are_summed_and_the_matrix_is_left_as_it_was() -> None:
    twice = csr_matrix((np.ones(3), np.array([1, 0, 1]), np.array([0, 3])), shape=(1, 2))
    offsets, ids, values = validate_rows(twice)
    assert offsets.tolist() == [0, 2] and ids.tolist() == [0, 1] and values.tolist() == [1, 2]
    assert twice.indices.tolist() == [1, 0, 1]


def test_other_matrix_types_are_refused() -> None:
    for other in (ROWS.tocsc(), ROWS.toarray()):
        with pytest.raises(ValueError, match=r"CSR matrix, got .*; call tocsr"):
            validate_rows(other)


def test_a_feature_beyond_the_lookup_is_named_with_its_row() -> None:
    assert len(validate_rows(ROWS, features=3)[1]) == 3
    with pytest.raises(ValueError, match="row 2 holds feature 2; there are features 0 to 1"):
        validate_rows(ROWS, features=2)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_a_value_that_is_not_finite_is_named_with_its_row(value: float) -> None:
    broken = ROWS.copy()
    broken.data[1] = value
    with pytest.raises(ValueError, match=r"row 2 holds .* for feature 0; expected a finite float32"):
        validate_rows(broken)


def test_labels_are_checked_too() -> None:
    offsets, ids = validate_labels(Ragged.from_rows([[1], [], [0, 1]]), 3, 2)
    assert (offsets.dtype, ids.dtype, offsets.tolist(), ids.tolist()) == (
        np.int64, np.int32, [0, 1, 1, 3], [1, 0, 1],
    )  # fmt: skip
    with pytest.raises(ValueError, match="2 rows of labels for 3 samples"):
        validate_labels(Ragged.from_rows([[1], []]), 3, 2)
    with pytest.raises(ValueError, match="row 1 holds label 2; there are labels 0 to 1"):
        validate_labels(Ragged.from_rows([[1], [2]]), 2, 2)
    with pytest.raises(ValueError, match="row 0 holds label -1"):
        validate_labels(Ragged.from_rows([[-1], [1]]), 2, 2)
