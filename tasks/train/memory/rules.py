"""How a query is written into the memory: which slot it takes, and when."""

from typing import Literal

from tasks.form import configurable, setting

OLDEST, CIRCULAR, AVERAGING = range(3)


@configurable
class HitOrMiss:
    """The paper's rule: if the nearest slot of all has the query's label (a hit), it moves towards the query;
    if not (a miss), the query replaces a slot.

        hit:   K ← (q + K) / ‖q + K‖        miss:  K ← q, V ← label

    Kaiser et al. Learning to Remember Rare Events. ICLR 2017, section 3. https://arxiv.org/abs/1703.03129
    """

    name: Literal["hit_or_miss"] = "hit_or_miss"
    policy: Literal["oldest", "circular", "averaging"] = setting(
        "oldest",
        "The slot a miss takes: the oldest, the next in turn, or the nearest of its label once all are taken",
    )
    age_noise: float = setting(8.0, "Ages are compared with up to so many queries added or taken", ge=0)


@configurable
class AlwaysUpdate:
    """The nearest slot with the query's label always moves towards it; no slot is replaced.

    Each label takes as many slots as another, by its first titles. We differ: the customer's document fills
    all slots before training, when a title's vector is still random.
    """

    name: Literal["always_update"] = "always_update"


Rule = HitOrMiss | AlwaysUpdate
