"""Settings of the ingest stage."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

from tasks.form import FORM
from tasks.ingest.times import is_zone


@dataclass(frozen=True, kw_only=True)
class IngestSettings:
    """How feeds are read and which of them the snapshot holds.

    Raises:
        ValueError: An entry of ``zones`` is not PATTERN=ZONE, or no such zone is known.
    """

    __pydantic_config__ = FORM

    size_cap_bytes: int = field(default=4 * 2**30, metadata={"description": "Largest feed, in bytes once uncompressed; a larger one is refused.", "ge": 1})
    download_seconds: float = field(
        default=3600.0,
        metadata={"description": "Longest time of a download, attempts and pauses included.", "gt": 0.0},
    )
    download_bytes_per_second: int = field(
        default=1000,
        metadata={"description": "Least rate of an http download, over a minute; else it is retried.", "ge": 0},
    )
    batch_rows: int = field(default=20_000, metadata={"description": "Programmes handed to the catalogue at a time.", "ge": 1, "le": 1_000_000})
    leave_out: tuple[str, ...] = field(default=(), metadata={"description": "Sources (patterns with * and ?) kept in the catalogue but left out of the guide."})
    max_reject_share: float = field(
        default=0.2,
        metadata={"description": "A feed of whose programmes a larger share cannot be read fails as a whole and changes nothing.", "ge": 0.0, "le": 1.0},
    )
    required: tuple[str, ...] = field(
        default=(),
        metadata={
            "description": "Sources (patterns) that must be read: where one fails, is empty, "
            "shrinks to less than half or ends before today, the run fails."
        },
    )
    zones: tuple[str, ...] = field(
        default=(), metadata={"description": "PATTERN=ZONE, such as */fr/*=Europe/Paris: the zone of times that name none, by source; the first that matches. Else UTC."}
    )
    priority: tuple[str, ...] = field(
        default=(),
        metadata={"description": "Sources (patterns) in the order in which they are heard where several know a channel at the same time; then the one read first."},
    )
    workers: int = field(default=1, metadata={"description": "Processes that parse feeds side by side; one process writes.", "ge": 1, "le": 256})
    pool: Literal["processes", "dask", "ray"] = field(default="processes", metadata={"description": "Where they run (dask and ray: extras of those names)."})
    pool_address: str = field(
        default="", metadata={"description": "Address of the Dask scheduler or Ray cluster; empty starts one here. Its workers must see the home and the feeds."}
    )

    def __post_init__(self) -> None:
        for entry in self.zones:
            pattern, separator, zone = entry.rpartition("=")
            if not separator or not pattern or not is_zone(zone):
                raise ValueError(f"ingest.zones: {entry!r} is not PATTERN=ZONE with a zone such as Europe/Paris, CET or +0100")

    def is_required(self, source: str) -> bool:
        """Whether the run fails without that source."""
        return any(fnmatchcase(source, pattern) for pattern in self.required)

    def zone(self, source: str) -> str:
        """The zone of times that name none, in a feed of that source."""
        return next((zone for pattern, _, zone in (entry.rpartition("=") for entry in self.zones) if fnmatchcase(source, pattern)), "")
