"""Optuna's tree-structured Parzen estimator (extra optuna): what one would take instead of our searches."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from tasks.form import configurable
from tasks.train.tuning.entries import Entry
from tasks.train.tuning.space import Space, Trial
from tasks.train.tuning.trials import Trials


@configurable
class TPE(Trials):
    """Optuna's default sampler with its default options, one training after the other.

    Bergstra et al. Algorithms for Hyper-Parameter Optimization. NeurIPS 2011. The study is made anew for each
    training from those before, so that a resumed search proposes what an undisturbed one does.
    """

    AT_ONCE: ClassVar[int] = 1
    name: Literal["tpe"] = "tpe"

    def propose(self, space: Space, done: Sequence[Trial], number: int) -> tuple[Entry, float]:
        """What the study asks for."""
        import optuna  # pyright: ignore[reportMissingImports]  (extra optuna)

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        study = optuna.create_study(
            direction="maximize", sampler=optuna.samplers.TPESampler(seed=space.seed * 100_003 + number)
        )
        names = optuna.distributions.CategoricalDistribution([entry.name for entry in space.entries])
        factors = optuna.distributions.FloatDistribution(*space.rates, log=True)
        axes = {"rule": names, "factor": factors}
        for each in done:
            known = {"rule": each.name, "factor": each.factor}
            study.add_trial(optuna.trial.create_trial(params=known, distributions=axes, value=each.score))
        asked = study.ask(axes).params
        (entry,) = (entry for entry in space.entries if entry.name == asked["rule"])
        return entry, asked["factor"]
