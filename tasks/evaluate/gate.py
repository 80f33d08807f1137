"""The gate: may tonight's model take the champion's place?

The champion embeds tonight's held-out titles with its own tokenizer, so both models answer the same questions. A
query's quality is the mean of "its top label is right" and its precision@10. The challenger is promoted if

1. the paired bootstrap over groups does not show it worse: the 95 % interval of mean(challenger − champion) does not
   lie wholly below 0; and
2. the 95 % interval of its own mean quality does not lie wholly below the best of the last 30 promoted: without this,
   many steps each too small to be shown could carry quality down.

A challenger that cannot be compared with the champion is not promoted, unless it is the first of its lineage (other
feeds or another salt than any model promoted before): then nothing that it could replace was scored on comparable
titles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.evaluate.bootstrap import count_groups, draw_groups, number_groups, percentiles, resample_mean

REMEMBERED = 30  # promoted models


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What the gate says.

    Attributes:
        promote: Whether the alias moves.
        reason: Why, in plain words with the numbers.
        quality: Mean quality of the challenger, 0 to 1. None without queries.
        difference: Mean of challenger − champion; none without a champion or queries.
        interval: 95 % interval of the difference, or none.
    """

    promote: bool
    reason: str
    quality: float | None = None
    difference: float | None = None
    interval: tuple[float, float] | None = None


def query_quality(correct: np.ndarray, precision_at_10: np.ndarray) -> np.ndarray:
    """Mean of correctness and precision@10 of each query: float64, shape (queries,)."""
    return (correct.astype(np.float64) + precision_at_10) / 2


def decide(
    challenger: np.ndarray,
    champion: np.ndarray | None,
    *,
    protocols: np.ndarray,
    groups: np.ndarray,
    best_of_last: Sequence[float],
    rng: np.random.Generator,
    same_model: bool = False,
    incomparable: str = "",
    first: bool = True,
    resamples: int = 1000,
) -> Decision:
    """Decides on the challenger.

    Args:
        challenger: Quality of each query, shape (queries,).
        champion: The champion's quality of the same queries, or none where there is no champion.
        protocols: Held-out set of each query, shape (queries,).
        groups: Group of each query within its held-out set, shape (queries,).
        best_of_last: Qualities of the models promoted before, oldest first; the last 30 count.
        rng: Draws the resamples.
        same_model: Challenger and champion are the same model: there is nothing to decide.
        incomparable: Why there is no comparison with the champion; empty where there is one, or no champion yet.
        first: No model of this lineage was promoted before.
        resamples: Bootstrap resamples.

    Raises:
        ValueError: Lengths differ, or a quality is not a number.
    """
    for values in (challenger, *(() if champion is None else (champion,))):
        if values.shape != groups.shape or values.shape != protocols.shape:
            raise ValueError(f"qualities, protocols and groups must be per query, got {values.shape}, {protocols.shape} and {groups.shape}")
        if np.isnan(values).any():
            raise ValueError(f"{int(np.isnan(values).sum())} of {len(values)} queries have no quality; judge both models on the same queries first")
    quality = float(challenger.mean()) if len(challenger) else None
    judged_by = (
        f"quality {quality:.3f} on {len(challenger)} titles"
        if quality is not None
        else "no held-out title to judge the challenger by"
    )
    if same_model:
        return Decision(
            promote=False,
            reason="same model: challenger and champion are one, nothing to decide",
            quality=quality,
        )
    if incomparable and first:
        return Decision(
            promote=True,
            reason=f"the first model of these feeds and this salt; {judged_by}; not compared: {incomparable}",
            quality=quality,
        )
    if incomparable:
        anyway = "run again with --set publish.promote=always to promote it all the same"
        return Decision(
            promote=False,
            reason=f"not comparable with the champion, which stays: {incomparable}; {judged_by}; {anyway}",
            quality=quality,
        )
    if champion is None:
        return Decision(promote=True, reason=f"there is no champion yet; {judged_by}", quality=quality)
    numbered = number_groups(protocols, groups)
    group_count = count_groups(numbered)
    if quality is None or group_count < 2:
        return Decision(promote=False, reason=f"held-out titles of {group_count} shows are too few to compare the models by: the champion stays", quality=quality)
    counts = draw_groups(group_count, resamples, rng)
    difference = float((challenger - champion).mean())
    low, high = percentiles(resample_mean(challenger - champion, numbered, counts))
    compared = f"quality {quality:.3f} against the champion's {float(champion.mean()):.3f} on {len(challenger)} titles: {difference:+.3f} (95 %: {low:+.3f} to {high:+.3f})"

    def decision(promote: bool, reason: str) -> Decision:
        return Decision(promote=promote, reason=reason, quality=quality, difference=difference, interval=(low, high))

    if high < 0:
        return decision(False, f"worse than the champion: {compared}")
    remembered = list(best_of_last)[-REMEMBERED:]
    if remembered:
        own_low, own_high = percentiles(resample_mean(challenger, numbered, counts))
        if own_high < max(remembered):
            return decision(
                False,
                f"below the best of the last {len(remembered)} promoted ({max(remembered):.3f}) beyond the interval ({own_low:.3f} to {own_high:.3f}): {compared}",
            )
    return decision(True, f"{'better than' if low > 0 else 'not shown to be worse than'} the champion: {compared}")
