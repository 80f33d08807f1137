"""A whole training run, and what it learnt."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from storage.formats.corpus import open_corpus
from tasks.encoder.bags import Bagger
from tasks.train.loop import Training
from tests.worlds import TRAINING


def tensors(training: Training) -> dict[str, torch.Tensor]:
    return {name: torch.cat(list(part.pieces())) for name, part in training.learner.parts().items()}


def trained(corpus: Path, **changes) -> Training:
    training = Training(corpus, replace(TRAINING, **changes))
    for _ in training.run():
        pass
    return training


def same_bits(first: Training, second: Training) -> bool:
    ours, others = tensors(first), tensors(second)
    return (
        set(ours) == set(others)
        and all(torch.equal(tensor, others[name]) for name, tensor in ours.items())
        and first.learner.steps == second.learner.steps
    )


def title_vectors(corpus: Path, training: Training) -> np.ndarray:
    opened = open_corpus(corpus)
    bags = Bagger(opened.kinds).bags(opened.tokens)
    return training.settings.encoder.encode(training.table.rows[bags.ids], bags).numpy()
