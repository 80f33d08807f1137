"""Measured sections are recorded as they finish, with commit, machine and date."""

import datetime
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import POLICY_IS_OURS, figures
from benchmarks.__main__ import FULL, ONLY_FULL, expected_minutes, main, measure_all, measured_at
from benchmarks.claims import Claim, commit
from benchmarks.history import Measurement, read_history
from benchmarks.page import BEGIN, END, MODULES, SUFFIX, about, outdated, render
from benchmarks.processes import call_apart, measure_apart, repeat_apart  # noqa: F401  (the first: in a process)
from storage.stages import ROOT
from tests.servers import wait_for

PAGE = f"# Benchmarks\n\n{BEGIN}\n\nold\n\n{END}\n\nBelow.\n"


def claims(name: str) -> list[Claim]:
    return [Claim(f"{name}, seconds", 1.5, aim=2, better="less", interval=(1.4, 1.6))]


def measurement(section: str, *values: float, date: str = "2026-01-01 00:00 UTC") -> Measurement:
    rows = tuple(Claim(f"row {place}", value, aim=1) for place, value in enumerate(values))
    facts = {"date": date, "commit": commit().removesuffix("-dirty"), "machine": "2 cores"}
    return Measurement(section=section, **facts, minutes=3.0, load=1.0, claims=rows)


def test_a_benchmark_that_fails_is_named_and_the_others_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    def measure(name: str) -> list[Claim]:
        if name == "bag":
            raise subprocess.CalledProcessError(1, ["python", "-m", "benchmarks.training.bag"])
        return claims(name)

    history = tmp_path / "history.jsonl"
    assert measure_all(["bag", "clusters", "text"], measure, history) == (["bag"], [])
    assert [each.section for each in read_history(history)] == ["clusters", "text"]
    assert "benchmarks.training.bag" in capsys.readouterr().err


def test_a_measurement_has_its_commit_machine_date_and_exact_claims(tmp_path: Path):
    history = tmp_path / "history.jsonl"
    measure_all(["text"], claims, history, SUFFIX)
    (one,) = read_history(history)
    assert one.section == "text, full sizes" and one.commit == commit() and "cores" in one.machine
    assert one.claims == tuple(claims("text")) and one.minutes is not None and one.load is not None
    measured = datetime.datetime.strptime(one.date, "%Y-%m-%d %H:%M UTC")
    assert abs(measured - datetime.datetime.now(datetime.UTC).replace(tzinfo=None)).total_seconds() < 120


def test_benchmarks_finished_before_an_interruption_are_not_repeated(tmp_path: Path):
    def measure(name: str) -> list[Claim]:
        if name == "text":
            raise KeyboardInterrupt
        return claims(name)

    history = tmp_path / "history.jsonl"
    with pytest.raises(KeyboardInterrupt):
        measure_all(["bag", "text"], measure, history)
    assert measured_at(commit(), read_history(history)) == {"bag"}


def test_benchmarks_beyond_the_limit_are_left_out_those_of_figures_and_short_ones_first():
    history = [
        replace(measurement("training", 1.0), minutes=4.0),
        replace(measurement("bag", 1.0), minutes=0.0),
    ]
    expected = expected_minutes(["text", "bag", "training"], "", history)
    assert [*expected] == ["training", "bag", "text"]  # training is in figures, text has not been measured
    assert measure_all(expected, claims, None, minutes=4.5, expected=expected) == ([], ["text"])


def test_the_page_is_generated_from_the_newest_measurements():
    older, newer = measurement("text", 0.5), measurement("text", 2.0, 1.0, date="2026-01-02 00:00 UTC")
    text = render(PAGE, [older, newer, measurement("removed benchmark", 1.0)])
    assert text.startswith("# Benchmarks\n") and text.endswith(f"{END}\n\nBelow.\n")
    assert "| row 0 | 2 | – | – | – | ≥ 1 | yes (1 of 2 runs) |" in text  # missed in the other run
    assert "| row 1 | 1 | – | – | – | ≥ 1 | yes |" in text
    assert f"2026-01-02 00:00 UTC, commit {newer.commit}, 2 cores; 3.0 min, load average 1.0" in text
    assert "removed benchmark" not in text and "old" not in text.split() and ">`bag`: " in text
    assert render(text, [older, newer]) == text


def test_changes_of_a_benchmark_since_its_measurement_are_found():
    first = subprocess.run(
        ["git", "log", "-2", "--format=%h", "--", "benchmarks/training/loader.py"],
        cwd=ROOT, capture_output=True, encoding="utf-8", check=True,
    ).stdout.split()  # fmt: skip
    if len(first) < 2:
        pytest.skip("the clone is shallow")
    changed, unchanged = replace(measurement("loader", 1.0), commit=first[1]), measurement("bag", 1.0)
    assert "loader" in outdated([changed]) and outdated([replace(changed, section="loader, full sizes")])
    if not commit().endswith("-dirty"):
        assert outdated([unchanged]) == {}


def test_figures_show_the_newest_value_and_plot_all(tmp_path: Path):
    shown = figures.FIGURES[1]
    older, newer = (
        replace(measurement(shown.section, value, date=date), claims=(Claim(shown.claim, value),))
        for value, date in ((40.0, "2026-01-01 00:00 UTC"), (30.0, "2026-01-02 00:00 UTC"))
    )
    figures.update([older, newer], page := tmp_path / "figures.md", plot := tmp_path / "figures.svg")
    text = page.read_text(encoding="utf-8")
    assert f"| {shown.label} | 30 s | – | – | – |" in text and f"2026-01-02, `{newer.commit}`" in text
    assert text.count("not measured yet") == 9
    assert "30 s, 2 measurements" in plot.read_text(encoding="utf-8")


def test_every_benchmark_is_listed():
    sources = {file: file.read_text(encoding="utf-8") for file in (ROOT / "benchmarks").rglob("*.py")}
    commands = {file.stem for file, source in sources.items() if "    sys.exit(run(" in source}
    assert commands == set(MODULES) - {"quality"} and all(map(about, MODULES))
    assert ONLY_FULL < FULL < set(MODULES) and {figure.section for figure in figures.FIGURES} <= set(MODULES)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--only", "nothing"], "invalid choice: 'nothing'"), (["--only", "million"], "add --full")],
)
def test_unknown_benchmark_names_are_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert message in capsys.readouterr().err


def test_changed_files_are_not_measured(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--only", "blind"])
    monkeypatch.setattr("benchmarks.__main__.commit", lambda: "abc-dirty")
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "commit your changes" in capsys.readouterr().err


SLEEPER = """
import os, pathlib, time
pathlib.Path(os.environ["STARTED"]).write_text(str(os.getpid()))
time.sleep(60)
"""
QUICK = """
import sys
from benchmarks import __main__ as command
command.MODULES["bag"] = "sleeper"
sys.argv = ["benchmarks", "--quick", "--only", "bag"]
command.main()
"""


def test_a_terminated_command_ends_the_processes_of_its_benchmark(tmp_path: Path):
    (tmp_path / "sleeper.py").write_text(SLEEPER, encoding="utf-8")
    started = tmp_path / "started"
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "STARTED": str(started)}
    with subprocess.Popen([sys.executable, "-c", QUICK], cwd=ROOT, env=environment) as process:
        wait_for(lambda: started.exists() and started.read_text(encoding="utf-8"), 60, lambda: "not started")
        process.terminate()
    assert process.returncode == 128 + signal.SIGTERM
    child = Path("/proc") / started.read_text(encoding="utf-8")
    wait_for(lambda: not child.exists(), 20, lambda: f"{child} has not ended")


def seen() -> dict[str, str]:
    print("a rival that talks")
    return {name: os.environ[name] for name in ("OMP_WAIT_POLICY", "OMP_NUM_THREADS") if name in os.environ}


@pytest.mark.slow
@pytest.mark.parametrize("policy", [None, "active"])
def test_a_rivals_process_has_the_users_environment(policy: str | None):
    """A process as the command has it: the user's policy, else ours; a rival's has the user's alone."""
    environment = {
        name: value for name, value in os.environ.items() if name not in ("OMP_WAIT_POLICY", POLICY_IS_OURS)
    } | ({"OMP_WAIT_POLICY": policy} if policy else {})
    code = (
        "from tests.benchmarks.test_page import *\nif __name__ == '__main__': "
        "print([call_apart(seen, rival=rival, threads=2) for rival in (False, True)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    own = {"OMP_WAIT_POLICY": policy or "passive", "OMP_NUM_THREADS": "2"}
    rivals = {"OMP_WAIT_POLICY": policy, "OMP_NUM_THREADS": "2"} if policy else {"OMP_NUM_THREADS": "2"}
    assert done.stdout.strip() == str([own, rivals]), done.stderr


def busy() -> object:
    return lambda: sum(range(3_000_000))


def test_cpu_and_wall_seconds_are_measured():
    measured = measure_apart(busy)
    assert measured.result == sum(range(3_000_000)) and measured.cpu > 0 and measured.wall > 0


def test_repeated_calls_follow_one_that_is_not_measured(tmp_path: Path):
    seconds = repeat_apart(write_line, tmp_path / "lines", repeats=2, one_core=True)
    assert len(seconds) == 2 and (tmp_path / "lines").read_text(encoding="utf-8") == "1\n" * 3


def write_line(file: Path) -> object:
    def call() -> None:
        with file.open("a", encoding="utf-8") as lines:
            lines.write(f"{len(os.sched_getaffinity(0))}\n")

    return call
