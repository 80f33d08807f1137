"""ESGD on the toy world: the best fitness never falls, a killed run ends in the same bits."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from storage.stages import ROOT
from tasks.pool import open_pool
from tasks.train.loop import Training
from tasks.train.step import Trainer
from tasks.train.tuning.esgd import ESGD, last_members
from tasks.train.tuning.members import Member, TrainingJob, restore_member, score_members, train_members
from tasks.train.tuning.settings import TuningSettings
from tasks.train.tuning.space import Space, read_rounds
from tests.worlds import TRAINING

SMALL = ESGD(population=4, offspring=4, elite=2, sigma=0.02)
SETTINGS = replace(TRAINING, epochs=4, workers=0)
POOL = TuningSettings(optimizers=("sgd", "adam", "rowwise_adagrad"), budget=4, share=0.2, workers=2)


def space_of(corpus: Path, **changes) -> Space:
    return replace(POOL, **changes).space(corpus, SETTINGS, 8)


def searched(space: Space, folder: Path, search: ESGD = SMALL) -> list:
    with open_pool("processes", 0) as submit:
        return list(search.search(space, folder, submit))


@pytest.fixture(scope="module")
def whole(toy_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a search that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    progress = searched(space_of(toy_corpus), folder)
    assert [each.step for each in progress] == [1, 2, 3, 4] and progress[0].total == 4
    return folder


def test_the_best_fitness_never_falls_between_generations(toy_corpus: Path, whole: Path) -> None:
    rounds = read_rounds(whole)
    best = [found.winners[0][1] for found in rounds]
    assert len(best) == 4 and best == sorted(best) and best[-1] > 0.3
    for before, after in pairwise(rounds):
        members = last_members([before], 4)
        for member, trial in zip(members, after.trials, strict=True):
            assert trial.kept == (trial.score >= member.score)
    assert all(found.winners[0][1] >= max(trial.score for trial in found.trials) for found in rounds)


def test_a_members_score_is_that_of_its_state(toy_corpus: Path, whole: Path) -> None:
    members, space = last_members(read_rounds(whole), 4), space_of(toy_corpus)
    scores = score_members(space.corpus, whole, space.candidates[0].settings, members)
    assert scores == [member.score for member in members]
    files = {file for member in members for file in member.files}
    assert {file.name for file in whole.glob("*.safetensors")} == files  # and no other is left


def test_members_with_diverging_optimizers_are_restored(toy_corpus: Path, tmp_path: Path) -> None:
    space = space_of(toy_corpus, rates=(1e36, 1e37), optimizers=("sgd",), budget=2)
    searched(space, tmp_path)
    start = Training(toy_corpus, replace(SETTINGS, dim=8)).table.rows
    for found in read_rounds(tmp_path):
        assert all(trial.score == 0 for trial in found.trials)
    one, *_ = last_members(read_rounds(tmp_path)[:1], 4)
    kept = [
        load_file(tmp_path / file)
        for member in last_members(read_rounds(tmp_path), 4)
        for file in member.files
    ]
    assert one.score >= 0 and all(torch.isfinite(state["rows"]).all() for state in kept)
    assert all(abs(state["rows"] - start).max() < 1 for state in kept)  # the start and some noise


def test_an_offspring_is_the_mean_of_its_parents_plus_noise(toy_corpus: Path, tmp_path: Path) -> None:
    learner = Training(toy_corpus, SETTINGS).trainer
    parts = {name: torch.cat(list(part.pieces())) for name, part in learner.sections().items()}
    for file, value in (("a", 1.0), ("b", 3.0)):
        state = {name: torch.full_like(part, value) for name, part in parts.items() if ".state" not in name}
        save_file({**state, "touched": torch.arange(len(parts["touched"])) == value}, tmp_path / file)
    fresh = learner.table.sections()
    restore_member(learner, tmp_path, Member(("a", "b")))
    assert (learner.table.rows == 2).all()
    assert learner.touched.nonzero().flatten().tolist() == [1, 3]
    restore_member(learner, tmp_path, Member(("a", "b"), sigma=0.1, seed=5))
    noise = learner.table.rows - 2
    assert abs(noise.std() - 0.1) < 0.01 and abs(noise.mean()) < 0.02 and fresh
    again = Training(toy_corpus, SETTINGS).trainer
    restore_member(again, tmp_path, Member(("a", "b"), sigma=0.1, seed=5))
    assert torch.equal(again.table.rows, learner.table.rows)


def test_the_optimizer_state_is_reset(toy_corpus: Path, tmp_path: Path) -> None:
    settings = space_of(toy_corpus).candidates[1].settings
    ((score, steps),) = train_members(toy_corpus, tmp_path, [TrainingJob(Member(), settings, 0, 1, "a")])
    assert score > 0 and steps > 0 and not any("state" in name for name in load_file(tmp_path / "a"))
    learner = Training(toy_corpus, settings).trainer
    restore_member(learner, tmp_path, Member(("a",)))
    assert all(not part.any() for name, part in learner.dense.tensors().items() if ".state." in name)


def test_the_schedule_runs_over_all_generations(
    toy_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    factors: list[float] = []
    step = Trainer.step
    monkeypatch.setattr(Trainer, "step", lambda self, *given: factors.append(given[1]) or step(self, *given))
    searched(space_of(toy_corpus, budget=1), tmp_path, ESGD(population=1, offspring=0, parents=1, elite=1))
    count = len(factors) // 4
    assert factors == pytest.approx([SETTINGS.schedule.factor(step / count / 4) for step in range(4 * count)])


def test_the_number_of_pieces_changes_no_bit(toy_corpus: Path, whole: Path, tmp_path: Path) -> None:
    searched(space_of(toy_corpus, workers=3), tmp_path)
    assert same_end(whole, tmp_path)


def test_another_searchs_folder_is_refused(toy_corpus: Path, whole: Path) -> None:
    with pytest.raises(
        ValueError, match=r"belongs to another search \(different trainings\)\. Choose another folder"
    ):
        searched(space_of(toy_corpus, budget=9), whole)
    with pytest.raises(ValueError, match=r"elite is 9; it must not exceed population, which is 8"):
        ESGD(elite=9)


def test_the_best_member_becomes_a_checkpoint(toy_corpus: Path, whole: Path, tmp_path: Path) -> None:
    space, best = space_of(toy_corpus), last_members(read_rounds(whole), 4)[0]
    SMALL.write_best(space, whole, tmp_path / "checkpoint.safetensors")
    learner = Training(toy_corpus, space.candidates[0].settings).trainer
    restore_member(learner, whole, best)
    assert torch.equal(load_file(tmp_path / "checkpoint.safetensors")["rows"], learner.table.rows)


def same_end(first: Path, second: Path) -> bool:
    ours, theirs = ([replace(found, seconds=0.0) for found in read_rounds(each)] for each in (first, second))
    files = sorted(file.name for file in first.glob("*.safetensors"))
    return (
        ours == theirs
        and files == sorted(file.name for file in second.glob("*.safetensors"))
        and all((first / file).read_bytes() == (second / file).read_bytes() for file in files)
    )


KILLED = """
import os, signal, sys
from pathlib import Path
from tasks.pool import open_pool
from tests.tasks.train.tuning.test_esgd import SMALL, space_of

left = [int(sys.argv[3])]

def submit(function, *given):
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return work(function, *given)

with open_pool("processes", 0) as work:
    for progress in SMALL.search(space_of(Path(sys.argv[1])), Path(sys.argv[2]), submit):
        print(progress.step, flush=True)
"""


@pytest.mark.slow
def test_a_killed_run_continues_after_its_last_generation(
    toy_corpus: Path, whole: Path, tmp_path: Path
) -> None:
    def run(kill_at: int) -> tuple[int, list[int]]:
        command = [sys.executable, "-c", KILLED, str(toy_corpus), str(tmp_path), str(kill_at)]
        path = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            command, cwd=ROOT, env=path, capture_output=True, encoding="utf-8", timeout=120, check=False
        )
        return done.returncode, [int(line) for line in done.stdout.split()]

    # four pieces a generation: killed in the evolution of the second, then in the training of the third
    assert run(7) == (-signal.SIGKILL, [1])
    assert len(json.loads((tmp_path / "journal.json").read_text(encoding="utf-8"))["rounds"]) == 1
    assert run(6) == (-signal.SIGKILL, [2])
    assert run(-1) == (0, [3, 4])
    assert same_end(whole, tmp_path)
