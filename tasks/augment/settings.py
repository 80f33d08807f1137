"""Settings of the augment stage."""

from tasks.augment.distilled import Distilled
from tasks.augment.nothing import NoNgramRows
from tasks.augment.pretrained import Pretrained
from tasks.form import configurable, setting


@configurable
class AugmentSettings:
    """How unseen words get a vector."""

    strategy: Distilled | NoNgramRows | Pretrained = setting(Distilled(), "Where n-gram rows come from")
