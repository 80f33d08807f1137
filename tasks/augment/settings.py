"""Settings of the augment stage."""

from __future__ import annotations

from dataclasses import dataclass, field

from tasks.augment.distilled import Distilled
from tasks.form import FORM


@dataclass(frozen=True, kw_only=True)
class AugmentSettings:
    """How words never seen get a vector."""

    __pydantic_config__ = FORM
    strategy: Distilled = field(default=Distilled(), metadata={"description": "Where n-gram rows come from"})
