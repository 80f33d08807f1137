"""Presets: each with its command, machine, expected time and score (measured by benchmarks/nightly.py; README there)."""

from __future__ import annotations

from dataclasses import replace

from flows.settings import Settings
from tasks.augment.pretrained import Pretrained
from tasks.cluster import DBSCAN, HDBSCAN, KMeans, SimHashClusters
from tasks.preprocess.orders import ByLength, ByRarity, Sequential, Shuffled, Subset
from tasks.tokenize.characters import Characters
from tasks.tokenize.subwords import Subwords
from tasks.tokenize.words import Words
from tasks.train.clipping import ClipByNorm, ClipByValue
from tasks.train.objectives import Label, LeaveOneOutHinge, LeaveOneOutSoftmax
from tasks.train.rules import ASGD, SGD, SMORMS3, Adadelta, Adagrad, Adam, Adamax, AdamW, AMSGrad, Momentum, NAdam, Nesterov, RMSprop, Rprop
from tasks.train.schedules import Constant, Cosine, Step
from tasks.train.settings import TrainSettings
from tasks.train.tables import MappedTable, OffloadedTable
from tasks.train.tuners import YellowFin

# guidespace nightly --preset laptop      any machine with two cores; the sample guide in under a minute, four national
# guides (160,000 programmes) in under three.
LAPTOP = Settings()

# guidespace nightly --preset smoke       "does it run here at all": two epochs of 32 dimensions, the plainest settings.
SMOKE = replace(LAPTOP, train=TrainSettings(dim=32, epochs=2), evaluate=replace(LAPTOP.evaluate, resamples=100))

# guidespace nightly --preset gpu         one GPU; more dimensions and epochs, large steps.
GPU = replace(LAPTOP, train=TrainSettings(dim=256, epochs=12, device="cuda", precision="auto", objective=Label(batch=4096)))

PRESETS = {"smoke": SMOKE, "laptop": LAPTOP, "gpu": GPU}

# Strategies that no preset uses and that comparisons ask for by name (--set train.rule=adam …): docs/LOG.md compares them.
COMPARED = {
    "tokenize.tokenizer": (Words(), Characters(), Subwords()),
    "train.rule": (
        SGD(), Momentum(), Nesterov(), ASGD(), Rprop(), Adagrad(), Adadelta(), RMSprop(), SMORMS3(), Adam(), AMSGrad(), AdamW(), Adamax(), NAdam(),
    ),
    "train.tuner": (YellowFin(),),
    "train.schedule": (Constant(), Step(), Cosine()),
    "train.clipping": (ClipByNorm(), ClipByValue()),
    "train.table": (MappedTable(), OffloadedTable()),
    "train.objective": (LeaveOneOutHinge(), LeaveOneOutSoftmax()),
    "train.order": (Sequential(), Shuffled(), Subset(), ByRarity(), ByLength()),
    "augment.strategy": (Pretrained(),),
    "cluster.strategy": (DBSCAN(), HDBSCAN(), KMeans(), SimHashClusters()),
}
