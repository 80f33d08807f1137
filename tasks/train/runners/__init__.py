"""Settings of train.runner, which choose the processes that compute training steps (docs/runners.md)."""

from typing import Literal

from tasks.form import configurable, setting


@configurable
class OneProcess:
    """Strategy: the training process computes all steps, one after the other."""

    name: Literal["sequential"] = "sequential"


@configurable
class Hogwild:
    """Strategy: several processes (learners) update shared rows concurrently and without locks.

    A learner may read half-updated rows, and concurrent updates of a row may be lost.

    References:
        Recht et al. Hogwild!: A Lock-Free Approach to Parallelizing Stochastic Gradient Descent. NIPS 2011.
        https://arxiv.org/abs/1106.5730
        Zhang, Wang, Zhou. GaDei: On Scale-up Training As A Service For Deep Learning. ICDM 2017.
        https://arxiv.org/abs/1611.06213

    We differ: learners always share the rows. Each learner has a copy of the dense parameters, and copies are
    exchanged every ``interval`` steps, because dense parameters change in every step and concurrent updates
    would often be lost.
    """

    name: Literal["hogwild"] = "hogwild"
    learners: int = setting(2, "Number of learner processes, one per core", ge=1, le=256)
    interval: int = setting(1, "Steps between two exchanges of labels and sentence layer; 1: shared", ge=1)


Runner = OneProcess | Hogwild
