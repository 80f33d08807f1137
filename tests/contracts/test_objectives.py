"""Contract of every objective: batches, loss, and training that can stop anywhere."""

import dataclasses
import json
import pickle
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pydantic
import pytest
import torch

from flows.cli.settings import find_dataclasses
from storage.arrays import Ragged
from storage.formats.corpus import OpenCorpus, open_corpus
from tasks.loading.delivery import assign_slots, read, write
from tasks.loading.sampler import Sampler
from tasks.train.objectives import Objective
from tests.tasks.train.training import assert_same, resumed, same_bits, stop_after, trained
from tests.worlds import TRAINING

DIM, ANY = 16, pydantic.TypeAdapter(Objective)
SMALL = {"batch_size": 48, "pack": 4, "packs": 12}  # several batches of the toy world


def variants(kind: Any) -> Iterator[Any]:
    """A strategy with small batches, once for every strategy that one of its own settings may be."""
    own = {field.name for field in dataclasses.fields(kind)}
    small = kind(**{name: size for name, size in SMALL.items() if name in own})
    hints = typing.get_type_hints(kind)
    inner = [(name, each) for name in own for each in find_dataclasses(hints[name])]
    yield from [dataclasses.replace(small, **{name: each()}) for name, each in sorted(inner, key=str)] or [
        small
    ]


def name_of(objective: Any) -> str:
    inner = [getattr(value, "name", "") for value in vars(objective).values()]
    return "-".join([objective.name, *filter(None, inner)])


EVERY = [
    pytest.param(own, id=name_of(own)) for kind in get_args(Objective) for own in variants(kind)
]  # tables of a memory or of neighbours, and whatever comes
every_objective = pytest.mark.parametrize("objective", EVERY)


def tensors_of(objective: Any, corpus: OpenCorpus, labels: int | None = None) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    shapes = objective.parameters(labels or len(corpus.label_names), DIM)
    drawn = {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    return {name: own.requires_grad_() for name, own in drawn.items()} | objective.buffers(corpus, DIM)


def sampler_of(objective: Any, corpus: OpenCorpus) -> Sampler:
    return objective.sampler(corpus, objective.buffers(corpus, DIM))


def plans_of(objective: Any, corpus: OpenCorpus, rows: np.ndarray, seed: int = 1) -> list[Any]:
    return sampler_of(objective, corpus).plan_epoch(rows, corpus.labels, np.random.default_rng(seed))


def collated(objective: Any, corpus: OpenCorpus, plan: Any) -> Any:
    return sampler_of(objective, corpus).collate(plan, corpus.labels, np.arange(len(plan.title_ids)) % 2 == 0)


def unit_vectors(titles: int, seed: int = 0) -> torch.Tensor:
    return torch.nn.functional.normalize(
        torch.randn(titles, DIM, generator=torch.Generator().manual_seed(seed))
    )


# -- a batch
# -----------------------------------------------------------------------------------------------------------


@every_objective
def test_an_epoch_contains_exactly_the_selected_titles(objective: Any, toy_corpus: Path):
    corpus = open_corpus(toy_corpus)
    given = corpus.training[::2]
    plans = plans_of(objective, corpus, given)
    assert len(plans) > 1
    assert set(np.concatenate([plan.title_ids for plan in plans]).tolist()) == set(given.tolist())


@every_objective
def test_one_seed_gives_one_epoch_and_another_seed_another(objective: Any, toy_corpus: Path):
    corpus = open_corpus(toy_corpus)
    first, again, other = (
        [plan.title_ids.tolist() for plan in plans_of(objective, corpus, corpus.training, seed)]
        for seed in (1, 1, 2)
    )
    assert first == again != other


@every_objective
def test_targets_of_a_loss_are_a_named_tuple_of_tensors_that_workers_can_send(
    objective: Any, toy_corpus: Path
):
    corpus = open_corpus(toy_corpus)
    sampler = sampler_of(objective, corpus)
    plan = sampler.plan_epoch(corpus.training, corpus.labels, np.random.default_rng(1))[0]
    aired = np.arange(len(plan.title_ids)) % 2 == 0
    targets = sampler.collate(plan, corpus.labels, aired)
    assert hasattr(targets, "_fields") and all(isinstance(own, torch.Tensor) for own in targets)
    sent = pickle.loads(pickle.dumps(sampler)).collate(plan, corpus.labels, aired)
    slots, used = assign_slots(sent)
    write(sent, slots, block := torch.empty(used, dtype=torch.uint8))
    for own, theirs in zip(targets, type(targets)(*read(slots, block)), strict=True):
        assert own.dtype == theirs.dtype and torch.equal(own, theirs)


@every_objective
def test_a_worker_is_not_sent_the_corpus(objective: Any, toy_corpus: Path):
    """A sampler may hold a table of a million titles; each worker would hold it, too."""
    assert len(pickle.dumps(sampler_of(objective, open_corpus(toy_corpus)))) < 1000


# -- a loss
# -----------------------------------------------------------------------------------------------------------


def losses_and_gradients(
    objective: Any, corpus: OpenCorpus, plan: Any, vectors: torch.Tensor
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    tensors = tensors_of(objective, corpus)
    leaves = [vectors.requires_grad_(), *(own for own in tensors.values() if own.requires_grad)]
    loss = objective.loss(vectors, collated(objective, corpus, plan), tensors)
    return loss, list(torch.autograd.grad(loss, leaves, allow_unused=True, materialize_grads=True))


@every_objective
@pytest.mark.parametrize("like", ["any", "equal", "empty", "opposite"])
def test_the_loss_is_finite_and_so_are_its_gradients(objective: Any, like: str, toy_corpus: Path):
    corpus = open_corpus(toy_corpus)
    plan = plans_of(objective, corpus, corpus.training)[0]
    vectors = unit_vectors(len(plan.title_ids))
    if like == "equal":
        vectors = vectors[:1].repeat(len(vectors), 1)
    if like == "opposite":
        vectors = vectors[:1] * (-1.0) ** torch.arange(len(vectors))[:, None]
    if like == "empty":  # dropout may leave nothing of a title
        vectors[::3] = 0
    loss, gradients = losses_and_gradients(objective, corpus, plan, vectors)
    assert loss.shape == () and loss.isfinite() and loss >= 0
    assert all(gradient.isfinite().all() for gradient in gradients)
    if like == "any":
        assert loss > 0 and gradients[0].any()


@every_objective
def test_with_one_label_there_is_nothing_to_learn(objective: Any, toy_corpus: Path):
    corpus = open_corpus(toy_corpus)
    labels = Ragged(np.arange(len(corpus) + 1), np.zeros(len(corpus), dtype=np.int32))
    alone = dataclasses.replace(corpus, labels=labels, label_names=["all"])
    plan = plans_of(objective, alone, alone.training)[0]
    loss, gradients = losses_and_gradients(objective, alone, plan, unit_vectors(len(plan.title_ids)))
    assert loss == 0 and not any(gradient.any() for gradient in gradients)


# -- a run
# -----------------------------------------------------------------------------------------------------------


@every_objective
def test_one_seed_gives_the_same_bits(objective: Any, toy_corpus: Path):
    first, again = (trained(toy_corpus, objective=objective, epochs=2) for _ in range(2))
    assert same_bits(first, again)


@every_objective
def test_the_loss_falls(objective: Any, toy_corpus: Path):
    losses = [epoch["loss"] for epoch in trained(toy_corpus, objective=objective, epochs=4).history]
    assert losses[-1] < losses[0]


@every_objective
@pytest.mark.slow
def test_workers_change_nothing(objective: Any, toy_corpus: Path):
    alone, with_two = (trained(toy_corpus, objective=objective, epochs=2, workers=n) for n in (0, 2))
    assert same_bits(alone, with_two)


@every_objective
def test_a_resumed_run_equals_an_uninterrupted_one(objective: Any, toy_corpus: Path, tmp_path: Path):
    settings = dataclasses.replace(TRAINING, objective=objective, epochs=2, save_seconds=0.0)
    list((whole := resumed(toy_corpus, settings, tmp_path / "none")).run())
    each = whole.trainer.steps // 2
    for steps in (each, each + each // 2):  # at the end of an epoch, and within one
        stop_after(resumed(toy_corpus, settings, tmp_path / str(steps)), steps, tmp_path / str(steps))
        again = resumed(toy_corpus, settings, tmp_path / str(steps))
        assert again.trainer.steps == steps
        list(again.run())
        assert_same(whole, again)


@every_objective
def test_tuning_titles_are_not_trained_on(objective: Any, toy_corpus: Path):
    training = trained(toy_corpus, objective=objective, epochs=2, patience=2, tuning_share=0.3)
    corpus, given = open_corpus(toy_corpus), training.tuning_set.training
    assert len(given) < len(corpus.training)
    seen = np.zeros(len(corpus.kinds), dtype=bool)
    seen[corpus.tokens.take(given).values] = True
    assert not training.trainer.touched.numpy()[~seen].any()


@every_objective
def test_details_are_json(objective: Any, toy_corpus: Path):
    buffers = objective.buffers(open_corpus(toy_corpus), DIM)
    json.dumps(objective.details(toy_corpus, buffers))


@every_objective
@pytest.mark.gpu
def test_a_gpu_gives_the_same_bits_twice(objective: Any, toy_corpus: Path):
    first, again = (trained(toy_corpus, objective=objective, epochs=2, device="cuda") for _ in range(2))
    assert same_bits(first, again)


# -- settings
# -----------------------------------------------------------------------------------------------------------


@every_objective
def test_settings_are_checked(objective: Any):
    values = dataclasses.asdict(objective)
    assert ANY.validate_python(values) == objective
    with pytest.raises(pydantic.ValidationError):
        ANY.validate_python(values | {"no_such_setting": 1})
    for field in dataclasses.fields(objective):
        if isinstance(values[field.name], int | float) and not isinstance(values[field.name], bool):
            assert {"gt", "ge"} & set(field.metadata), f"{field.name} has no lower bound"
            with pytest.raises(pydantic.ValidationError, match=field.name):
                ANY.validate_python(values | {field.name: -3})
