"""Baselines: simple models that are trained and scored on the same titles as the trained model."""

from tasks.baselines.logistic import L1Logistic
from tasks.baselines.majority import Majority
from tasks.baselines.sentence import SentenceKnn
from tasks.baselines.tfidf import TfidfKnn, TfidfSvm, TfidfSvmSentence

Baseline = L1Logistic | Majority | TfidfKnn | TfidfSvm | SentenceKnn | TfidfSvmSentence
