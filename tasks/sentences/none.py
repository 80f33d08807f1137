"""No sentence encoder: titles are their tokens alone."""

from typing import Literal

from tasks.form import configurable


@configurable
class NoSentences:
    """No sentence vectors."""

    name: Literal["none"] = "none"

    def open(self) -> None:
        """None: nothing is encoded."""
