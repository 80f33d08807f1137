"""What came of a challenger."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The gate's word on a model.

    Attributes:
        version: Of the registered model.
        champion: Whether that version serves now.
        reason: Why, in plain words with the numbers.
    """

    version: str
    champion: bool
    reason: str
