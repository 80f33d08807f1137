"""Searches optimizers by Optuna's tree-structured Parzen estimator (extra optuna), for comparison."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from tasks.form import configurable
from tasks.train.tuning.entries import Entry
from tasks.train.tuning.space import Space, TuningTrial
from tasks.train.tuning.trials import Trials


@configurable
class TPE(Trials):
    """Search strategy: Optuna's default sampler with default options, which proposes one training at a time.

    Bergstra et al. Algorithms for Hyper-Parameter Optimization. NeurIPS 2011. The study is rebuilt from
    the finished trials for each training, so that a resumed search makes the same proposals.
    """

    ROUND_SIZE: ClassVar[int] = 1
    name: Literal["tpe"] = "tpe"

    def propose(self, space: Space, finished: Sequence[TuningTrial], number: int) -> tuple[Entry, float]:
        """Returns the optimizer, and the factor on its learning rate, that Optuna proposes for a training."""
        import optuna  # pyright: ignore[reportMissingImports]  (extra optuna)

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        study = optuna.create_study(
            direction="maximize", sampler=optuna.samplers.TPESampler(seed=space.seed * 100_003 + number)
        )
        names = optuna.distributions.CategoricalDistribution([entry.name for entry in space.entries])
        factors = optuna.distributions.FloatDistribution(*space.rates, log=True)
        axes = {"rule": names, "factor": factors}
        for trial in finished:
            params = {"rule": trial.name, "factor": trial.factor}
            study.add_trial(optuna.trial.create_trial(params=params, distributions=axes, value=trial.score))
        proposal = study.ask(axes).params
        (entry,) = (entry for entry in space.entries if entry.name == proposal["rule"])
        return entry, proposal["factor"]
