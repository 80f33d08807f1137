"""Rules of the key-value memory, which select the slot that a query updates or replaces."""

from typing import Literal

from tasks.form import configurable, setting

OLDEST, CIRCULAR, AVERAGING = range(3)  # numbers of the policies of HitOrMiss in compiled code


@configurable
class HitOrMiss:
    """Strategy: updates the nearest slot if it has the label of the query, else replaces a slot.

    A query hits if the nearest slot has the label of the query; the key of this slot then moves towards the
    query. Otherwise, the query misses and is written to another slot. For a query q and a slot with key K and
    value V:

        hit:   K ← (q + K) / ‖q + K‖        miss:  K ← q, V ← label of the query

    References: Kaiser et al. Learning to Remember Rare Events. ICLR 2017, section 3.
        https://arxiv.org/abs/1703.03129
    """

    name: Literal["hit_or_miss"] = "hit_or_miss"
    policy: Literal["oldest", "circular", "averaging"] = setting(
        "oldest",
        "Slot that a miss writes: the oldest, the next in turn, or (averaging) the nearest of the same label",
    )
    age_noise: float = setting(
        8.0, "Maximum noise that is added to the ages of slots, in queries, to find the oldest slot", ge=0
    )


@configurable
class AlwaysUpdate:
    """Strategy: moves the nearest slot with the label of the query towards the query.

    Each label has the same number of slots. The first titles with a label fill its slots, and no slot is ever
    replaced. The slots are not filled before training, because title vectors are still random then.
    """

    name: Literal["always_update"] = "always_update"


Rule = HitOrMiss | AlwaysUpdate
