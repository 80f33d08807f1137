"""When a claim is met."""

import pytest

from benchmarks.claims import Claim, table


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
def test_met_compares_with_the_rival_even_if_it_is_zero(value, rival_value, aim, better, met):
    assert Claim("x", value, "other", rival_value, aim=aim, better=better).met is met


def test_met_compares_with_the_target_without_a_rival():
    assert Claim("x", 14.0, aim=15, better="less").met is True
    assert Claim("x", 0.9, aim=1.0).met is False


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (Claim("x", 29.6, aim=180, better="less"), "loose target"),
        (Claim("x", 60.0, aim=180, better="less"), "yes"),
        (Claim("x", 10.0, aim=3), "loose target"),
        (Claim("x", 0.1, "other", 1.0, aim=0.5, better="less"), "loose target"),
        (Claim("x", 0.1, "other", 1.0, aim=1, better="less"), "yes"),  # not worse than the rival
        (Claim("x", 0.0, aim=0, better="less"), "yes"),
        (Claim("x", 0.6, "other", 0.55, aim=1, interval=(0.54, 0.66)), "undecided"),
        (Claim("x", 0.6, "other", 0.55, aim=1, interval=(0.56, 0.64)), "yes"),
        (Claim("x", 0.5, "other", 0.55, aim=1, interval=(0.44, 0.56)), "undecided"),
        (Claim("x", 0.5, "other", 0.55, aim=1, interval=(0.48, 0.52)), "**no**"),
        (
            Claim("x", 0.5, "other", 0.55, aim=1, interval=(0.48, 0.52), rival_interval=(0.5, 0.6)),
            "undecided",
        ),
        (Claim("x", 5.5, "other", 5.0, aim=1, better="less", interval=(5.4, 5.6)), "**no**"),
        (Claim("x", 5.5, "other", 5.0, aim=1, better="less", interval=(4.9, 5.9)), "undecided"),
        (Claim("x", 4.5, "other", 5.0, aim=1, better="less", interval=(4.4, 5.4)), "undecided"),
        (Claim("x", 1.0), None),
    ],
)
def test_verdicts_consider_intervals_and_reject_targets_that_cannot_be_missed(claim, verdict):
    assert claim.verdict == verdict


def test_targets_are_exact_and_values_show_on_which_side_of_them_they_are():
    rows = [
        Claim("a", 0.8104, "other", 0.8086, aim=1.005, better="less"),
        Claim("b", 0.8104, "other", 0.8101, aim=1, better="less"),
        Claim("c", 300_004.0, aim=300_000),
    ]
    *_, first, second, third = table(rows).splitlines()
    assert "| ≤ 1.005 | yes |" in first and "| 1.0004 | ≤ 1 | **no** |" in second
    assert third == "| c | 300,004 | – | – | – | ≥ 300,000 | yes |"
