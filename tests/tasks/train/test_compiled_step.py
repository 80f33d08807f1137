"""The compiled step against the mechanism (tasks/train/step.py), which is its reference."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from storage.formats.corpus import open_corpus
from tasks.encoder.bags import LAYER, Bag
from tasks.loading.loader import Batch
from tasks.optimizers import SGD, Adagrad, Adam, Optimizer, RowwiseAdagrad
from tasks.optimizers.clipping import ClipByNorm
from tasks.optimizers.parameter_groups import NonFiniteGradient, ParameterGroup
from tasks.train import compiled_step
from tasks.train.checkpoint import Checkpointer
from tasks.train.loop import Training
from tasks.train.objectives import Label
from tasks.train.tables import MappedTable
from tests.tasks.train.test_checkpoint import assert_same, stop_after
from tests.tasks.train.test_sentence_layer import without_sentences
from tests.tasks.train.training import tensors
from tests.worlds import TRAINING

pytest.importorskip("numba", reason="the compiled step needs numba")
# Adam divides by √second + ε: an ε of 1e-8 would make steps of what rounding leaves of a gradient of zero.
ADAM = Adam(learning_rate=0.01, epsilon=1e-5)
SETTINGS = replace(TRAINING, objective=Label(), groups=(ParameterGroup(pattern=LAYER, optimizer=ADAM),))


def batches(training: Training) -> Iterator[Batch]:
    return training.loader.epoch(0)[1]


def assert_close(ours: Training, mechanism: Training) -> None:
    found, expected = tensors(ours), tensors(mechanism)
    assert set(found) == set(expected) and ours.trainer.steps == mechanism.trainer.steps
    for name, tensor in expected.items():
        assert torch.allclose(found[name], tensor, rtol=1e-4, atol=1e-5), name


@pytest.mark.parametrize("optimizer", [RowwiseAdagrad(), SGD(), replace(ADAM, learning_rate=0.05)])
@pytest.mark.parametrize("sentences", [True, False])
def test_steps_have_the_numbers_of_the_mechanism(
    toy_corpus: Path, tmp_path: Path, optimizer: Optimizer, sentences: bool
):
    """With context, sentence layer, dropout, weights and groups as by default."""
    corpus = toy_corpus if sentences else without_sentences(toy_corpus, tmp_path / "bare")
    settings = replace(SETTINGS, optimizer=optimizer)
    ours, mechanism = (Training(corpus, settings, compiled) for compiled in (True, False))
    assert not mechanism.trainer.compiled
    for batch, factor in zip(batches(ours), (1.0, 0.7, 0.4, 0.1)):
        losses = [training.trainer.step(batch, factor).item() for training in (ours, mechanism)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-5)
        assert_close(ours, mechanism)
    assert ours.trainer.steps == 4 and ours.trainer.touched.any()


@pytest.mark.parametrize(
    "encoder", [Bag(sentence=0.0, sentence_context=0.0), Bag(word=0.0, ngram=3.0, length_power=1.0)]
)
def test_weights_of_the_encoder_and_temperatures_count(toy_corpus: Path, encoder: Bag):
    """By SGD: Adagrad would make whole steps of what rounding leaves of a title that is certain."""
    objective = Label(temperature=0.1, context_temperature=3.0)
    settings = replace(SETTINGS, encoder=encoder, objective=objective, optimizer=SGD(learning_rate=50.0))
    ours, mechanism = (Training(toy_corpus, settings, compiled) for compiled in (True, False))
    for batch, _ in zip(batches(ours), range(3)):
        losses = [training.trainer.step(batch, 1.0).item() for training in (ours, mechanism)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert_close(ours, mechanism)


def test_a_title_without_entries_moves_nothing(toy_corpus: Path, tmp_path: Path):
    corpus = without_sentences(toy_corpus, tmp_path / "bare")
    ours, mechanism = (Training(corpus, SETTINGS, compiled) for compiled in (True, False))
    batch = next(batches(ours))
    bags = batch.bags
    of_first = bags.offsets[1]
    offsets = (bags.offsets - of_first).clamp(min=0)
    rest = bags._replace(tokens=bags.tokens[of_first:], kinds=bags.kinds[of_first:])
    batch = batch._replace(bags=rest._replace(titles=bags.titles[of_first:], offsets=offsets))
    losses = [training.trainer.step(batch, 1.0).item() for training in (ours, mechanism)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert_close(ours, mechanism)


def test_a_whole_run_learns_the_same(toy_corpus: Path):
    settings = replace(SETTINGS, epochs=2)
    ours, again, mechanism = (Training(toy_corpus, settings, compiled) for compiled in (True, True, False))
    for training in (ours, again, mechanism):
        list(training.run())
    assert_same(ours, again)  # one seed, one result
    assert ours.history[-1]["loss"] == pytest.approx(mechanism.history[-1]["loss"], rel=1e-4)
    assert ours.history[-1]["effective_rank"] == pytest.approx(
        mechanism.history[-1]["effective_rank"], rel=1e-3
    )


@pytest.mark.parametrize("steps", [7, 16], ids=["within an epoch", "at its end"])
def test_a_resumed_run_is_the_uninterrupted_one(toy_corpus: Path, tmp_path: Path, steps: int):
    settings = replace(TRAINING, objective=Label(), epochs=2, save_seconds=0.0)
    whole = Training(toy_corpus, settings, True)
    each = whole.loader.epoch(0)[0]
    list(whole.run())
    stop_after(Training(toy_corpus, settings, True), min(steps, each), tmp_path)
    again = Training(toy_corpus, settings, True)
    again.resume(Checkpointer(tmp_path))
    list(again.run())
    assert_same(whole, again)


@pytest.mark.parametrize("first", [True, False])
def test_a_checkpoint_goes_on_with_the_other_step(toy_corpus: Path, tmp_path: Path, first: bool):
    settings = replace(SETTINGS, epochs=1, save_seconds=0.0)
    stop_after(Training(toy_corpus, settings, first), 3, tmp_path)
    ours, others = (Training(toy_corpus, settings, compiled) for compiled in (first, not first))
    for training in (ours, others):
        training.resume(Checkpointer(tmp_path))
        training.trainer.step(next(training.loader.epoch(0, 3)[1]), 1.0)
    assert_close(ours, others)


def test_a_gradient_that_is_not_finite_changes_nothing(toy_corpus: Path):
    training = Training(toy_corpus, replace(SETTINGS, dropout=0.0), True)
    first, second, *_ = batches(training)
    training.trainer.step(first, 1.0)
    token = int(second.bags.ids[second.bags.tokens[0]])
    training.table.rows[token] = torch.nan  # pyright: ignore[reportAttributeAccessIssue]
    before = {name: tensor.clone() for name, tensor in tensors(training).items()}
    with pytest.raises(NonFiniteGradient) as caught:
        training.trainer.step(second, 1.0)
    assert caught.value.name == "rows" and token in caught.value.rows
    for name, tensor in tensors(training).items():
        assert name == "touched" or torch.equal(tensor.nan_to_num(7), before[name].nan_to_num(7)), name


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"objective": TRAINING.objective}, "the objective is leave_one_out_softmax"),
        ({"optimizer": Adagrad()}, "the optimizer is adagrad"),
        ({"groups": (ParameterGroup(pattern="labels", optimizer=Adagrad()),)}, "the optimizer is adagrad"),
        ({"optimizer": RowwiseAdagrad(), "per_row_steps": True}, "rows count their own steps"),
        ({"clipping": ClipByNorm()}, "clipping is by_norm"),
        ({"table": MappedTable()}, "the table is mapped on cpu"),
        ({"precision": "bfloat16"}, "precision is bfloat16"),
        ({"objective": Label(temperature=0.02)}, "a temperature is below 0.03"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value,
)
def test_what_it_does_not_know_is_left_to_the_mechanism(toy_corpus: Path, changes: dict, reason: str):
    settings = replace(SETTINGS, device="cpu", epochs=10_000, **changes)
    learner = Training(toy_corpus, settings).trainer
    assert learner.compiled is None and learner.step_description == f"training by torch's autograd: {reason}"
    with pytest.raises(ValueError, match=f"the compiled step is requested, but {reason}"):
        Training(toy_corpus, settings, True)


def test_it_is_chosen_where_enough_titles_are_shown_and_numba_is_there(
    toy_corpus: Path, monkeypatch: pytest.MonkeyPatch
):
    few = -(-compiled_step.MIN_TITLES_SHOWN // len(open_corpus(toy_corpus).training))
    chosen, left = (Training(toy_corpus, replace(SETTINGS, epochs=few - own)).trainer for own in (0, 1))
    assert chosen.compiled and chosen.step_description == "training by the compiled step"
    assert not left.compiled and "titles are shown; compiling pays off from 80,000" in left.step_description
    monkeypatch.setattr(compiled_step, "available", lambda: False)
    left = Training(toy_corpus, replace(SETTINGS, epochs=few)).trainer
    assert not left.compiled and left.step_description.endswith("numba is not installed")
