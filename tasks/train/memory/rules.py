"""Write rules of the memory: which slot a query updates or replaces."""

from typing import Literal

from tasks.form import configurable, setting

OLDEST, CIRCULAR, AVERAGING = range(3)


@configurable
class HitOrMiss:
    """The rule of the paper: if the nearest slot has the label of the query (a hit), it moves towards the
    query. Otherwise (a miss), the query replaces a slot.

        hit:   K ← (q + K) / ‖q + K‖        miss:  K ← q, V ← label

    Kaiser et al. Learning to Remember Rare Events. ICLR 2017, section 3. https://arxiv.org/abs/1703.03129
    """

    name: Literal["hit_or_miss"] = "hit_or_miss"
    policy: Literal["oldest", "circular", "averaging"] = setting(
        "oldest",
        "Slot of a miss: the oldest, the next in turn, or the nearest of its label once no slot is empty",
    )
    age_noise: float = setting(8.0, "Maximum noise that is added to ages before comparison, in queries", ge=0)


@configurable
class AlwaysUpdate:
    """The nearest slot with the label of the query always moves towards it; no slot is replaced.

    Each label gets the same number of slots, which its first titles fill. We differ: the customer's document
    fills all slots before training, when title vectors are still random.
    """

    name: Literal["always_update"] = "always_update"


Rule = HitOrMiss | AlwaysUpdate
