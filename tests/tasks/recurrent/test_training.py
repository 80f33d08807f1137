"""Training of a character encoder: rows of a table and dense parameters under one optimizer, or groups."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F

from tasks.optimizers import SGD, Adagrad, Adam
from tasks.optimizers.parameter_groups import ParameterGroup
from tasks.recurrent.alphabet import Alphabet
from tasks.recurrent.encoder import CharacterEncoder, Recurrent
from tasks.recurrent.training import RecurrentTraining, RecurrentTrainingSettings

RNG = np.random.default_rng(0)
STRINGS = ["".join(RNG.choice(list("abcde"), RNG.integers(1, 9))) for _ in range(240)]
LABELS = torch.tensor([int(text[0] in "ab") for text in STRINGS])  # by the first character: the last read
SETTINGS = RecurrentTrainingSettings(epochs=4, batch_size=40, optimizer=Adam(learning_rate=0.05))


def training(settings: RecurrentTrainingSettings = SETTINGS, device: str = "cpu") -> RecurrentTraining:
    """Creates the training of a two-class classifier on characters; no string contains "z"."""
    chosen = Recurrent(character_dim=6, hidden=8, right_to_left=True, dropout=0.1)
    encoder = CharacterEncoder(chosen, Alphabet("abcdez"), seed=settings.seed).to(torch.device(device))
    torch.manual_seed(0)
    head = nn.Linear(8, 2).to(device)

    def batches(rng: np.random.Generator) -> Iterator[tuple[np.ndarray, torch.Tensor]]:
        for chosen in np.split(rng.permutation(len(STRINGS)), len(STRINGS) // settings.batch_size):
            yield chosen, LABELS[torch.from_numpy(chosen)].to(device)

    def loss(vectors: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(head(vectors), labels)

    ids = encoder.alphabet.ids(STRINGS)
    return RecurrentTraining(encoder, ids, batches, loss, settings, head=head)


def test_it_learns_a_label_of_the_last_character():
    run = training()
    losses = [progress.metrics["loss"] for progress in run.run()]
    assert len(losses) == 4 and losses[-1] < 0.1 < losses[0]
    assert list(run.run()) == []  # nothing is left to do


def test_a_resumed_run_gives_the_same_bits(tmp_path):
    whole, stopped = training(), training()
    losses = [progress.metrics["loss"] for progress in whole.run()]
    steps = stopped.run()
    next(steps), next(steps)
    save_file({name: own.contiguous() for name, own in stopped.tensors().items()}, tmp_path / "state")
    resumed = training()
    resumed.restore(stopped.epoch, stopped.steps, load_file(tmp_path / "state"))
    assert [progress.metrics["loss"] for progress in resumed.run()] == losses[2:]
    for name, tensor in whole.tensors().items():
        assert torch.equal(tensor, resumed.tensors()[name]), name
    np.testing.assert_array_equal(whole.encoder.vectors(STRINGS), resumed.encoder.vectors(STRINGS))


def test_the_seed_determines_the_result():
    def trained(seed: int) -> np.ndarray:
        run = training(replace(SETTINGS, seed=seed, epochs=1))
        list(run.run())
        return run.encoder.vectors(STRINGS)

    np.testing.assert_array_equal(trained(1), trained(1))
    assert not np.array_equal(trained(1), trained(2))


def test_rows_outside_the_batches_do_not_change():
    run = training()
    before = run.encoder.rows.clone()
    list(run.run())
    moved = (run.encoder.rows != before).any(dim=1)
    assert moved.tolist() == [False, True, True, True, True, True, False]  # the unknown's, and that of z


def test_groups_have_separate_optimizers():
    """Characters by Adagrad, the head held still by a rate of all but nothing, the cell by Adam."""
    groups = (
        ParameterGroup(pattern="characters", optimizer=Adagrad(learning_rate=0.1)),
        ParameterGroup(pattern="head.*", optimizer=SGD(learning_rate=1e-30)),
    )
    run = training(replace(SETTINGS, groups=groups, epochs=1))
    before = {name: tensor.clone() for name, tensor in run.tensors().items()}
    list(run.run())
    after = run.tensors()
    assert torch.equal(before["head.weight.rows"], after["head.weight.rows"])
    assert not torch.equal(before["weight_hh_l0.rows"], after["weight_hh_l0.rows"])
    assert not torch.equal(before["characters.rows"], after["characters.rows"])
    assert {name.rsplit(".", 1)[1] for name in after if name.startswith("weight_hh_l0.state")} == {
        "first", "second",
    }  # fmt: skip


def test_a_group_that_matches_nothing_is_refused():
    groups = (ParameterGroup(pattern="letters"),)
    with pytest.raises(
        ValueError, match=r"'letters'.*matches no parameter; the parameters are characters, weight_ih"
    ):
        training(replace(SETTINGS, groups=groups))


@pytest.mark.gpu
def test_a_gpu_learns_it_too():
    run = training(device="cuda")
    losses = [progress.metrics["loss"] for progress in run.run()]
    assert losses[-1] < 0.1 < losses[0] and run.encoder.device.type == "cuda"
