"""What a user may choose about scoring."""

from __future__ import annotations

from dataclasses import dataclass, field

from tasks.baselines import Baseline, Majority, TfidfKnn, TfidfSvm
from tasks.form import FORM


@dataclass(frozen=True, kw_only=True)
class EvaluateSettings:
    """How the space is scored."""

    __pydantic_config__ = FORM

    k: int = field(default=10, metadata={"title": "Neighbours that vote", "description": "Neighbours that vote on a title's categories.", "ge": 1, "le": 1000})
    resamples: int = field(default=1000, metadata={"description": "Bootstrap resamples of shows behind each interval.", "ge": 100})
    seed: int = field(default=0, metadata={"description": "Seed of the bootstrap.", "ge": 0})
    baselines: tuple[Baseline, ...] = field(
        default=(Majority(), TfidfKnn(), TfidfSvm()), metadata={"description": "Rivals scored in the same run, on the same titles."}
    )

    def __post_init__(self) -> None:
        names = [baseline.name for baseline in self.baselines]
        if len(set(names)) < len(names):
            raise ValueError(f"each baseline may be named once, got {', '.join(names)}")
