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
class Candidate:
    """A candidate: an optimizer with its default learning rate, and the settings of its training."""

    name: str  # name of the optimizer, or yellowfin
    settings: TrainSettings

    @property
    def rate(self) -> float:
        """Default learning rate; for YellowFin, the factor on the learning rate that it computes."""
        return getattr(self.settings.tuner, "rate_factor", self.settings.optimizer.learning_rate)

    def scale_rate(self, factor: float) -> TrainSettings:
        """Returns the settings of a training with the learning rate multiplied by ``factor``."""
        tuner, optimizer, rate = self.settings.tuner, self.settings.optimizer, self.rate * factor
        if isinstance(tuner, YellowFin):
            return replace(self.settings, tuner=replace(tuner, rate_factor=rate))
        return replace(self.settings, optimizer=replace(optimizer, learning_rate=rate))

    def for_scoring(self, size: int, share: float) -> "Candidate":
        """Returns the candidate with vectors of ``size`` dimensions, a tuning set and no early stopping.

        The tuning set consists of the titles with some first words, a ``share`` of all first words.
        """
        settings = replace(self.settings, dim=size, tuning_share=share, save_seconds=1e9)
        return replace(self, settings=replace(settings, patience=settings.epochs))


def list_candidates(settings: TrainSettings, names: Collection[str] = ()) -> list[Candidate]:
    """Lists the candidates: all optimizers and YellowFin, or only those with names in ``names``.

    The optimizer of ``settings`` keeps its hyper-parameters; all other optimizers have their defaults.

    Raises:
        UnknownOptimizer: ``names`` contains a name that no optimizer has.
    """
    preset = settings.optimizer
    optimizers = [preset if isinstance(preset, kind) else kind() for kind in typing.get_args(Optimizer)]
    candidates = [
        Candidate(optimizer.name, replace(settings, optimizer=optimizer, tuner=NoTuner()))
        for optimizer in optimizers
    ]
    yellowfin = YellowFin(
        rate_factor=30.0
    )  # a factor of 1 gives much lower scores (docs/log, first comparison)
    candidates.append(Candidate("yellowfin", replace(settings, optimizer=Momentum(), tuner=yellowfin)))
    all_names = [candidate.name for candidate in candidates]
    if unknown_names := ", ".join(sorted(set(names).difference(all_names))):
        raise UnknownOptimizer(
            f"no optimizer is called {unknown_names}; the optimizers are {', '.join(all_names)}"
        )
    return [candidate for candidate in candidates if candidate.name in (names or all_names)]
