"""How far the reading of feeds is, at most once a second: what pure code yields and the task tells Prefect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from storage.artifacts import Progress


@dataclass
class Meter:
    """Decides when it is time to say something again.

    Args:
        clock: Seconds, rising.
        feeds: Number of feeds in all.
    """

    clock: Callable[[], float]
    feeds: int
    done: int = 0
    programmes: int = 0
    _last: float = field(init=False)

    def __post_init__(self) -> None:
        self._last = self.clock()

    def read(self, share: float, programmes: int) -> Progress | None:
        """Counts programmes of the feed being read, of which a share (0 to 1) is behind us."""
        self.programmes += programmes
        now = self.clock()
        if now - self._last < 1.0:
            return None
        self._last = now
        return self.state(share)

    def state(self, share: float = 0.0) -> Progress:
        """Where we are; steps are thousandths of a feed."""
        return Progress(
            step=round(1000 * (self.done + share)),
            total=1000 * self.feeds,
            metrics={"programmes": float(self.programmes)},
            note=f"feed {min(self.done + 1, self.feeds)} of {self.feeds}, {share:.0%} of its bytes, {self.programmes:,} programmes",
        )
