"""Hit rates of eviction policies on the ids of a real training run.

The ids are those of three epochs over development guides with default settings; rows of the first epoch do
not count. In a corpus, ids are in order of descending frequency; a second run shuffles them.
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch

from benchmarks.claims import SAMPLE, Claim, guides, run
from benchmarks.stages import WITHOUT_SENTENCES, ingest, preprocess, tokenize
from storage.home.workspace import Workspace
from storage.tables import FrequencyPrefix, LeastFrequentlyUsed, Planner
from storage.tables.eviction.frequency_prefix import LeastRecentlyUsed
from storage.tables.planner import NO_STEP
from tasks.tokenize.settings import TokenizeSettings
from tasks.train.loop import Training
from tasks.train.settings import TrainSettings

GUIDES = "US1", "FR1", "NL1", "ZA1", "NO1", "GR1", "magenta_de_2022-05"
EPOCHS, LOOKAHEAD, CACHED = 3, 2, (0.05, 0.1, 0.2, 0.4)


def measure_eviction(quick: bool) -> Iterator[Claim]:
    """Measures all policies with four sizes of the cache."""
    with tempfile.TemporaryDirectory() as folder:
        rows, batches = training_ids(Path(folder), [SAMPLE] if quick else guides(*GUIDES))
    shuffled = np.random.default_rng(0).permutation(rows)
    orders = {"by frequency": batches, "shuffled": [np.sort(shuffled[ids]) for ids in batches]}
    for order, ids in orders.items():
        for share in CACHED:
            slots = max(1, int(rows * share))
            for name, planner in planners(rows, slots, torch.from_numpy(ids[0])).items():
                hits, waits = hit_rate(planner, ids)
                case = f"ids {order}, {100 * share:.0f} % of {rows:,} rows cached, {name}"
                yield Claim(f"{case}: hits, % of rows", 100 * hits, better=None)
                yield Claim(f"{case}: plans that wait for a step, %", 100 * waits, better=None)


def training_ids(home: Path, feeds: Sequence[Path]) -> tuple[int, list[np.ndarray]]:
    """Returns the number of rows, and the distinct ids of each batch, of a training run."""
    settings, guide = TokenizeSettings(), ingest(home, feeds)
    vocabulary = tokenize(home, guide, settings)
    corpus = preprocess(home, guide, vocabulary, settings.splits.salt, WITHOUT_SENTENCES)
    training = Training(Workspace(home).folder(corpus), TrainSettings())
    batches = [batch.bags.ids.numpy() for epoch in range(EPOCHS) for _, batch in training.batches(epoch)]
    return len(training.table), batches


def planners(rows: int, slots: int, batch: torch.Tensor) -> dict[str, Planner]:
    """Returns a planner for each policy; ``batch`` determines the LRU part of one of them."""
    prefix, rare = FrequencyPrefix(), LeastFrequentlyUsed().order(rows, slots, LOOKAHEAD)
    tenth, by_batch = (prefix.recent(slots, LOOKAHEAD, ids) for ids in (None, batch))
    return {
        "prefix, tenth LRU": Planner(rows, slots - tenth, tenth),
        "prefix, LRU by batch": Planner(rows, slots - by_batch, by_batch),
        "LRU": Planner(rows, 0, slots, LeastRecentlyUsed(slots)),
        "LFU": Planner(rows, 0, slots, rare),
    }


def hit_rate(planner: Planner, batches: Sequence[np.ndarray]) -> tuple[float, float]:
    """Returns shares after the first epoch: rows that were cached, and plans that wait for a step.

    A plan does not wait if it depends on no step of the batches that are prefetched at the same time.
    """
    plans = [planner.plan(ids) for ids in batches][len(batches) // EPOCHS :]
    missed = sum(len(plan.enter_ids) + len(plan.direct) for plan in plans)
    waits = [NO_STEP < plan.number - LOOKAHEAD - 1 <= plan.depends_on_step for plan in plans]
    return 1 - missed / sum(len(plan.ids) for plan in plans), float(np.mean(waits))


if __name__ == "__main__":
    sys.exit(run(lambda quick: [*measure_eviction(quick)], __doc__ or ""))
