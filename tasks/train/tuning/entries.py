"""Who takes part in a comparison or a search: every optimizer, with the settings of its training."""

import typing
from collections.abc import Collection
from dataclasses import dataclass, replace

from storage.errors import ExpectedError
from tasks.optimizers import Momentum, Optimizer
from tasks.optimizers.tuners import NoTuner, YellowFin
from tasks.train.settings import TrainSettings


class UnknownOptimizer(ExpectedError, ValueError):
    """No optimizer has that name."""


@dataclass(frozen=True)
class Entry:
    """An optimizer that takes part, with the settings of its training at its own learning rate."""

    name: str
    settings: TrainSettings

    @property
    def rate(self) -> float:
        """The learning rate; of YellowFin the factor on the one that it finds."""
        return getattr(self.settings.tuner, "rate_factor", self.settings.optimizer.learning_rate)

    def at(self, factor: float) -> TrainSettings:
        """The settings with the rate times a factor."""
        tuner, optimizer, rate = self.settings.tuner, self.settings.optimizer, self.rate * factor
        if isinstance(tuner, YellowFin):
            return replace(self.settings, tuner=replace(tuner, rate_factor=rate))
        return replace(self.settings, optimizer=replace(optimizer, learning_rate=rate))

    def scored(self, size: int, share: float) -> "Entry":
        """With vectors of so many dimensions, a share of the first words set aside, and no early end."""
        own = replace(self.settings, dim=size, tuning_share=share, save_seconds=1e9)
        return replace(self, settings=replace(own, patience=own.epochs))


def entries(settings: TrainSettings, names: Collection[str] = ()) -> list[Entry]:
    """Every optimizer (or those named) with its defaults, the preset's as it is set, and YellowFin.

    Raises:
        UnknownOptimizer: One of the names is none's.
    """
    own = settings.optimizer
    optimizers = [own if isinstance(own, kind) else kind() for kind in typing.get_args(Optimizer)]
    known = [Entry(each.name, replace(settings, optimizer=each, tuner=NoTuner())) for each in optimizers]
    yellowfin = YellowFin(rate_factor=30.0)  # 1 was far too small: docs/log, first comparison
    known.append(Entry("yellowfin", replace(settings, optimizer=Momentum(), tuner=yellowfin)))
    all_names = [entry.name for entry in known]
    if unknown := ", ".join(sorted(set(names).difference(all_names))):
        raise UnknownOptimizer(f"no optimizer is called {unknown}; known are {', '.join(all_names)}")
    return [entry for entry in known if entry.name in (names or all_names)]
