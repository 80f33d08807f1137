"""Settings of the comparison of rules."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from tasks.form import FORM

SMALLEST, LARGEST = 2, 4096  # dimensions, as train.dim has them


@dataclass(frozen=True, kw_only=True)
class ContestSettings:
    """Who takes part, at which sizes and rates."""

    __pydantic_config__ = FORM
    rules: tuple[str, ...] = field(default=(), metadata={"description": "Names of rules, and yellowfin; empty: all of them"})
    sizes: tuple[int, ...] = field(default=(32, 128, 256), metadata={"description": "Dimensions of the vectors, one contest each"})
    rates: tuple[float, ...] = field(default=(0.3, 1.0, 3.0), metadata={"description": "Factors on each rule's own learning rate; the best of them counts"})
    share: float = field(default=0.1, metadata={"description": "Share of the first words whose training titles are set aside to score on", "gt": 0, "lt": 0.5})

    def __post_init__(self) -> None:
        if wrong := [size for size in self.sizes if not SMALLEST <= size <= LARGEST]:
            raise ValueError(f"sizes: {wrong[0]} is no number of dimensions from {SMALLEST} to {LARGEST}")
        if wrong := [rate for rate in self.rates if not 0 < rate < math.inf]:
            raise ValueError(f"rates: {wrong[0]} is no factor above 0")
