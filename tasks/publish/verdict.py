"""What came of a challenger."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The gate's word on a model.

    Attributes:
        name: Of the registered model: what serves is models:/NAME@champion.
        version: Of the registered model.
        champion: Whether that version serves now.
        reason: Why, in plain words with the numbers.
        quality: Mean quality of tonight's model on held-out titles, 0 to 1; None without any.
        difference: Against the champion on the same titles; None where nothing was compared.
        logged_model: Id of MLflow's logged model behind the version.
    """

    name: str = "guidespace-titles"
    version: str
    champion: bool
    reason: str
    quality: float | None = None
    difference: float | None = None
    logged_model: str = ""

    @property
    def message(self) -> str:
        """One line: "version 2 is champion: quality 0.520, +0.010"."""
        state = f"version {self.version} is {'champion' if self.champion else 'not promoted'}"
        if self.quality is None or not (self.champion or self.difference is not None):
            return f"{state}: {self.reason}"
        return f"{state}: quality {self.quality:.3f}" + (
            f", {self.difference:+.3f}" if self.difference is not None else ""
        )
