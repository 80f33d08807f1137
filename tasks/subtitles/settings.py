"""Defines the settings of the classifier of sub-titles."""

from tasks.form import configurable, setting
from tasks.optimizers import Adam
from tasks.recurrent.encoder import Recurrent
from tasks.recurrent.training import RecurrentTrainingSettings


@configurable
class PatternSettings:
    """Architecture and training data of the classifier of sub-titles."""

    encoder: Recurrent = setting(
        Recurrent(character_dim=24, hidden=96, max_length=96), "Recurrent encoder of characters"
    )
    training: RecurrentTrainingSettings = setting(
        RecurrentTrainingSettings(epochs=3, batch_size=256, optimizer=Adam(learning_rate=0.006)),
        "Optimizer, batch size and epochs",
    )
    examples: int = setting(
        4000,
        "Number of training examples per pattern; a sub-title may occur several times, each time with other "
        "cues hidden",
        ge=10,
    )
    unlabelled: int = setting(
        24_000, "Number of sub-titles that no rule labels and that are used as examples of plain titles", ge=0
    )


@configurable
class LabellingSettings:
    """Settings of the command ``patterns``, for example ``--set patterns.examples=3000``."""

    patterns: PatternSettings = setting(PatternSettings(), "Settings of the classifier of sub-titles")
