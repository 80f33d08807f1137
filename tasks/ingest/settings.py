"""Settings of the ingest stage."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class IngestSettings:
    """How feeds are read and which of them the snapshot holds."""

    __pydantic_config__ = {"extra": "forbid"}

    size_cap_bytes: int = field(default=4 * 2**30, metadata={"description": "Largest feed, in bytes once uncompressed; a larger one is refused.", "ge": 1})
    batch_rows: int = field(default=20_000, metadata={"description": "Programmes handed to the catalogue at a time.", "ge": 1, "le": 1_000_000})
    leave_out: tuple[str, ...] = field(default=(), metadata={"description": "Sources (patterns with * and ?) kept in the catalogue but left out of the guide."})
    max_reject_share: float = field(
        default=0.2,
        metadata={"description": "A feed of whose programmes a larger share cannot be read fails as a whole and changes nothing.", "ge": 0.0, "le": 1.0},
    )
