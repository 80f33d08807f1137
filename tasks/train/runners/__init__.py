"""Settings of train.runner: the processes that compute the training steps (docs/runners.md)."""

from typing import Literal

from tasks.form import configurable, setting


@configurable
class OneProcess:
    """Strategy: the training process computes all steps, one after the other."""

    name: Literal["sequential"] = "sequential"


@configurable
class Hogwild:
    """Strategy: several processes, called learners, update shared rows concurrently and without locks.

    A learner may read half-updated rows. If two learners update a row at once, one update may be lost.

    References:
        Recht et al. Hogwild!: A Lock-Free Approach to Parallelizing Stochastic Gradient Descent. NIPS 2011.
        https://arxiv.org/abs/1106.5730
        Zhang, Wang, Zhou. GaDei: On Scale-up Training As A Service For Deep Learning. ICDM 2017.
        https://arxiv.org/abs/1611.06213

    We differ: learners always share the embedding rows, but may have copies of the dense parameters, whose
    changes they exchange every ``interval`` steps. Every step changes all dense parameters, so updates
    of shared dense parameters are often lost.
    """

    name: Literal["hogwild"] = "hogwild"
    learners: int = setting(
        2, "Number of learner processes; more than one per core are not useful", ge=1, le=256
    )
    interval: int = setting(
        1,
        "Number of steps between two exchanges of label vectors and sentence layer; 1: they are shared",
        ge=1,
    )


Runner = OneProcess | Hogwild
