"""Rate and momentum are what the settings say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from tasks.form import FORM
from tasks.train.parts import Part
from tasks.train.rules import Rule


@dataclass(frozen=True, kw_only=True)
class AsSet:
    """Tunes nothing."""

    __pydantic_config__ = FORM
    name: Literal["as_set"] = "as_set"

    def initial_state(self, rule: Rule, rows: Tensor) -> dict[str, Tensor]:
        """Nothing of a row."""
        return {}

    def initial_memory(self) -> dict[str, Tensor]:
        """Nothing of the whole."""
        return {}

    def tune_(self, rule: Rule, parts: Sequence[Part], memory: Mapping[str, Tensor], step: int) -> Rule:
        """The rule as it is."""
        return rule
