"""Defines the strategy without sentence vectors. Title vectors then depend on tokens only."""

from typing import Literal

from tasks.form import configurable


@configurable
class NoSentences:
    """Strategy: no sentence vectors are computed."""

    name: Literal["none"] = "none"

    def open(self) -> None:
        """Returns None, because there is no encoder."""
