"""Settings of the stage evaluate."""

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

_NEIGHBOURS = "Neighbours that vote on a title's categories."
_BASELINES = "Baselines that are scored in the same run on the same titles."


@configurable
class EvaluateSettings:
    """Settings of the scores of title vectors and baselines."""

    k: int = setting(10, _NEIGHBOURS, title="Neighbours that vote", ge=1, le=1000)
    resamples: int = setting(1000, "Bootstrap resamples of shows for each confidence interval.", ge=100)
    seed: int = setting(0, "Seed of the bootstrap.", ge=0)
    baselines: tuple[Baseline, ...] = setting(
        (Majority(), TfidfKnn(), L1Logistic(), TfidfSvm(), SentenceKnn(), TfidfSvmSentence()), _BASELINES
    )

    def __post_init__(self) -> None:
        names = [baseline.name for baseline in self.baselines]
        if len(set(names)) < len(names):
            raise ValueError(f"each baseline may be listed once, got {', '.join(names)}")
