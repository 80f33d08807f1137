"""What the space has to beat, given the same titles."""

from tasks.baselines.majority import Majority
from tasks.baselines.tfidf_knn import TfidfKnn
from tasks.baselines.tfidf_svm import TfidfSvm

BASELINES = (
    Majority,
    TfidfKnn,
    TfidfSvm,
)
Baseline = Majority | TfidfKnn | TfidfSvm
