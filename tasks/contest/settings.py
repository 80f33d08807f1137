"""Settings of the comparison of rules."""

from __future__ import annotations

from dataclasses import dataclass, field

from tasks.form import FORM


@dataclass(frozen=True, kw_only=True)
class ContestSettings:
    """Who takes part, at which sizes and rates."""

    __pydantic_config__ = FORM
    rules: tuple[str, ...] = field(default=(), metadata={"description": "Names of rules, and yellowfin; empty: all of them"})
    sizes: tuple[int, ...] = field(default=(32, 128, 256), metadata={"description": "Dimensions of the vectors, one contest each"})
    rates: tuple[float, ...] = field(default=(0.3, 1.0, 3.0), metadata={"description": "Factors on each rule's own learning rate; the best of them counts"})
    share: float = field(default=0.1, metadata={"description": "Share of the first words whose training titles are set aside to score on", "gt": 0, "lt": 0.5})
