"""Other objectives and small models: neighbourhood and sub-title patterns; rare events with --full.

Each part has a file in this folder, whose docstring describes the measurement.
"""

import sys
from collections.abc import Iterator, Sequence

from benchmarks.claims import Claim, run
from benchmarks.objectives import neighbourhood, rare, subtitles
from tasks.train.memory import AlwaysUpdate
from tasks.train.objectives import Neighbourhood, RareMemory
from tasks.train.objectives.positives import Tags
from tasks.train.settings import TrainSettings

LABEL_MODE = "label mode"
OBJECTIVES = {
    LABEL_MODE: TrainSettings(),
    "label mode, 10 epochs": TrainSettings(epochs=10),  # encodes as many titles as neighbourhood in 5
    "neighbourhood, nearest": TrainSettings(objective=Neighbourhood()),
    "neighbourhood, tags": TrainSettings(objective=Neighbourhood(positives=Tags())),
    "rare_memory, hit or miss": TrainSettings(objective=RareMemory()),
    "rare_memory, always": TrainSettings(objective=RareMemory(rule=AlwaysUpdate())),
}


def rare_categories() -> Iterator[Claim]:
    """Measures macro-F1 of rare categories, with intervals of the paired difference to label mode."""
    *_, (_, differences) = rare.compare(OBJECTIVES, LABEL_MODE, rare.GUIDES)
    for name, difference in differences.items():
        if name != LABEL_MODE:
            about = f"{name}: macro-F1 of {difference.labels} rare labels less {LABEL_MODE}'s"
            yield Claim(about, difference.value, interval=(difference.low, difference.high), better=None)


def measure_objectives(quick: bool) -> Sequence[Claim]:
    """Measures the claims of neighbourhood and sub-title patterns."""
    return [
        *neighbourhood.measure_neighbourhood(quick),
        *([] if quick else subtitles.claims(quick)),
    ]


if __name__ == "__main__":
    sys.exit(run(measure_objectives, __doc__ or "", lambda: [*rare_categories()]))
