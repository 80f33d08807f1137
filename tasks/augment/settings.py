"""Defines the settings of the stage augment, which prepares vectors for unseen words."""

from tasks.augment.distilled import Distilled
from tasks.augment.nothing import NoNgramRows
from tasks.augment.stems import Stems
from tasks.form import configurable, setting


@configurable
class AugmentSettings:
    """Settings of the stage augment: how unseen words (words without a trained row) get a vector."""

    strategy: Distilled | NoNgramRows | Stems = setting(
        NoNgramRows(), "How the vectors of words that occur in no training title are computed"
    )
