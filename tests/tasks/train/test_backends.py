"""Both backends of train.backend against the NumPy step (numpy_step.py), and the choice of the backend."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from storage.formats.corpus import open_corpus
from tasks.encoder.bag import LAYER, Bag
from tasks.loading.loader import Batch
from tasks.optimizers import SGD, Adagrad, Adam, Optimizer, RowwiseAdagrad
from tasks.optimizers.clipping import ClipByNorm
from tasks.optimizers.parameter_groups import NonFiniteGradient, ParameterGroup
from tasks.train import compiled_step
from tasks.train.checkpoint import Checkpointer
from tasks.train.loop import Training
from tasks.train.objectives import Label
from tasks.train.runners import Hogwild
from tasks.train.settings import TrainSettings
from tasks.train.tables import MappedTable
from tests.tasks.train.numpy_step import numpy_step
from tests.tasks.train.training import assert_same, resumed, run, stop_after, tensors, without_sentences
from tests.worlds import TRAINING

# Adam divides by √second + ε; with an ε of 1e-8, rounding errors of a zero gradient would give full steps.
ADAM = Adam(learning_rate=0.01, epsilon=1e-5)
SETTINGS = replace(TRAINING, objective=Label(), groups=(ParameterGroup(pattern=LAYER, optimizer=ADAM),))
COMPILED = pytest.param(
    "compiled", marks=pytest.mark.skipif(not compiled_step.has_numba(), reason="needs numba")
)
BACKENDS = pytest.mark.parametrize("backend", ["torch", COMPILED])
needs_numba = pytest.mark.skipif(not compiled_step.has_numba(), reason="needs numba")


def batches(training: Training) -> Iterator[Batch]:
    return training.loader.epoch(0)[1]


class Reference:
    """The NumPy step with the initial parameters of a training run."""

    def __init__(self, training: Training) -> None:
        self.trainer, self.step_number = training.trainer, 0
        self.tensors = {name: tensor.double().numpy() for name, tensor in tensors(training).items()}

    def step(self, batch: Batch, factor: float) -> float:
        self.step_number += 1
        optimizers = {name: updater.optimizer for name, updater in self.trainer.groups.updaters.items()}
        inputs = optimizers, self.trainer.weights.numpy(), batch, self.trainer.settings
        return numpy_step(self.tensors, *inputs, factor, self.step_number)

    def assert_close(self) -> None:
        for name, part in self.trainer.sections().items():
            if name != "touched":
                values = torch.cat(list(part.pieces())).numpy()
                np.testing.assert_allclose(values, self.tensors[name], rtol=1e-4, atol=1e-5, err_msg=name)


@BACKENDS
@pytest.mark.parametrize("optimizer", [RowwiseAdagrad(), SGD(), replace(ADAM, learning_rate=0.05)])
@pytest.mark.parametrize("sentences", [True, False])
def test_steps_equal_the_numpy_reference(
    toy_corpus: Path, tmp_path: Path, backend: str, optimizer: Optimizer, sentences: bool
):
    corpus = toy_corpus if sentences else without_sentences(toy_corpus, tmp_path / "bare")
    training = Training(corpus, replace(SETTINGS, optimizer=optimizer, backend=backend))
    reference = Reference(training)
    for batch, factor in zip(batches(training), (1.0, 0.7, 0.4, 0.1)):
        loss = training.trainer.step(batch, factor).item()
        assert loss == pytest.approx(reference.step(batch, factor), rel=1e-5)
        reference.assert_close()
    assert training.trainer.backend == backend and training.trainer.steps == 4
    assert training.trainer.touched.any() and not training.trainer.touched.all()


@BACKENDS
@pytest.mark.parametrize(
    "encoder", [Bag(sentence=0.0, sentence_context=0.0), Bag(word=0.0, ngram=3.0, length_power=1.0)]
)
def test_encoder_weights_and_temperatures_are_used(toy_corpus: Path, backend: str, encoder: Bag):
    """With SGD, because Adagrad amplifies rounding errors of gradients near zero."""
    objective = Label(temperature=0.1, context_temperature=3.0)
    settings = replace(SETTINGS, encoder=encoder, objective=objective, optimizer=SGD(learning_rate=50.0))
    training = Training(toy_corpus, replace(settings, backend=backend))
    reference = Reference(training)
    for batch, _ in zip(batches(training), range(3)):
        loss = training.trainer.step(batch, 1.0).item()
        assert loss == pytest.approx(reference.step(batch, 1.0), rel=1e-5)
    reference.assert_close()


@BACKENDS
def test_a_title_without_entries_changes_no_row(toy_corpus: Path, tmp_path: Path, backend: str):
    corpus = without_sentences(toy_corpus, tmp_path / "bare")
    training = Training(corpus, replace(SETTINGS, backend=backend))
    reference, batch = Reference(training), next(batches(training))
    bags = batch.bags
    first = bags.offsets[1]  # drops the entries of the first title
    parts = {name: getattr(bags, name)[first:] for name in ("tokens", "kinds", "entry_titles")}
    batch = batch._replace(bags=bags._replace(offsets=(bags.offsets - first).clamp(min=0), **parts))
    assert training.trainer.step(batch, 1.0).item() == pytest.approx(reference.step(batch, 1.0), rel=1e-5)
    reference.assert_close()


@BACKENDS
def test_a_non_finite_gradient_changes_nothing(toy_corpus: Path, backend: str):
    training = Training(toy_corpus, replace(SETTINGS, dropout=0.0, backend=backend))
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


@needs_numba
def test_a_run_of_the_compiled_backend_is_reproducible_and_close_to_torch(toy_corpus: Path):
    first, second, torch_run = (
        run(Training(toy_corpus, replace(SETTINGS, epochs=2, backend=backend)))
        for backend in ("compiled", "compiled", "torch")
    )
    assert_same(first, second)
    last, expected = first.history[-1], torch_run.history[-1]
    assert last["loss"] == pytest.approx(expected["loss"], rel=1e-4)
    assert last["effective_rank"] == pytest.approx(expected["effective_rank"], rel=1e-3)


@needs_numba
@pytest.mark.parametrize("steps", [7, 16], ids=["within an epoch", "at its end"])
def test_a_resumed_run_of_the_compiled_backend_equals_the_uninterrupted_one(
    toy_corpus: Path, tmp_path: Path, steps: int
):
    settings = replace(TRAINING, objective=Label(), epochs=2, save_seconds=0.0, backend="compiled")
    uninterrupted = run(Training(toy_corpus, settings))
    steps = min(steps, uninterrupted.loader.epoch(0)[0])
    stop_after(Training(toy_corpus, settings), steps, tmp_path)
    assert_same(uninterrupted, run(resumed(toy_corpus, settings, tmp_path)))


@needs_numba
@pytest.mark.parametrize("backend", ["torch", "compiled"])
def test_a_resumed_run_continues_with_the_backend_of_the_checkpoint(
    toy_corpus: Path, tmp_path: Path, backend: str
):
    settings = replace(SETTINGS, epochs=1, save_seconds=0.0, device="cpu")
    stop_after(Training(toy_corpus, replace(settings, backend=backend)), 3, tmp_path)
    epochs = 10_000 if backend == "torch" else 1  # "auto" would choose the other backend for a new run
    training = Training(toy_corpus, replace(settings, epochs=epochs))
    assert training.trainer.backend != backend
    training.resume(Checkpointer(tmp_path))
    assert training.trainer.backend == backend and (training.trainer.compiled is None) == (backend == "torch")


@needs_numba
@pytest.mark.parametrize(
    ("saved", "changes", "reason"),
    [
        ("compiled", {"backend": "torch"}, "checkpoint has backend compiled, but train.backend is torch"),
        ("torch", {"backend": "compiled"}, "checkpoint has backend torch, but train.backend is compiled"),
        ("compiled", {"table": MappedTable()}, "has backend compiled, but the table is mapped on cpu"),
        ("torch", {"runner": Hogwild()}, "is hogwild, but the checkpoint has backend torch"),
    ],
)
def test_a_resumed_run_refuses_another_backend(
    toy_corpus: Path, tmp_path: Path, saved: str, changes: dict, reason: str
):
    settings = replace(SETTINGS, epochs=1, save_seconds=0.0, device="cpu")
    stop_after(Training(toy_corpus, replace(settings, backend=saved)), 3, tmp_path)
    training = Training(toy_corpus, replace(settings, **changes))
    before = tensors(training)["rows"]
    with pytest.raises(
        ValueError, match=rf"last\.safetensors: .*{reason}.*\. Choose another folder, or delete"
    ):
        training.resume(Checkpointer(tmp_path))
    assert torch.equal(tensors(training)["rows"], before)


def test_a_checkpoint_without_backend_is_resumed(toy_corpus: Path, tmp_path: Path):
    """Checkpoints of older versions do not store the backend."""
    settings = replace(SETTINGS, epochs=1, save_seconds=0.0)
    training = Training(toy_corpus, settings)
    training.trainer.backend = "other"
    stop_after(training, 3, tmp_path)
    file = tmp_path / "last.safetensors"
    file.write_bytes(file.read_bytes().replace(b'\\"backend\\": \\"other\\"', b'\\"removed\\": \\"other\\"'))
    assert resumed(toy_corpus, settings, tmp_path).trainer.steps == 3


UNSUPPORTED = [
    ({"objective": TRAINING.objective}, "the objective is leave_one_out_softmax"),
    ({"optimizer": Adagrad()}, "the optimizer is adagrad"),
    ({"groups": (ParameterGroup(pattern="labels", optimizer=Adagrad()),)}, "the optimizer is adagrad"),
    ({"optimizer": RowwiseAdagrad(), "per_row_steps": True}, "train.per_row_steps is set"),
    ({"clipping": ClipByNorm()}, "clipping is by_norm"),
    ({"table": MappedTable()}, "the table is mapped on cpu"),
    ({"precision": "bfloat16"}, "precision is bfloat16"),
    ({"objective": Label(temperature=0.02)}, "a temperature is below 0.03"),
]


@needs_numba
@pytest.mark.parametrize(("changes", "reason"), UNSUPPORTED, ids=[reason for _, reason in UNSUPPORTED])
def test_unsupported_settings_run_on_torch_or_are_refused(toy_corpus: Path, changes: dict, reason: str):
    settings = replace(SETTINGS, device="cpu", epochs=10_000, **changes)
    trainer = Training(toy_corpus, settings).trainer
    assert trainer.backend == "torch" and trainer.compiled is None
    assert trainer.step_description == f"training with backend torch: {reason}"
    with pytest.raises(
        ValueError, match=f"^train.backend is compiled, but {reason}; choose train.backend=auto$"
    ):
        Training(toy_corpus, replace(settings, backend="compiled"))


def test_auto_compiles_long_runs_if_numba_is_installed(toy_corpus: Path, monkeypatch: pytest.MonkeyPatch):
    epochs = -(-compiled_step.MIN_TITLES_SHOWN // len(open_corpus(toy_corpus).training))

    def description(settings: TrainSettings) -> str:
        return Training(toy_corpus, replace(settings, device="cpu")).trainer.step_description

    monkeypatch.setattr(compiled_step, "has_numba", lambda: True)
    assert description(replace(SETTINGS, epochs=epochs)) == "training with backend compiled"
    short = description(replace(SETTINGS, epochs=epochs - 1))
    assert (
        short.startswith("training with backend torch: training shows 7")
        and "saves time from 80,000" in short
    )
    chosen = description(replace(SETTINGS, epochs=epochs, backend="torch"))
    assert chosen == "training with backend torch: train.backend is torch"
    monkeypatch.setattr(compiled_step, "has_numba", lambda: False)
    assert description(replace(SETTINGS, epochs=epochs)).endswith("backend torch: numba is not installed")
