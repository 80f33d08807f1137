"""Settings of the classifier of sub-titles."""

from tasks.form import configurable, setting
from tasks.optimizers import Adam
from tasks.recurrent.encoder import Recurrent
from tasks.recurrent.training import RecurrentTrainingSettings


@configurable
class PatternSettings:
    """How the classifier of sub-titles is trained, and when it speaks."""

    encoder: Recurrent = setting(
        Recurrent(character_dim=24, hidden=96, max_length=96), "How the characters of a sub-title are read"
    )
    training: RecurrentTrainingSettings = setting(
        RecurrentTrainingSettings(epochs=3, batch_size=256, optimizer=Adam(learning_rate=0.006)),
        "How it is trained, and for how long",
    )
    examples: int = setting(
        4000, "Training sub-titles of a pattern, some several times with other cues", ge=10
    )
    unlabelled: int = setting(24_000, "Sub-titles that no rule labels and that count as plain titles", ge=0)


@configurable
class LabellingSettings:
    """Settings of the command ``patterns``, as ``--set`` names them: ``patterns.examples=3000``."""

    patterns: PatternSettings = setting(PatternSettings(), "The classifier of sub-titles")
