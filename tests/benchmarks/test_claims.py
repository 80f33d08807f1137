"""When a claim is met."""

import pytest

from benchmarks.claims import Claim


@pytest.mark.parametrize(
    ("value", "rival_value", "aim", "better", "met"),
    [
        (2.0, 1.0, 2.0, "more", True),
        (1.9, 1.0, 2.0, "more", False),
        (0.04, 1.0, 0.04, "less", True),
        (0.05, 1.0, 0.04, "less", False),
        (0.9, 0.0, 1.0, "more", True),
        (0.1, 0.0, 0.5, "less", False),
        (1.0, None, 1.0, "more", False),
        (1.0, 1.0, None, "more", None),
        (1.0, 1.0, 1.0, None, None),
    ],
)
def test_met_beside_a_rival_also_one_that_reached_nothing(value, rival_value, aim, better, met):
    assert Claim("x", value, "other", rival_value, aim=aim, better=better).met is met


def test_met_by_a_number_of_its_own():
    assert Claim("x", 14.0, aim=15, better="less").met is True
    assert Claim("x", 0.9, aim=1.0).met is False
