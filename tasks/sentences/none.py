"""Disables sentence vectors; title vectors use tokens only."""

from typing import Literal

from tasks.form import configurable


@configurable
class NoSentences:
    """No sentence vectors."""

    name: Literal["none"] = "none"

    def open(self) -> None:
        """Returns None."""
