"""The gate decides whether the new model (the challenger) replaces the served model (the champion).

The challenger is compared with two models on tonight's held-out titles: the champion, and the reference,
which is the oldest promoted model whose files still exist. The reference prevents a gradual decline, because
losses that are too small to be detected in one night add up over many nights. Champion and reference embed
tonight's titles with their own tokenizers, so that all models answer the same queries.

The models are compared by each kind of vector that users see and by the predicted categories (COMPARED). A
query is a held-out title. The quality of a model on a query is the mean of its correctness (0 or 1) and its
precision at k; for predicted categories, which combine neighbours with a linear model, it is the correctness.
For each comparison, a paired bootstrap over families gives an upper confidence bound of
mean(challenger − other model). The challenger is promoted unless a bound is negative. ERROR_PROBABILITY is
divided by the number of comparisons (Bonferroni). The rate of wrong refusals is higher than
ERROR_PROBABILITY, because a champion that was lucky on some titles has an advantage until these titles leave
the guide.

A challenger that cannot be compared with the champion is promoted only by a manual decision, or if no model
was promoted before.
"""

from dataclasses import dataclass

import numpy as np

from tasks.publish.registry.quality import COMPARED, HEADLINE, QueryQualities
from tasks.scoring.bootstrap import (
    count_groups,
    draw_groups,
    number_groups,
    percentiles,
    resample_mean,
)

# Probability that a challenger is refused although it is not worse. In simulated years (test_gate.py), 2 to
# 4 % of such challengers were refused, and all losses of .02 in quality were detected within ten nights.
ERROR_PROBABILITY = 0.02
CHAMPION, REFERENCE = "the champion", "the oldest promoted model"
NO_TITLES = "there are no held-out titles to score the challenger"
OVERRIDE = "run again with --promote (publish.promote=always) to promote it anyway"


@dataclass(frozen=True, kw_only=True)
class GateDecision:
    """Decision of the gate about a challenger. Numbers that cannot be computed are None."""

    promote: bool  # whether the challenger becomes the champion
    reason: str  # sentence that explains the decision and contains the compared qualities
    quality: float | None = None  # mean quality of the challenger by the vectors HEADLINE, 0 to 1
    difference: float | None = None  # ``quality`` minus the quality of the champion
    interval: tuple[float, float] | None = None  # 95 % confidence interval of ``difference``


def decide_promotion(
    qualities: QueryQualities,
    rng: np.random.Generator,
    resamples: int = 1000,
    *,
    same_model: bool = False,
    incomparable: str = "",
    first: bool = True,
) -> GateDecision:
    """Decides whether the challenger is promoted, by the rule in the docstring of the module.

    Args:
        qualities: Quality of each model on each query.
        rng: Random generator of the bootstrap.
        resamples: Number of resamples of the bootstrap.
        same_model: Whether challenger and champion are the same model.
        incomparable: Reason why the models cannot be compared; "" if they can, or if there is no champion.
        first: Whether this would be the first promotion of a model.

    Raises:
        ValueError: The arrays of qualities differ in length or contain NaN.
    """
    _check_qualities(qualities)
    headline = qualities.challenger[HEADLINE]
    quality = float(headline.mean()) if len(headline) else None

    def decision(promote: bool, reason: str) -> GateDecision:
        return GateDecision(promote=promote, reason=reason, quality=quality)

    summary = f"quality {quality:.3f} on {len(headline)} titles" if quality is not None else NO_TITLES
    if same_model:
        return decision(False, "same model: the challenger is the champion")
    if incomparable and first:
        return decision(True, f"the first model; {summary}; not compared: {incomparable}")
    if incomparable:
        return decision(
            False, f"not comparable with the champion, which stays: {incomparable}; {summary}; {OVERRIDE}"
        )
    if CHAMPION not in qualities.others:
        return decision(True, f"there is no champion yet; {summary}")
    group_numbers = number_groups(qualities.protocols, qualities.groups)
    group_count = count_groups(group_numbers)
    if quality is None or group_count < 2:
        reason = (
            f"held-out titles of {group_count} shows are too few to compare the models: the champion stays"
        )
        return decision(False, reason)
    return _compare(qualities, group_numbers, draw_groups(group_count, resamples, rng))


def _check_qualities(qualities: QueryQualities) -> None:
    """Raises a ValueError if arrays differ in length or contain NaN."""
    for values in (
        array for model in (qualities.challenger, *qualities.others.values()) for array in model.values()
    ):
        if not values.shape == qualities.groups.shape == qualities.protocols.shape:
            raise ValueError(
                f"qualities, protocols and groups must be per query, got {values.shape}, "
                f"{qualities.protocols.shape} and {qualities.groups.shape}"
            )
        if missing_count := int(np.isnan(values).sum()):
            raise ValueError(
                f"{missing_count} of {len(values)} queries have no quality; score all models on the "
                "same queries first"
            )


def _compare(qualities: QueryQualities, group_numbers: np.ndarray, group_counts: np.ndarray) -> GateDecision:
    """Decides by upper confidence bounds of the differences between the challenger and the compared models.

    ``group_counts`` has the number of occurrences of each group in each resample, (resamples, groups).
    """
    comparisons = len(qualities.others) * len(COMPARED)
    worst_loss, refusal = 0.0, ""
    for model, model_qualities in qualities.others.items():
        for name, description in COMPARED.items():
            differences = qualities.challenger[name] - model_qualities[name]
            means = resample_mean(differences, group_numbers, group_counts)
            if (bound := float(np.quantile(means, 1 - ERROR_PROBABILITY / comparisons))) < worst_loss:
                worst_loss = bound
                refusal = (
                    f"worse than {model}: {description}: quality {qualities.challenger[name].mean():.3f} "
                    f"against {model_qualities[name].mean():.3f} on {len(differences)} titles, difference at "
                    f"most {bound:+.3f} ({1 - ERROR_PROBABILITY:.0%} confidence in {comparisons} comparisons)"
                )
    challenger, champion = qualities.challenger[HEADLINE], qualities.others[CHAMPION][HEADLINE]
    difference = float((challenger - champion).mean())
    low, high = percentiles(resample_mean(challenger - champion, group_numbers, group_counts))
    reason = (
        f"{'better than' if low > 0 else 'not shown to be worse than'} the champion: quality "
        f"{challenger.mean():.3f} against the champion's {champion.mean():.3f} on {len(challenger)} titles: "
        f"{difference:+.3f} (95 %: {low:+.3f} to {high:+.3f})"
    )
    return GateDecision(
        promote=not refusal,
        reason=refusal or reason,
        quality=float(challenger.mean()),
        difference=difference,
        interval=(low, high),
    )
