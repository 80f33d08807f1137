"""The candidates of a comparison or a search: each is an optimizer with the settings of its training."""

import typing
from collections.abc import Collection
from dataclasses import dataclass, replace

from storage.errors import ExpectedError
from tasks.optimizers import Momentum, Optimizer
from tasks.optimizers.tuners import NoTuner, YellowFin
from tasks.train.settings import TrainSettings


class UnknownOptimizer(ExpectedError, ValueError):
    """There is no optimizer of that name."""


@dataclass(frozen=True)
class Entry:
    """A candidate: an optimizer at its default learning rate, with the settings of its training."""

    name: str
    settings: TrainSettings

    @property
    def rate(self) -> float:
        """The learning rate; for YellowFin, which computes the rate, the factor on it."""
        return getattr(self.settings.tuner, "rate_factor", self.settings.optimizer.learning_rate)

    def scale_rate(self, factor: float) -> TrainSettings:
        """Returns the settings with the learning rate multiplied by ``factor``."""
        tuner, optimizer, rate = self.settings.tuner, self.settings.optimizer, self.rate * factor
        if isinstance(tuner, YellowFin):
            return replace(self.settings, tuner=replace(tuner, rate_factor=rate))
        return replace(self.settings, optimizer=replace(optimizer, learning_rate=rate))

    def for_scoring(self, size: int, share: float) -> "Entry":
        """Returns the entry with vectors of ``size`` dimensions and no early stopping.

        ``share`` is the share of the first words whose titles form the tuning set.
        """
        settings = replace(self.settings, dim=size, tuning_share=share, save_seconds=1e9)
        return replace(self, settings=replace(settings, patience=settings.epochs))


def entries(settings: TrainSettings, names: Collection[str] = ()) -> list[Entry]:
    """Lists all optimizers and YellowFin, or those in ``names``.

    The optimizer of ``settings`` keeps its settings, the others have their defaults.

    Raises:
        UnknownOptimizer: A name is not that of an optimizer.
    """
    preset = settings.optimizer
    optimizers = [preset if isinstance(preset, kind) else kind() for kind in typing.get_args(Optimizer)]
    candidates = [
        Entry(optimizer.name, replace(settings, optimizer=optimizer, tuner=NoTuner()))
        for optimizer in optimizers
    ]
    yellowfin = YellowFin(rate_factor=30.0)  # a factor of 1 is far too small (docs/log, first comparison)
    candidates.append(Entry("yellowfin", replace(settings, optimizer=Momentum(), tuner=yellowfin)))
    all_names = [entry.name for entry in candidates]
    if unknown := ", ".join(sorted(set(names).difference(all_names))):
        raise UnknownOptimizer(f"no optimizer is called {unknown}; known are {', '.join(all_names)}")
    return [entry for entry in candidates if entry.name in (names or all_names)]
