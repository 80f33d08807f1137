"""Linear models on sparse features beside scikit-learn and Vowpal Wabbit, in CPU seconds.

One thread and a process of its own each; compiled loops are compiled before they are measured. Features and
labels of the guides are those of the SVM baseline, a machine a label (one against the rest); accuracy is of
the top label. A rival that is not installed is left out, and said.
"""

import sys
from collections.abc import Sequence

from benchmarks import _linear_dual, _linear_logistic, _linear_svm
from benchmarks.claims import Claim, run


def measure_linear(quick: bool) -> Sequence[Claim]:
    """All claims of this file; those out of core on a file of 60 MB."""
    return [*_linear_svm.claims(quick), *_linear_logistic.claims(quick), *_linear_dual.claims(quick=True)]


def measure_full() -> Sequence[Claim]:
    """Those out of core on 400 MB."""
    return _linear_dual.claims(quick=False)


if __name__ == "__main__":
    sys.exit(run(measure_linear, __doc__ or "", measure_full))
