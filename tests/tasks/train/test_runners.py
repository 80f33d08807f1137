"""Learners in several processes: results and unsupported settings."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from storage.formats.corpus import open_corpus
from storage.stages import ROOT
from storage.tables import Shared
from tasks.optimizers import Adagrad
from tasks.train.checkpoint import Checkpointer
from tasks.train.loop import Diverged, Training
from tasks.train.runners import Hogwild, learner, swarm
from tasks.train.runners.fence import _full_fence, fence
from tasks.train.runners.learner import ASSIGNMENT, FINISHED_ROUNDS, MAX_ROUNDS, STOP, WORDS
from tasks.train.runners.swarm import MAX_KILLS, Swarm
from tasks.train.tables import MappedTable, TableSettings
from tests.tasks.train.training import COMPILED, assert_same, resumed, run
from tests.worlds import TRAINING

pytest.importorskip("numba", reason="learners make compiled steps")


def test_shared_tensors_are_one_memory_and_leave_no_file(tmp_path: Path):
    shapes = {"rows": ((5, 3), torch.float32), "none": ((4, 0), torch.float32), "words": ((2,), torch.int64)}
    for folder in (None, tmp_path):
        shared = Shared(shapes, folder)
        assert not shared["rows"].any() and shared["none"].shape == (4, 0)
        assert all(tensor.data_ptr() % 64 == 0 for tensor in shared.tensors.values() if len(tensor.view(-1)))
        twin = Shared.__new__(Shared)
        twin.__setstate__(
            {"_shapes": shapes, "_offsets": shared._offsets, "_size": 128, "_file": Descriptor(shared)}
        )
        twin["rows"][4, 2], shared["words"][1] = 7.0, 9
        assert shared["rows"][4, 2] == 7 and twin["words"].tolist() == [0, 9]
        assert list(tmp_path.iterdir()) == []


def test_a_learner_publishes_a_step_after_its_rows(toy_corpus: Path, monkeypatch: pytest.MonkeyPatch):
    """One learner in this process; each fence notes the words and rows that other processes may see."""
    settings, seen = replace(COMPILED, runner=Hogwild(learners=1)), []
    training = Training(toy_corpus, settings)
    assert training.swarm
    shared = training.swarm._allocate()
    control, marks, rows = shared["control"], shared["marks"], shared["rows"]

    def note() -> None:
        if marks[0, FINISHED_ROUNDS] == 1:
            control[STOP] = 1  # ends the learner where it waits for its third round
        seen.append((int(control[ASSIGNMENT]), int(marks[0, FINISHED_ROUNDS]), rows.clone()))

    for module in (swarm, learner):
        monkeypatch.setattr(module, "fence", note)
    monkeypatch.setattr(training.swarm, "shared", shared)
    monkeypatch.setattr(training.swarm, "_start", lambda place: None)
    training.swarm._assign_epoch(0, 0, 20)
    start = training.trainer.table.rows  # pyright: ignore[reportAttributeAccessIssue]
    assert len(seen) == 2  # before and after the assignment is written
    assert seen[-1][0] == 0 and torch.equal(seen[-1][2], start) and control[ASSIGNMENT] == 1
    control[MAX_ROUNDS] = 2
    with pytest.raises(SystemExit):
        learner._Learner(shared, 0, toy_corpus, settings).run()
    after_first = [table for _, done, table in seen if done == 0][-1]
    after_second = [table for _, done, table in seen if done == 1][-1]
    assert not torch.equal(after_first, start) and not torch.equal(after_second, after_first)
    assert torch.equal(rows, after_second)


def test_a_fence_is_an_instruction_on_every_processor():
    binding = pytest.importorskip("llvmlite.binding")
    fence()
    code = next(iter(_full_fence().inspect_llvm().values()))  # pyright: ignore[reportFunctionMemberAccess]
    assert "fence seq_cst" in code
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    for processor, instruction in (("x86_64", "lock"), ("aarch64", "dmb\tish")):
        module = binding.parse_assembly("define void @f() {\n fence seq_cst\n ret void\n}")
        machine = binding.Target.from_triple(f"{processor}-linux-gnu").create_target_machine()
        assert instruction in machine.emit_assembly(module)


def test_a_lost_batch_is_an_error_also_with_python_o(toy_corpus: Path, monkeypatch: pytest.MonkeyPatch):
    training = Training(toy_corpus, replace(COMPILED, runner=Hogwild(learners=1)))
    assert training.swarm

    def lose(marks) -> None:
        training.swarm.shared["claimed"].zero_()  # pyright: ignore[reportOptionalMemberAccess]
        marks[0, FINISHED_ROUNDS] = 20

    monkeypatch.setattr(training.swarm, "_start", lambda place: Started())
    monkeypatch.setattr(training.swarm, "_replace_killed", lose)
    with pytest.raises(RuntimeError, match="20 batches of epoch 1 were lost or used twice, the first is 0"):
        list(training.swarm.run_epoch(0, 0, 20, save_seconds=60))


def test_a_finished_round_resets_the_count_of_kills(toy_corpus: Path, monkeypatch: pytest.MonkeyPatch):
    training = Training(toy_corpus, replace(COMPILED, runner=Hogwild(learners=1)))
    assert training.swarm
    killed_process = SimpleNamespace(exitcode=-signal.SIGKILL)
    monkeypatch.setattr(training.swarm, "_start", lambda number: killed_process)
    monkeypatch.setattr(training.swarm, "_processes", [killed_process])
    marks = np.zeros((1, WORDS), dtype=np.int64)
    for finished_rounds in (0, 1, 5):
        marks[0, FINISHED_ROUNDS] = finished_rounds
        for _ in range(MAX_KILLS):
            training.swarm._replace_killed(marks)
    assert training.swarm._replaced_learners == 3 * MAX_KILLS
    with pytest.raises(
        RuntimeError, match=f"learner 0 was killed {MAX_KILLS + 1} times without a finished round"
    ):
        training.swarm._replace_killed(marks)


class Started:
    """Stand-in for a started process with the attributes that the parent uses."""

    def __init__(self) -> None:
        self.sentinel = os.open(os.devnull, os.O_RDONLY)

    def __del__(self) -> None:
        os.close(self.sentinel)


class Descriptor:
    """Stand-in for a file that multiprocessing passes to a process."""

    def __init__(self, shared: Shared) -> None:
        self.file = os.dup(shared._file)

    def detach(self) -> int:
        return self.file


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"objective": TRAINING.objective}, "the objective is leave_one_out_softmax"),
        ({"optimizer": Adagrad()}, "the optimizer is adagrad"),
        ({"precision": "bfloat16"}, "precision is bfloat16"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value,
)
def test_settings_that_learners_do_not_support_are_refused(toy_corpus: Path, changes: dict, reason: str):
    text = rf"^train\.runner is hogwild, but {reason}; choose train\.runner=sequential$"
    with pytest.raises(ValueError, match=text):
        Training(toy_corpus, replace(COMPILED, runner=Hogwild(), **changes))


@pytest.mark.parametrize("table", [COMPILED.table, MappedTable()], ids=lambda table: table.name)
@pytest.mark.slow
def test_one_learner_equals_the_sequential_run(toy_corpus: Path, tmp_path: Path, table: TableSettings):
    if isinstance(table, MappedTable):
        table = replace(table, folder=str(tmp_path))
    hogwild = Training(toy_corpus, replace(COMPILED, runner=Hogwild(learners=1), table=table))
    sequential = Training(toy_corpus, COMPILED)
    assert_same(run(hogwild), run(sequential))
    assert hogwild.trainer.step_description == "training with backend compiled in 1 learners (hogwild)"
    assert hogwild.swarm and hogwild.swarm.pids == [] and list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_run_with_one_learner_resumes_within_an_epoch(toy_corpus: Path, tmp_path: Path):
    settings = replace(COMPILED, runner=Hogwild(learners=1), save_seconds=0.0)
    uninterrupted, stopped = run(Training(toy_corpus, settings)), Training(toy_corpus, settings)
    checkpointer, save = Checkpointer(tmp_path), Checkpointer(tmp_path).save

    def save_and_stop(trainer, position) -> None:
        save(trainer, position)
        if position.batch == 12:
            raise KeyboardInterrupt

    checkpointer.save = save_and_stop
    with pytest.raises(KeyboardInterrupt):
        list(stopped.run(checkpointer))
    assert stopped.swarm and stopped.swarm.pids == []
    again = resumed(toy_corpus, settings, tmp_path)
    assert (again.position.batch, again.trainer.steps) == (12, 12)
    assert_same(run(again), uninterrupted)


@pytest.mark.slow
def test_a_gradient_that_is_not_finite_is_explained(toy_corpus: Path):
    training = Training(toy_corpus, replace(COMPILED, runner=Hogwild(), dropout=0.0))
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
        "from tasks.train.runners import Hogwild\n"
        "from tests.tasks.train.training import COMPILED\n"
        "if __name__ == '__main__':\n"
        "    training = Training(Path(sys.argv[1]), replace(COMPILED, epochs=1000, runner=Hogwild()))\n"
        "    for _ in training.run():\n"
        "        print(*training.swarm.pids, flush=True)\n",
        encoding="utf-8",
    )
    command = [sys.executable, str(script), str(toy_corpus)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
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
    training = Training(toy_corpus, replace(COMPILED, epochs=1000, runner=Hogwild()))
    progress = training.run()
    next(progress)
    assert training.swarm is not None
    os.kill(training.swarm.pids[1] or 0, signal.SIGTERM)
    next(progress)  # replaced
    monkeypatch.setattr("tasks.train.runners.swarm.MAX_KILLS", 0)
    start = Swarm._start

    def killed_at_once(swarm: Swarm, place: int):
        process = start(swarm, place)
        process.kill()
        return process

    monkeypatch.setattr(Swarm, "_start", killed_at_once)
    os.kill(training.swarm.pids[0] or 0, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="without a finished round; check that memory suffices"):
        list(progress)
    assert training.swarm.pids == []
