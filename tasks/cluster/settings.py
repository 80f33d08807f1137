"""Settings of the cluster stage."""

from __future__ import annotations

from dataclasses import dataclass, field

from tasks.cluster import ChineseWhispers, Clusterer
from tasks.form import FORM
from tasks.neighbours.index import SearchSettings


@dataclass(frozen=True, kw_only=True)
class ClusterSettings:
    """How titles are grouped, and how often it is repeated to see what is chance."""

    __pydantic_config__ = FORM
    strategy: Clusterer = field(default=ChineseWhispers(), metadata={"description": "How the groups are found"})
    seeds: int = field(default=3, metadata={"description": "Runs with different seeds; the one that agrees best with the others is kept", "ge": 1, "le": 100})
    seed: int = field(default=0, metadata={"description": "First of the seeds", "ge": 0})
    search: SearchSettings = field(default=SearchSettings(), metadata={"description": "How the nearest titles of each title are found"})
