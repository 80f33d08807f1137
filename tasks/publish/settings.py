"""Settings of the publish stage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tasks.form import FORM


@dataclass(frozen=True, kw_only=True)
class PublishSettings:
    """What the map shows, how the gate judges, and what becomes of its word."""

    __pydantic_config__ = FORM
    heading: str = field(default="TV guide", metadata={"description": "Heading of the map"})
    neighbours: int = field(default=10, metadata={"description": "Neighbours shown of each title", "ge": 1, "le": 10})
    keep: int = field(
        default=7,
        metadata={
            "keyed": False,
            "description": "Artifacts of each kind that stay in the home, the newest; MLflow keeps its models itself",
            "ge": 1,
        },
    )
    seed: int = field(default=0, metadata={"description": "Of the map's layout and the gate's bootstrap", "ge": 0})
    promote: Literal["auto", "always", "never"] = field(
        default="auto",
        metadata={
            "keyed": False,
            "description": "Whether tonight's model becomes the champion: as the gate says, whatever it says, or never",
        },
    )
    registered_model: str = field(
        default="",
        metadata={
            "keyed": False,
            "pattern": r"^[\w. -]*$",
            "description": "Name of the registered model in MLflow; empty is guidespace-titles, on a server followed by the home's id; a new name starts without a champion",
        },
    )
    resamples: int = field(default=1000, metadata={"description": "Bootstrap resamples of the gate", "ge": 100})
