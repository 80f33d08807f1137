"""Macro-F1 of rare categories by objective, paired with label mode over guides and seeds.

Each guide is split three times; the number of the fold is the seed. A label is rare if it has fewer than 50
training titles (every label has at least 20 titles before titles are held out). F1 is computed from the
answers of the k-NN to the held-out titles of all protocols, by title only, and averaged over the rare labels.
The bootstrap draws families (titles with the same first content words) of each guide, each with its titles of
all folds, and uses the same draws for both objectives.
"""

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.claims import guides
from benchmarks.quality.folds import Fold, make_folds, vectors_alone
from tasks.encoder.title_encoder import append_slot_key
from tasks.scoring.bootstrap import count_groups, draw_groups, number_groups, percentiles
from tasks.scoring.folds import RESAMPLES, SALTS, K
from tasks.scoring.metrics import Judged, measure_weighted
from tasks.scoring.protocols import PROTOCOLS, score_knn
from tasks.train.loop import Training
from tasks.train.settings import TrainSettings

GUIDES, SEEDS, RARE = ("UK1", "FR1", "IT1", "PT1", "GR1"), 3, 50


class Difference(NamedTuple):
    """Mean over guides and seeds of the difference in macro-F1 on rare labels between an objective and label
    mode.
    """

    value: float
    low: float
    high: float
    macro_f1: float
    of_label_mode: float
    accuracy: float  # accuracy of the objective on all held-out titles
    labels: int  # number of rare labels, summed over guides and seeds


def title_vectors(fold: Fold, settings: TrainSettings) -> np.ndarray:
    """Trains; returns unit vectors of all titles without context, float32 (titles, dim)."""
    training = Training(fold.folder, settings)
    for _ in training.run():
        pass
    vectors, weight = vectors_alone(training.trainer, fold.opened), settings.encoder.nearest_slot
    keys = training.trainer.buffers["memory_keys"].cpu().numpy() if weight else None
    return append_slot_key(vectors, keys if keys is None else keys[keys.any(axis=1)], weight)


def judge_rare(fold: Fold, settings: TrainSettings) -> tuple[Judged, np.ndarray]:
    """Trains on a fold; returns the predictions for all held-out titles, and which labels are rare."""
    titles, vectors = fold.titles, title_vectors(fold, settings)
    is_rare = (titles.label_counts > 0) & (titles.label_counts < RARE)
    return score_knn(titles, vectors, _queries(fold), K), is_rare


def _queries(fold: Fold) -> np.ndarray:
    return np.concatenate([fold.titles.labelled(protocol) for protocol in PROTOCOLS])


def _only(judged: Judged, labels: np.ndarray) -> Judged:
    return replace(judged, predicted=judged.predicted[:, labels], truth=judged.truth[:, labels])


def compare(
    settings: Mapping[str, TrainSettings], baseline: str, names: tuple[str, ...] = GUIDES
) -> Iterator[tuple[str, dict[str, Difference]]]:
    """Yields, after each guide, its name and the differences over all guides so far, by settings."""
    # an array (1 + resamples,) per guide and seed
    values: dict[str, list[np.ndarray]] = {name: [] for name in settings}
    accuracy: dict[str, list[float]] = {name: [] for name in settings}
    labels = 0
    for guide in names:
        with tempfile.TemporaryDirectory() as folder:
            folds = make_folds(Path(folder), guides(guide), SALTS[:SEEDS])
            families = [fold.family[_queries(fold)] for fold in folds]
            numbers = number_groups(np.concatenate(families))
            count = count_groups(numbers)
            drawn = draw_groups(count, RESAMPLES, np.random.default_rng(1))
            weights = np.vstack([np.ones((1, count), np.float32), drawn])
            groups = np.split(numbers, np.cumsum([len(own) for own in families])[:-1])
            for seed, (fold, group) in enumerate(zip(folds, groups, strict=True), start=1):
                rare = np.zeros(0, bool)
                for name, own in settings.items():
                    judged, rare = judge_rare(fold, replace(own, seed=seed))
                    scores = measure_weighted(_only(judged, rare), group, weights)["macro_f1"]
                    assert scores is not None
                    values[name].append(np.nan_to_num(scores))
                    accuracy[name].append(float(judged.correct.mean()))
                labels += int(rare.sum())
        means = {name: np.mean(own, axis=0) for name, own in values.items()}
        differences = {}
        for name in settings:
            apart = means[name] - means[baseline]
            low, high = percentiles(apart[1:])
            mean, baseline_mean = float(means[name][0]), float(means[baseline][0])
            right = float(np.mean(accuracy[name]))
            differences[name] = Difference(float(apart[0]), low, high, mean, baseline_mean, right, labels)
        yield guide, differences
