"""Presets: each with its command, machine, expected time and score (measured by benchmarks/nightly.py; README there)."""

from __future__ import annotations

from dataclasses import replace

from flows.settings import Settings
from tasks.train.objectives import Label
from tasks.train.settings import TrainSettings

# guidespace nightly --preset laptop      any machine with two cores; the sample guide in under a minute, four national
# guides (160,000 programmes) in under three.
LAPTOP = Settings()

# guidespace nightly --preset smoke       "does it run here at all": two epochs of 32 dimensions, the plainest settings.
SMOKE = replace(LAPTOP, train=TrainSettings(dim=32, epochs=2), evaluate=replace(LAPTOP.evaluate, resamples=100))

# guidespace nightly --preset gpu         one GPU; more dimensions and epochs, large steps.
GPU = replace(LAPTOP, train=TrainSettings(dim=256, epochs=12, device="cuda", precision="auto", objective=Label(batch=4096)))

PRESETS = {"smoke": SMOKE, "laptop": LAPTOP, "gpu": GPU}
