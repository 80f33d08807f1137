"""Lists the candidates that `guidespace tune` compares: optimizers with the settings of their training."""

import typing
from collections.abc import Collection
from dataclasses import dataclass, replace

from storage.errors import ExpectedError
from tasks.optimizers import Momentum, Optimizer
from tasks.optimizers.tuners import NoTuner, YellowFin
from tasks.train.settings import TrainSettings


class UnknownOptimizer(ExpectedError, ValueError):
    """Error: no optimizer has the requested name."""


@dataclass(frozen=True)
class Entry:
    """A candidate: an optimizer with its default learning rate, and the settings of its training."""

    name: str
    settings: TrainSettings

    @property
    def rate(self) -> float:
        """Learning rate; for YellowFin, a factor by which its computed learning rate is multiplied."""
        return getattr(self.settings.tuner, "rate_factor", self.settings.optimizer.learning_rate)

    def scale_rate(self, factor: float) -> TrainSettings:
        """Returns the settings of the training with the learning rate multiplied by ``factor``."""
        tuner, optimizer, rate = self.settings.tuner, self.settings.optimizer, self.rate * factor
        if isinstance(tuner, YellowFin):
            return replace(self.settings, tuner=replace(tuner, rate_factor=rate))
        return replace(self.settings, optimizer=replace(optimizer, learning_rate=rate))

    def for_scoring(self, size: int, share: float) -> "Entry":
        """Returns a candidate with vectors of ``size`` dimensions, a tuning set and no early stopping.

        The tuning set contains the titles of a ``share`` of all first words.
        """
        settings = replace(self.settings, dim=size, tuning_share=share, save_seconds=1e9)
        return replace(self, settings=replace(settings, patience=settings.epochs))


def entries(settings: TrainSettings, names: Collection[str] = ()) -> list[Entry]:
    """Lists the optimizers to compare: all optimizers and YellowFin, or only those in ``names``.

    The optimizer of ``settings`` keeps its settings, the others have their defaults.

    Raises:
        UnknownOptimizer: No optimizer has one of the names.
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
    if unknown_names := ", ".join(sorted(set(names).difference(all_names))):
        raise UnknownOptimizer(f"no optimizer is called {unknown_names}; known are {', '.join(all_names)}")
    return [entry for entry in candidates if entry.name in (names or all_names)]
