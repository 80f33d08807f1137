"""Defines the settings of the stage augment, which gives vectors to unseen words."""

from tasks.augment.distilled import Distilled
from tasks.augment.nothing import NoNgramRows
from tasks.augment.stems import Stems
from tasks.form import configurable, setting


@configurable
class AugmentSettings:
    """Settings of the stage augment: how words without a trained row get a vector."""

    strategy: Distilled | NoNgramRows | Stems = setting(
        NoNgramRows(), "How vectors of unseen words are computed"
    )
