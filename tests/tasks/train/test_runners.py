"""Learners in processes of their own: what they learn; no batch is lost, and no kill stops them."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from storage.formats.corpus import open_corpus
from storage.stages import ROOT
from storage.tables import Shared
from tasks.encoder.bags import LAYER
from tasks.optimizers import Adagrad, Adam
from tasks.optimizers.parameter_groups import ParameterGroup
from tasks.train.checkpoint import Checkpointer
from tasks.train.loop import Diverged, Training
from tasks.train.objectives import Label
from tasks.train.runners import Hogwild, OneProcess, Owners
from tasks.train.runners.learner import DONE
from tasks.train.runners.swarm import Swarm
from tasks.train.settings import TrainSettings
from tasks.train.tables import MappedTable
from tests.tasks.train.training import assert_same, resumed, tensors
from tests.worlds import TRAINING

pytest.importorskip("numba", reason="learners make compiled steps")
GROUPS = (ParameterGroup(pattern=LAYER, optimizer=Adam(learning_rate=0.01)),)
SETTINGS = replace(TRAINING, objective=Label(batch_size=8), groups=GROUPS, epochs=2, threads=1)


def run(training: Training) -> Training:
    for _ in training.run():
        pass
    return training


@contextmanager
def killing(training: Training, kills: int, seed: int = 1) -> Iterator[list[int]]:
    """Kills learners while the run goes on, each at a random moment after its first step; who was killed."""
    killed: list[int] = []
    rng, over = random.Random(seed), threading.Event()

    def work() -> None:
        while len(killed) < kills and not over.is_set():
            swarm, place = training.swarm, rng.randrange(2)
            assert swarm is not None
            if swarm.shared is None or len(swarm.pids) < 2:
                time.sleep(0.01)
                continue
            before, pid = int(swarm.shared["marks"][place, DONE]), swarm.pids[place]
            while not over.is_set() and pid not in killed and swarm.shared is not None:
                if int(swarm.shared["marks"][place, DONE]) != before:
                    time.sleep(rng.random() * 0.02)
                    os.kill(pid or 0, signal.SIGKILL)
                    killed.append(pid or 0)
                time.sleep(0.001)
            time.sleep(0.002)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def test_shared_tensors_are_one_memory_and_leave_no_file(tmp_path: Path):
    shapes = {"rows": ((5, 3), torch.float32), "none": ((4, 0), torch.float32), "words": ((2,), torch.int64)}
    for folder in (None, tmp_path):
        shared = Shared(shapes, folder)
        assert not shared["rows"].any() and shared["none"].shape == (4, 0)
        assert all(tensor.data_ptr() % 64 == 0 for tensor in shared.tensors.values() if len(tensor.view(-1)))
        twin = Shared.__new__(Shared)
        twin.__setstate__(
            {"_shapes": shapes, "_begins": shared._begins, "_size": 128, "_file": Descriptor(shared)}
        )
        twin["rows"][4, 2], shared["words"][1] = 7.0, 9
        assert shared["rows"][4, 2] == 7 and twin["words"].tolist() == [0, 9]
        assert set(shared.below("w")) == {"ords"} and list(tmp_path.iterdir()) == []


class Descriptor:
    """As multiprocessing hands a file to a process."""

    def __init__(self, shared: Shared) -> None:
        self.file = os.dup(shared._file)

    def detach(self) -> int:
        return self.file


def test_owners_together_move_what_one_moves(toy_corpus: Path):
    whole, parts = (Training(toy_corpus, SETTINGS, True).learner.compiled for _ in range(2))
    assert whole and parts
    batches = Training(toy_corpus, SETTINGS).loader.epoch(0)[1]
    for step, batch in enumerate(batches, start=1):
        gradients = whole.gradients(batch)
        assert gradients is not None
        for owner in range(3):
            parts.apply(gradients, 0.5, step, (owner, 3))
        whole.apply(gradients, 0.5, step)
    for name, parameter in whole.parameters.items():
        for ours, theirs in zip(parameter.arrays, parts.parameters[name].arrays, strict=True):
            assert np.array_equal(ours, theirs), name


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"objective": TRAINING.objective}, "the objective is leave_one_out_softmax"),
        ({"optimizer": Adagrad()}, "the optimizer is adagrad"),
        ({"precision": "bfloat16"}, "precision is bfloat16"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value,
)
def test_what_learners_cannot_do_is_refused(toy_corpus: Path, changes: dict, reason: str):
    for runner in (Hogwild(), Owners()):
        text = rf"^train\.runner is {runner.name}, but {reason}; choose train\.runner=sequential$"
        with pytest.raises(ValueError, match=text):
            Training(toy_corpus, replace(SETTINGS, runner=runner, **changes))


@pytest.mark.parametrize(
    "runner",
    [Hogwild(learners=1), Owners(learners=1)],
    ids=lambda runner: runner.name,
)
@pytest.mark.slow
def test_one_learner_is_the_sequential_run(toy_corpus: Path, runner: Hogwild | Owners):
    ours, sequential = (
        Training(toy_corpus, replace(SETTINGS, runner=runner)),
        Training(toy_corpus, SETTINGS, True),
    )
    assert_same(run(ours), run(sequential))
    assert ours.learner.about_step == f"training by 1 learners ({runner.name}), by the compiled step"
    assert ours.swarm and ours.swarm.pids == []


def by_rounds(corpus: Path, settings: TrainSettings, learners: int) -> Training:
    """What owners do, in one process: gradients of as many batches at the same rows, then their steps."""
    training = Training(corpus, settings, True)
    step = training.learner.compiled
    assert step is not None
    for epoch in range(settings.epochs):
        number, batches = training.loader.epoch(epoch)
        waiting = []
        for place, batch in enumerate(batches):
            found = step.gradients(batch)
            assert found is not None
            copies = (None if own is None else own.copy() for own in found[2:])
            waiting.append((place, found._replace(entries=tuple(map(np.copy, found.entries)))[:2], *copies))
            if len(waiting) == learners or place + 1 == number:
                for place_of, (loss, entries), *grads in waiting:
                    training.learner.steps += 1
                    factor = settings.rate_factor(epoch, place_of, number)
                    step.apply(type(found)(loss, entries, *grads), factor, training.learner.steps)
                waiting = []
    return training


@pytest.fixture
def one_thread() -> Iterator[None]:
    """As learners have: products are rounded otherwise with two."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("table", [SETTINGS.table, MappedTable()], ids=lambda table: table.name)
def test_owners_make_the_same_bits_whatever_is_killed(toy_corpus: Path, tmp_path: Path, table):
    settings = replace(SETTINGS, epochs=40, objective=Label(batch_size=7))
    expected = tensors(by_rounds(toy_corpus, settings, 2))
    if table.name == "mapped":
        table = replace(table, folder=str(tmp_path))
    training = Training(toy_corpus, replace(settings, runner=Owners(), table=table))
    with killing(training, 8) as killed:
        run(training)
    assert len(killed) >= 3
    for name, tensor in tensors(training).items():
        assert torch.equal(tensor, expected[name]), name
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_owners_go_on_bit_equal_where_they_were_stopped(toy_corpus: Path, tmp_path: Path):
    settings = replace(SETTINGS, runner=Owners(), save_seconds=0.0)
    whole, stopped = run(Training(toy_corpus, settings)), Training(toy_corpus, settings)
    saves, save = Checkpointer(tmp_path), Checkpointer(tmp_path).save

    def save_twice_alone(learner, position) -> None:
        save(learner, position)
        if position.batch == 12:
            raise KeyboardInterrupt

    saves.save = save_twice_alone
    with pytest.raises(KeyboardInterrupt):
        list(stopped.run(saves))
    assert stopped.swarm and stopped.swarm.pids == []
    again = resumed(toy_corpus, settings, tmp_path)
    assert (again.position.batch, again.learner.steps) == (12, 12)
    assert_same(run(again), whole)


def sample_corpus(folder: Path) -> Path:
    """The Corpus of the bundled guide, made as the nightly run makes it."""
    from benchmarks.road import make_corpus

    return make_corpus(folder / "home", [ROOT / "sample" / "guide.xml.gz"])


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample_corpus(tmp_path_factory.mktemp("sample"))


REAL = TrainSettings(epochs=3, patience=3, tuning_share=0.2, threads=1, device="cpu")


def scored(corpus: Path, settings: TrainSettings) -> tuple[Training, float]:
    training = run(Training(corpus, settings, True if isinstance(settings.runner, OneProcess) else None))
    return training, max(epoch["tuning_score"] for epoch in training.history)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 4, 32])
def test_hogwild_comes_as_far_as_one_step_after_the_other(corpus: Path, size: int):
    settings = replace(REAL, objective=Label(batch_size=size), epochs=2 if size < 32 else 3)
    scores = [scored(corpus, replace(settings, runner=runner))[1] for runner in (OneProcess(), Hogwild())]
    assert scores[1] > scores[0] - 0.03, scores


def undisturbed(corpus: Path, settings: TrainSettings) -> tuple[float, float]:
    """Mean of the scores of runs, and how far one more may lie from it."""
    scores = [scored(corpus, replace(settings, seed=seed))[1] for seed in (1, 2, 3)]
    return float(np.mean(scores)), float(3 * np.std(scores, ddof=1) + 0.01)


def disturbed(corpus: Path, settings: TrainSettings, kills: int) -> None:
    """Kills learners; no batch is lost (the swarm counts them), and the score is that of other runs."""
    training = Training(corpus, settings)
    cut, replaced = 0.0, 0.0
    with killing(training, kills) as killed:
        for progress in training.run():
            cut += progress.metrics["batches_cut_off"]
            replaced += progress.metrics["learners_replaced"]
    assert len(killed) == kills and replaced >= kills - 2 and cut <= kills
    mean, width = undisturbed(corpus, settings)
    assert training.history[-1]["tuning_score"] == pytest.approx(mean, abs=width)


@pytest.mark.slow
def test_kills_neither_stop_hogwild_nor_change_what_it_learns(corpus: Path):
    settings = replace(REAL, objective=Label(batch_size=4), epochs=6, patience=6)
    disturbed(corpus, replace(settings, runner=Hogwild(interval=4)), 3)


@pytest.mark.soak
@pytest.mark.parametrize("runner", [Hogwild(), Hogwild(interval=8), Owners()])
def test_fifty_kills(corpus: Path, runner: Hogwild | Owners):
    settings = replace(REAL, objective=Label(batch_size=1), epochs=100, patience=100, runner=runner)
    disturbed(corpus, settings, 50)


@pytest.mark.slow
def test_a_gradient_that_is_not_finite_is_explained(toy_corpus: Path):
    training = Training(toy_corpus, replace(SETTINGS, runner=Hogwild(), dropout=0.0))
    token = int(open_corpus(toy_corpus).tokens.values[0])
    training.table.rows[token] = torch.nan  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(Diverged, match=r"^non-finite gradient for the .* others in step 1 \(epoch 1\)"):
        run(training)
    assert training.swarm and training.swarm.pids == []


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks for processes in /proc, which is Linux'")
def test_learners_end_with_their_parent(toy_corpus: Path, tmp_path: Path):
    """SIGKILL of the process that trains: it cannot tell them."""
    script = tmp_path / "train.py"
    script.write_text(
        "import sys\n"
        "from dataclasses import replace\n"
        "from pathlib import Path\n"
        "from tasks.train.loop import Training\n"
        "from tests.tasks.train.test_runners import SETTINGS, Hogwild\n"
        "if __name__ == '__main__':\n"
        "    training = Training(Path(sys.argv[1]), replace(SETTINGS, epochs=1000, runner=Hogwild()))\n"
        "    for _ in training.run():\n"
        "        print(*training.swarm.pids, flush=True)\n"
    )
    command = [sys.executable, str(script), str(toy_corpus)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pids = [int(word) for word in process.stdout.readline().split()]
        process.kill()
    assert len(pids) == 2
    until = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < until, "learners outlive their parent"
        time.sleep(0.05)


@pytest.mark.slow
def test_a_learner_that_ends_by_itself_or_is_killed_over_and_over_is_an_error(
    toy_corpus: Path, monkeypatch: pytest.MonkeyPatch
):
    training = Training(toy_corpus, replace(SETTINGS, epochs=1000, runner=Hogwild()))
    progress = training.run()
    next(progress)
    assert training.swarm is not None
    os.kill(training.swarm.pids[1] or 0, signal.SIGTERM)
    next(progress)  # replaced
    monkeypatch.setattr("tasks.train.runners.swarm.FUTILE", 0)
    start = Swarm._start

    def killed_at_once(swarm: Swarm, place: int):
        process = start(swarm, place)
        process.kill()
        return process

    monkeypatch.setattr(Swarm, "_start", killed_at_once)
    os.kill(training.swarm.pids[0] or 0, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="without a step between; is memory short"):
        list(progress)
    assert training.swarm.pids == []
