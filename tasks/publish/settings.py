"""Settings of the publish stage."""

from __future__ import annotations

from dataclasses import dataclass, field

from tasks.form import FORM


@dataclass(frozen=True, kw_only=True)
class PublishSettings:
    """What the map shows and how the gate judges."""

    __pydantic_config__ = FORM
    heading: str = field(default="TV guide", metadata={"description": "Heading of the map"})
    neighbours: int = field(default=10, metadata={"description": "Neighbours shown of each title", "ge": 1, "le": 10})
    keep: int = field(default=7, metadata={"description": "Artifacts of each kind that stay in the home, the newest; MLflow keeps its models itself", "ge": 1})
    seed: int = field(default=0, metadata={"description": "Of the map's layout and the gate's bootstrap", "ge": 0})
    resamples: int = field(default=1000, metadata={"description": "Bootstrap resamples of the gate", "ge": 100})
