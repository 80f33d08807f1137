"""Selects the sentence encoder of a home by its guide (tasks/preprocess/encoder_choice.py)."""

from typing import Literal

from tasks.form import configurable


@configurable
class AutomaticEncoder:
    """Strategy: ``e5`` if it predicts categories of training titles better than ``use``, else ``use``."""

    name: Literal["auto"] = "auto"

    def open(self) -> None:
        """Returns None, because the stage preprocess replaces this strategy by ``e5`` or ``use``."""
