"""Pools of processes, and processes that are lost."""

import multiprocessing
import os
import signal
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import psutil
import pytest

from storage.stages import ROOT
from tasks.pool import (
    MAX_HELPER_TITLES,
    MAX_LOSSES,
    MIN_HELPER_TITLES,
    compute_pieces,
    helper_process,
    helper_submit,
    iterate_in_pool,
    worker_process,
)
from tasks.pool_settings import PoolSettings
from tests.workers import POOLS, skip_without

HOLD = """
import os, sys
from tasks.pool import open_pool

if __name__ == "__main__":
    with open_pool("processes", 1) as submit:
        print(submit(os.getpid).result(), flush=True)
        sys.stdin.read()
"""


def count_down(start):
    """Yields (number, id of the process) for each number down to 1, then returns "zero"; raises at 13."""
    if start == 13:
        raise ValueError("thirteen")
    for number in range(start, 0, -1):
        yield number, os.getpid()
    return "zero"


def test_the_helper_process_computes_for_a_range_of_title_counts():
    with helper_process():
        own = helper_submit(MIN_HELPER_TITLES + 1)(os.getpid).result()
        assert own == helper_submit(MIN_HELPER_TITLES + 1)(os.getpid).result() != os.getpid()
        assert {
            helper_submit(titles)(os.getpid).result() for titles in (MIN_HELPER_TITLES, MAX_HELPER_TITLES + 1)
        } == {os.getpid()}
        assert helper_submit(MIN_HELPER_TITLES + 1)(os.getenv, "OPENBLAS_NUM_THREADS").result() == "1"
    assert not psutil.pid_exists(own)
    assert helper_submit(MIN_HELPER_TITLES + 1)(os.getpid).result() == os.getpid()


@pytest.mark.parametrize("titles", [1, MIN_HELPER_TITLES + 1])
def test_generators_behave_equally_in_the_helper_process(titles):
    with helper_process():
        submit = helper_submit(titles)
        first, second = iterate_in_pool(submit, count_down, 2), iterate_in_pool(submit, count_down, 1)
        (number, process), (other, same) = next(first), next(second)
        assert (number, other) == (2, 1)
        assert process == same
        assert (process == os.getpid()) == (titles == 1)
        assert next(first)[0] == 1
        with pytest.raises(StopIteration) as ended:
            next(first)
        assert ended.value.value == "zero"
        with pytest.raises(ValueError, match="thirteen"):
            next(iterate_in_pool(submit, count_down, 13))


@pytest.mark.slow
def test_a_worker_ends_with_a_parent_that_was_killed(tmp_path):
    script = tmp_path / "hold.py"
    script.write_text(HOLD, encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": str(ROOT)},
        encoding="utf-8",
    ) as parent:
        assert parent.stdout is not None
        worker = psutil.Process(int(parent.stdout.readline()))
        parent.send_signal(signal.SIGKILL)
        assert parent.wait() == -signal.SIGKILL
    _, alive = psutil.wait_procs([worker], timeout=60)
    assert not alive, "the worker outlived its parent"


def print_or_fail(fails):
    with worker_process():
        print("printed")
        if fails:
            raise ValueError("thirteen")


@pytest.mark.parametrize("fails", [False, True])
def test_output_and_errors_of_a_worker_are_printed(fails, capfd):
    process = multiprocessing.get_context("spawn").Process(target=print_or_fail, args=[fails])
    process.start()
    process.join(60)
    shown = capfd.readouterr()
    assert process.exitcode == int(fails) and shown.out == "printed\n"
    assert ("ValueError: thirteen" in shown.err) == fails


def square(number: int, folder: Path, lost: int = 0) -> int:
    """Returns the square of a number; in the first ``lost`` calls with 3, the process kills itself."""
    calls = folder / str(number)
    with calls.open("a") as file:
        file.write("called\n")
    if number == 3 and len(calls.read_text().splitlines()) <= lost:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


@pytest.mark.parametrize(
    "pool", [pytest.param(pool, marks=[pytest.mark.slow] * (pool != "processes")) for pool in POOLS]
)
def test_the_piece_of_a_lost_worker_is_computed_again(tmp_path: Path, pool):
    skip_without(pool)
    pieces = [(number, tmp_path, 1) for number in range(7)]
    results = list(compute_pieces(PoolSettings(pool=pool), 2, square, pieces))
    assert sorted(results) == [(number, number * number) for number in range(7)]
    assert len((tmp_path / "3").read_text().splitlines()) == 2


def test_pieces_of_this_process_are_computed_one_by_one(tmp_path: Path):
    results = compute_pieces(PoolSettings(), 0, square, [(number, tmp_path) for number in range(3)])
    assert next(results) == (0, 0) and not (tmp_path / "1").exists()
    assert list(results) == [(1, 1), (2, 4)]


@pytest.mark.slow
def test_a_piece_that_loses_every_worker_is_an_error(tmp_path: Path):
    with pytest.raises(BrokenProcessPool):
        list(compute_pieces(PoolSettings(), 1, square, [(3, tmp_path, 99)]))
    assert len((tmp_path / "3").read_text().splitlines()) == MAX_LOSSES
