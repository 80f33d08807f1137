"""Linear models on sparse features beside scikit-learn and Vowpal Wabbit, in CPU seconds.

One thread and a process of its own each; compiled loops are compiled before they are measured. Features and
labels of the guides are those of the SVM baseline, one per label (one against the rest); accuracy is of
the top label. A rival that is not installed is left out, and said.
"""

import sys
from collections.abc import Sequence

from benchmarks.claims import Claim, run
from benchmarks.linear import dual, logistic, svm


def measure_linear(quick: bool) -> Sequence[Claim]:
    """All claims of this file; those out of core on a file of 60 MB."""
    return [*svm.claims(quick), *logistic.claims(quick), *dual.claims(quick=True)]


def measure_full() -> Sequence[Claim]:
    """Those out of core on 400 MB."""
    return dual.claims(quick=False)


if __name__ == "__main__":
    sys.exit(run(measure_linear, __doc__ or "", measure_full))
