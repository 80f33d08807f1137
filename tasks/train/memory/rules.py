"""Write rules of the key-value memory, which decide which slot a query updates or replaces."""

from typing import Literal

from tasks.form import configurable, setting

OLDEST, CIRCULAR, AVERAGING = range(3)


@configurable
class HitOrMiss:
    """Strategy: updates the nearest slot if it has the label of the query, else replaces a slot.

    In a hit, the nearest slot has the label of the query, and its key moves towards the query. Otherwise (a
    miss), the query is written to another slot. For a query q and a slot with key K and value V:

        hit:   K ← (q + K) / ‖q + K‖        miss:  K ← q, V ← label

    References: Kaiser et al. Learning to Remember Rare Events. ICLR 2017, section 3.
        https://arxiv.org/abs/1703.03129
    """

    name: Literal["hit_or_miss"] = "hit_or_miss"
    policy: Literal["oldest", "circular", "averaging"] = setting(
        "oldest",
        "Slot written in a miss: the oldest, the next, or (if none is empty) the nearest of the label",
    )
    age_noise: float = setting(
        8.0, "Maximum noise that is added to the ages of slots, in queries, when ages are compared", ge=0
    )


@configurable
class AlwaysUpdate:
    """Strategy: moves the nearest slot with the label of the query towards the query.

    Each label has the same number of slots. The first titles with a label fill its slots, and no slot is ever
    replaced. We differ: the specification fills all slots before training, when title vectors are still
    random.
    """

    name: Literal["always_update"] = "always_update"


Rule = HitOrMiss | AlwaysUpdate
