"""The objective with a memory, against its formula written down title by title."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from storage.arrays import Ragged
from storage.formats.corpus import open_corpus
from tasks.train.checkpoint import Checkpointer
from tasks.train.loop import Training
from tasks.train.memory import EMPTY, AlwaysUpdate, HitOrMiss, Memory
from tasks.train.objectives import Label, RareMemory
from tasks.train.objectives.label import LabelPlan
from tasks.train.objectives.rare_memory import LABEL_COUNTS, split_rarest_label
from tests.tasks.train.training import same_bits, tensors, trained
from tests.worlds import TRAINING

pytest.importorskip("numba", reason="the memory needs numba")
LABELS = Ragged.from_rows(
    [[number % 3] if number % 2 else [number % 3, 3 + number % 2] for number in range(12)]
)
FREQUENCY = torch.from_numpy(np.bincount(LABELS.values))
OBJECTIVE = RareMemory(slots=20, memory_weight=0.7, margin=0.3)


def unit(*shape: int, seed: int = 0) -> torch.Tensor:
    drawn = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(drawn, dim=1)


def parameters(objective: RareMemory, dim: int) -> dict[str, torch.Tensor]:
    memory = Memory.empty(objective.slots, dim)
    buffers = {f"memory_{name}": own for name, own in memory._asdict().items()}
    return {"labels": unit(4, dim, seed=5), LABEL_COUNTS: FREQUENCY, **buffers}


def targets(rows: np.ndarray):
    return OBJECTIVE.collate(LabelPlan(rows), LABELS, np.zeros(len(rows), dtype=bool))


def test_the_value_of_a_title_is_its_rarest_label():
    assert FREQUENCY.tolist() == [4, 4, 4, 6]
    values, (offsets, others) = split_rarest_label(targets(np.arange(4)), FREQUENCY, 4)
    assert values.tolist() == [0, 1, 2, 0]
    assert offsets.tolist() == [0, 1, 1, 2, 2] and others.tolist() == [3, 3]


def test_results_equal_the_formula():
    own, first, second = parameters(OBJECTIVE, 6), unit(12, 6), unit(12, 6, seed=1).requires_grad_()
    alone = Label().loss(first, targets(np.arange(12)), own)
    assert OBJECTIVE.loss(first, targets(np.arange(12)), own) == alone  # the memory was empty
    keys, values = own["memory_keys"].clone(), own["memory_values"].clone()
    rows, excesses, grad = np.arange(12)[::-1].copy(), [], torch.zeros(12, 6)
    found, _ = split_rarest_label(targets(rows), FREQUENCY, 12)
    for place, (row, query) in enumerate(zip(rows, second.detach(), strict=True)):
        scores = keys @ query
        of_label = (values == found[place]).nonzero().flatten().tolist()
        apart = [
            slot for slot, value in enumerate(values.tolist()) if value >= 0 and value not in LABELS[row]
        ]
        near, away = max(of_label, key=lambda slot: scores[slot]), max(apart, key=lambda slot: scores[slot])
        excesses.append(max(0.0, float(scores[away] - scores[near]) + 0.3))
        grad[place] = (keys[away] - keys[near]) * (excesses[-1] > 0)
    weightless = replace(OBJECTIVE, memory_weight=0.0)
    alone = weightless.loss(second, targets(rows), {name: one.clone() for name, one in own.items()})
    whole = OBJECTIVE.loss(second, targets(rows), own)
    assert (whole - alone).item() == pytest.approx(0.7 * np.mean(excesses), abs=1e-6) and np.mean(
        excesses
    ) > 0
    (both,) = torch.autograd.grad(whole, second)
    (label_mode,) = torch.autograd.grad(alone, second)
    torch.testing.assert_close(both - label_mode, 0.7 * grad / 12, atol=1e-6, rtol=0)
    assert own["memory_clock"][0] == 2 and not own["memory_keys"].requires_grad


def test_a_title_of_which_nothing_is_left_is_not_written():
    own, vectors = parameters(OBJECTIVE, 6), unit(3, 6)
    vectors[1:] = 0
    OBJECTIVE.loss(vectors, targets(np.arange(3)), own)
    assert (own["memory_values"] != EMPTY).sum() == 1


def test_weight_zero_equals_the_objective_label(toy_corpus: Path):
    label = tensors(trained(toy_corpus, objective=Label(batch_size=48), epochs=2))
    objective = RareMemory(batch_size=48, slots=64, memory_weight=0.0)
    memory = tensors(trained(toy_corpus, objective=objective, epochs=2))
    assert all(torch.equal(own, memory[name]) for name, own in label.items())


@pytest.mark.parametrize("rule", [HitOrMiss(), HitOrMiss(policy="averaging"), AlwaysUpdate()], ids=str)
def test_a_resumed_run_has_the_uninterrupted_ones_memory(toy_corpus: Path, tmp_path: Path, rule):
    objective = RareMemory(batch_size=48, slots=64, rule=rule)
    settings = replace(TRAINING, objective=objective, epochs=2, save_seconds=0.0)
    whole = Training(toy_corpus, settings)
    list(whole.run())
    assert (whole.trainer.buffers["memory_values"] != EMPTY).sum() >= 3
    stopped = Training(toy_corpus, settings)
    step = stopped.trainer.step

    def three_steps(*arguments):
        if stopped.trainer.steps == 3:
            raise KeyboardInterrupt
        return step(*arguments)

    stopped.trainer.step = three_steps
    with pytest.raises(KeyboardInterrupt):
        list(stopped.run(Checkpointer(tmp_path)))
    again = Training(toy_corpus, settings)
    again.resume(Checkpointer(tmp_path))
    assert again.trainer.steps == 3
    list(again.run())
    assert same_bits(whole, again)


def test_the_memory_fills_with_every_label(toy_corpus: Path):
    learner = trained(toy_corpus, objective=RareMemory(batch_size=48, slots=64), epochs=3).trainer
    values = learner.buffers["memory_values"]
    taken = values != EMPTY
    assert set(values[taken].tolist()) == set(range(len(open_corpus(toy_corpus).label_names)))
    norms = torch.linalg.vector_norm(learner.buffers["memory_keys"], dim=1)
    torch.testing.assert_close(norms, taken.float())


def test_details_of_the_slots(tmp_path: Path):
    (tmp_path / "label_names.json").write_text('["crime", "quiz", "opera"]', encoding="utf-8")
    memory = Memory.empty(5, 2)
    memory.values.copy_(torch.tensor([2, 0, EMPTY, 2, 2]))
    memory.ages.copy_(torch.tensor([4, 7, 9, 0, 8]))
    memory.hits.copy_(torch.tensor([1, 0, 0, 0, 2]))
    buffers = {f"memory_{name}": own for name, own in memory._asdict().items()}
    assert OBJECTIVE.details(tmp_path, buffers) == {
        "memory": [
            {"label": "opera", "slots": 3, "never_hit": 1, "ages": [0, 2, 4, 6, 8]},
            {"label": "crime", "slots": 1, "never_hit": 1, "ages": [7] * 5},
        ]
    }
