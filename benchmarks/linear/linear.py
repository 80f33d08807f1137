"""Linear models on sparse features beside scikit-learn and Vowpal Wabbit, in CPU seconds.

Each system runs in a separate process with one thread; compiled loops are compiled before the measurement.
Features and labels of the guides are those of the SVM baseline, with one binary model per label (one against
the rest); accuracy is that of the label with the highest score. A rival that is not installed is reported and
omitted.
"""

import sys
from collections.abc import Sequence

from benchmarks.claims import Claim, run
from benchmarks.linear import dual, logistic, svm


def measure_linear(quick: bool) -> Sequence[Claim]:
    """Measures all claims of this file, with an out-of-core file of 60 MB."""
    return [*svm.claims(quick), *logistic.claims(quick), *dual.claims(quick=True)]


def measure_full() -> Sequence[Claim]:
    """Measures the out-of-core claims with a file of 400 MB."""
    return dual.claims(quick=False)


if __name__ == "__main__":
    sys.exit(run(measure_linear, __doc__ or "", measure_full))
