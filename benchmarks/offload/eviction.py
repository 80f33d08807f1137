"""Hit rates of eviction policies on the ids of a training run: three epochs of a guide with default settings.

Counts distinct rows of batches in the second and third epoch. The ids are in order of descending frequency,
as in every corpus, or in random order. A plan waits if its transfers cannot overlap with all of the steps
that run meanwhile.
"""

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from benchmarks.claims import Claim, run
from benchmarks.stages import WITHOUT_SENTENCES, guides, ingest, preprocess, tokenize
from storage.home.workspace import Workspace
from storage.tables import Eviction, FrequencyPrefix, LeastFrequentlyUsed, Planner
from tasks.tokenize.settings import TokenizeSettings
from tasks.train.loop import Training
from tasks.train.settings import TrainSettings

EPOCHS, LOOKAHEAD, SHARES = 3, 2, (0.1, 0.2, 0.4)
