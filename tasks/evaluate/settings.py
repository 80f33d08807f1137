"""Defines the settings of the stage evaluate."""

from tasks.baselines import (
    Baseline,
    L1Logistic,
    Majority,
    SentenceKnn,
    TfidfKnn,
    TfidfSvm,
    TfidfSvmSentence,
)
from tasks.form import configurable, setting

_NEIGHBOURS_DESCRIPTION = "Number of neighbours that vote on the categories of a title."
_BASELINES_DESCRIPTION = "Simple classifiers that are scored on the same titles for comparison."


@configurable
class EvaluateSettings:
    """Settings for scoring title vectors and baselines."""

    k: int = setting(10, _NEIGHBOURS_DESCRIPTION, title="Neighbours that vote", ge=1, le=1000)
    resamples: int = setting(
        1000, "Number of bootstrap resamples of franchises for each confidence interval.", ge=100
    )
    seed: int = setting(0, "Seed of the bootstrap.", ge=0)
    baselines: tuple[Baseline, ...] = setting(
        (Majority(), TfidfKnn(), L1Logistic(), TfidfSvm(), SentenceKnn(), TfidfSvmSentence()),
        _BASELINES_DESCRIPTION,
    )

    def __post_init__(self) -> None:
        names = [baseline.name for baseline in self.baselines]
        if len(set(names)) < len(names):
            raise ValueError(f"the baselines are {', '.join(names)}; list each baseline only once")
