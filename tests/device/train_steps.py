"""Training steps on the simulated device: waits of the host, and results."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from storage.tables import segment_sums
from storage.tables.segment_sums import MAX_PIECE, segment_sum
from tasks.optimizers import Adam
from tasks.train.loop import Diverged, Training
from tasks.train.objectives import Label
from tests.device.streams import GPU
from tests.tasks.train.training import tensors
from tests.worlds import TRAINING

pytestmark = pytest.mark.gpu
GPU_SETTINGS = replace(TRAINING, device="cuda", epochs=1, precision="float32")


@pytest.mark.parametrize("objective", [TRAINING.objective, Label(batch_size=16)], ids=lambda one: one.name)
def test_the_host_waits_for_no_step_of_a_resident_table(toy_corpus: Path, objective):
    training = Training(toy_corpus, replace(GPU_SETTINGS, objective=objective, optimizer=Adam()))
    training.trainer.defers_check = True
    batches = training.batches(0)
    training.trainer.step(next(batches)[1], 1.0)  # uploads the weights of kinds
    before = GPU.synchronisations
    for _, (_, batch) in zip(range(2), batches, strict=False):
        training.trainer.step(batch, 1.0)
    assert training.trainer.steps == 3 and GPU.synchronisations == before
    assert training.trainer.pop_skipped_steps() == 0 and training.trainer.steps == 3


def test_a_gradient_that_is_not_finite_ends_the_epoch_with_its_rows_as_before(toy_corpus: Path):
    """The step and those behind it change nothing; it is explained as on a CPU."""
    explained, states = {}, {}
    for device in ("cpu", "cuda"):
        training = Training(toy_corpus, replace(GPU_SETTINGS, device=device, dropout=0.0))
        learner, step = training.trainer, training.trainer.step

        def spoil(batch, factor, learner=learner, step=step):
            if learner.steps == 2:  # a row that only this batch touches would not spoil the next
                learner.table.rows[int(batch.bags.ids[0])] = torch.nan
            return step(batch, factor)

        learner.step = spoil
        with pytest.raises(Diverged) as caught:
            list(training.run())
        explained[device], states[device] = str(caught.value), tensors(training)
        assert learner.steps == 3
    assert explained["cuda"] == explained["cpu"] and "in step 3 (epoch 1)" in explained["cpu"]
    for name, tensor in states["cpu"].items():
        # Adam amplifies the rounding of gradients near zero; a step changes that layer by .007, rows by .1
        on_gpu = states["cuda"][name].cpu()
        assert torch.allclose(on_gpu.float(), tensor.float(), atol=5e-4, equal_nan=True), name


def test_no_thread_adds_up_more_than_128_values(monkeypatch: pytest.MonkeyPatch):
    """A hot row of ten thousand entries beside rows of few and of none."""
    longest, embedding_bag = [], segment_sums.embedding_bag

    def seen(rows, ids, starts, weights=None):
        longest.append(int(starts.diff().max()))
        return embedding_bag(rows, ids, starts, weights)

    monkeypatch.setattr(segment_sums, "embedding_bag", seen)
    places = torch.cat([torch.full((10_000,), 3), torch.arange(10).repeat_interleave(40), torch.tensor([12])])
    values = torch.randn(len(places), 5)
    found = segment_sum(values.to("cuda"), places.to("cuda"), 14)
    assert max(longest) <= MAX_PIECE
    exact = torch.zeros(14, 5, dtype=torch.float64).index_add_(0, places, values.double())
    assert torch.allclose(found.cpu().double(), exact, atol=1e-3)
    again = segment_sum(values.to("cuda"), places.to("cuda"), 14)
    assert torch.equal(again.cpu(), found.cpu())
