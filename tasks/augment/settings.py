"""Settings of the augment stage."""

from __future__ import annotations

from dataclasses import dataclass, field

from tasks.augment.distilled import Distilled
from tasks.augment.pretrained import Pretrained
from tasks.form import FORM

Strategy = Distilled | Pretrained


@dataclass(frozen=True, kw_only=True)
class AugmentSettings:
    """How words never seen get a vector."""

    __pydantic_config__ = FORM
    strategy: Strategy = field(default=Distilled(), metadata={"description": "Where n-gram rows come from"})
