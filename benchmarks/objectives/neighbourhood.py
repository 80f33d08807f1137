"""Objective neighbourhood beside label mode: two tastes within one category, and speed.

The world of tastes: a title of the category "culture" has three words of one of its three tastes; a title of
the other category has a word of each taste, so it lies between them. Both have one more word that any title
may have. For a held-out title of culture, the nearest training title (of both categories) is correct if it is
of culture and of the same taste. Each word is equally frequent in both categories, so only combinations of
words indicate the category.

Label mode trains twice as many epochs, so that both objectives encode equally many titles. Temperature and
margin were chosen on worlds of other seeds.
"""

import json
import math
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.claims import Claim
from benchmarks.processes import call_apart
from benchmarks.training.synthetic import make_synthetic_corpus
from storage.arrays import Ragged
from storage.formats.corpus import open_corpus
from tasks.encoder.bags import Bagger
from tasks.neighbours.similarity import top_neighbours
from tasks.train.loop import Training
from tasks.train.objectives import Label, Neighbourhood
from tasks.train.objectives.positives import Nearest, Tags, Topics
from tasks.train.settings import TrainSettings

TASTES, POOL, SHARED = 3, 80, 60  # tastes; words per taste; words that all titles share
EACH, HELD = 200, 100  # training and held-out titles per taste; as many of the other category
TUNED, ASKED, EPOCHS = range(100, 102), range(8), 10
TEMPERATURES, MARGINS = (0.02, 0.05, 0.1, 0.2, 0.4), (0.05, 0.1, 0.2, 0.4)
SETTINGS = TrainSettings(dim=64, threads=1, workers=0)
OURS = {
    "nearest": Neighbourhood(positives=Nearest()),
    "topics": Neighbourhood(positives=Topics(topics=12)),
    "tags": Neighbourhood(positives=Tags()),
}


class World(NamedTuple):
    """A synthetic corpus: its folder, and the taste of each title (-1 for titles of the other category)."""

    folder: Path
    tastes: np.ndarray


def make_world(folder: Path, seed: int) -> World:
    """Writes a synthetic corpus of titles with tastes (see the module)."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    pools = [POOL] * TASTES + [SHARED]
    first, count = np.cumsum([0, *pools]), sum(pools)
    taste = np.repeat(np.arange(TASTES), EACH + HELD)
    between = np.tile(np.arange(TASTES), (TASTES * EACH, 1))
    chosen = np.vstack([np.repeat(taste[:, None], TASTES, axis=1), between])
    chosen = np.hstack([chosen, np.full((len(chosen), 1), TASTES)])  # the set from which each word is drawn
    tokens = first[chosen] + (rng.random(chosen.shape) * np.array(pools)[chosen]).astype(np.int64)
    tokens = np.sort(tokens, axis=1).astype(np.int32)
    labels = np.r_[np.zeros(len(taste)), np.ones(len(between))].astype(np.int32)
    Ragged(np.arange(len(tokens) + 1), labels).save(folder, "labels")
    Ragged(np.arange(len(tokens) + 1) * tokens.shape[1], tokens.reshape(-1)).save(folder, "tokens")
    held = np.concatenate([np.tile(np.arange(EACH + HELD) >= EACH, TASTES), np.zeros(len(between), bool)])
    arrays = {
        "split": held.astype(np.int8),
        "show": np.arange(len(tokens), dtype=np.int32),
        "family": np.arange(len(tokens), dtype=np.int32),
        "oov": np.zeros(len(tokens), dtype=bool),
        "rare": np.zeros(len(tokens), dtype=bool),
        "kinds": np.zeros(count, dtype=np.int8),
        "weights": np.ones(count, dtype=np.float32),
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    (folder / "label_names.json").write_text(json.dumps(["culture", "between"]), encoding="utf-8")
    pq.write_table(pa.table({"token": [f"word {n}" for n in range(count)]}), folder / "token_names.parquet")
    return World(folder, np.concatenate([taste, np.full(len(between), -1)]))


def vectors_of(training: Training) -> np.ndarray:
    """Returns the vectors of all titles of the corpus."""
    corpus = open_corpus(training.corpus_folder)
    dense = training.settings.encoder.sentence_features(corpus.sentences, corpus.descriptions)
    return training.trainer.vectors(corpus.tokens, Bagger(corpus.kinds), dense, untrained=True).numpy()


def accuracy(world: World, training: Training) -> tuple[float, float]:
    """Returns the shares of held-out titles whose nearest title has the same taste, and the same category."""
    corpus, vectors = open_corpus(world.folder), vectors_of(training)
    queries = np.flatnonzero(corpus.split > 0)
    near = corpus.training[top_neighbours(vectors[queries], vectors[corpus.training], 1)[0][:, 0]]
    taste = world.tastes[near]
    return float((taste == world.tastes[queries]).mean()), float((taste >= 0).mean())


def learn(world: World, objective: Any, epochs: int, seed: int) -> tuple[float, float]:
    training = Training(world.folder, replace(SETTINGS, objective=objective, epochs=epochs, seed=seed))
    list(training.run())
    return accuracy(world, training)


def measure_tastes(quick: bool) -> list[Claim]:
    """Measures 1-NN by taste: means over worlds, and paired differences with their 95 % intervals."""
    with tempfile.TemporaryDirectory() as folder:
        seeds = [*TUNED, *(range(3) if quick else ASKED)]
        worlds = {seed: make_world(Path(folder) / str(seed), seed) for seed in seeds}
        tuned, measured = ({s: worlds[s] for s in seeds if (s in TUNED) == own} for own in (True, False))
        untrained = [accuracy(world, Training(world.folder, SETTINGS))[0] for world in measured.values()]
        tried: dict[str, list[Any]] = {
            "label": [Label(temperature=value, context_temperature=value) for value in TEMPERATURES],
            **{name: [replace(own, margin=value) for value in MARGINS] for name, own in OURS.items()},
        }
        found: dict[str, tuple[float, np.ndarray]] = {}
        for name, objectives in tried.items():
            epochs = EPOCHS * (1 + (name == "label"))

            def score(objective: Any, own: dict[int, World], epochs: int = epochs) -> np.ndarray:
                return np.array([learn(world, objective, epochs, seed) for seed, world in own.items()])

            best = max(objectives, key=lambda objective: score(objective, tuned)[:, 0].mean())
            value = best.temperature if isinstance(best, Label) else best.margin
            found[name] = value, score(best, measured)
    claims = [Claim("1-NN by taste, untrained", statistics.mean(untrained), better=None)]
    temperature, theirs = found["label"]
    rival = f"label mode, temperature {temperature}"
    for name in OURS:
        margin, ours = found[name]
        about = f"neighbourhood, {name}, margin {margin}"
        both = ours.mean(axis=0).tolist(), theirs.mean(axis=0).tolist()
        for place, what in enumerate(("1-NN by taste", "1-NN in the category")):
            values = both[0][place], both[1][place]
            claims.append(Claim(f"{what}, {about}", values[0], rival, values[1]))
        apart = ours[:, 0] - theirs[:, 0]
        spread = 1.96 * float(apart.std(ddof=1)) / math.sqrt(len(apart))
        mean = float(apart.mean())
        claims.append(
            Claim(
                f"the same, difference over {len(apart)} worlds, {about}",
                mean,
                interval=(mean - spread, mean + spread),
                aim=None if name == "tags" else 0.05,
            )
        )
    return claims


def steps_a_second(folder: Path, objective: Any, epochs: int) -> float:
    """Returns steps per CPU second of the training thread, the median over epochs."""
    settings = TrainSettings(objective=objective, epochs=epochs, threads=1, workers=0, dropout=0.0)
    training, taken = Training(folder, settings), []
    begun = time.thread_time()
    for _ in training.run():
        taken.append(time.thread_time() - begun)
        begun = time.thread_time()
    return training.trainer.steps / epochs / statistics.median(taken[1:])


def measure_speed(quick: bool) -> list[Claim]:
    """Compares the rate of steps of 512 anchors with that of label mode with 512 titles."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = make_synthetic_corpus(Path(folder) / "corpus", 10_000 if quick else 20_000, seed=0)
        theirs = call_apart(steps_a_second, corpus, Label(), 6, threads=1)
        ours = call_apart(steps_a_second, corpus, Neighbourhood(positives=Tags()), 6, threads=1)
        refreshed = call_apart(steps_a_second, corpus, Neighbourhood(), 6, threads=1)
    rival = "label mode, one title for an anchor and its positive"
    return [
        Claim(f"steps a CPU second, {about}", value, rival, theirs)
        for about, value in (("tags", ours), ("nearest, with its refresh every epoch", refreshed))
    ]


def measure_neighbourhood(quick: bool) -> Sequence[Claim]:
    """Measures all claims of this file."""
    return [*measure_tastes(quick), *measure_speed(quick)]
