"""Who makes the steps of an epoch: the settings of train.runner (docs/runners.md)."""

from typing import Literal

from tasks.form import configurable, setting

_LEARNERS: int = setting(2, "Processes that step, one a core", ge=1, le=256)


@configurable
class OneProcess:
    """One step after the other, in the process that trains."""

    name: Literal["sequential"] = "sequential"


@configurable
class Hogwild:
    """Learners step at once on shared rows, without locks: who reads while another writes gets some of both.

    Recht, Ré, Wright, Niu. Hogwild!: A Lock-Free Approach to Parallelizing Stochastic Gradient Descent. NIPS
    2011. https://arxiv.org/abs/1106.5730 Zhang, Wang, Zhou. GaDei: On Scale-up Training As A Service For Deep
    Learning. ICDM 2017. https://arxiv.org/abs/1611.06213 We differ: rows are shared themselves, so
    that ``interval`` is that of the dense parameters alone.
    """

    name: Literal["hogwild"] = "hogwild"
    learners: int = _LEARNERS
    interval: int = setting(1, "Steps between two exchanges of labels and sentence layer; 1: shared", ge=1)


@configurable
class Owners:
    """Each row is written by one learner alone: n batches at once on the same rows, then all of their steps.
    The same bits at each run with as many learners, whatever is killed.
    """

    name: Literal["owners"] = "owners"
    learners: int = _LEARNERS


Runner = OneProcess | Hogwild | Owners
