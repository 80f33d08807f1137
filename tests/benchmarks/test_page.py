"""The page of figures: sections are written as they finish, and say what they were measured of."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import POLICY_IS_OURS
from benchmarks.__main__ import BEGIN, END, MODULES, about, measure_all
from benchmarks.claims import Claim
from benchmarks.processes import call_apart, measure_apart  # noqa: F401  (the first by the process of a test)
from storage.stages import ROOT

PAGE = f"# Benchmarks\n\n{BEGIN}\n\n### bag\n\nold bag\n\n### text\n\nold text\n\n{END}\n\nBelow.\n"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    file = tmp_path / "README.md"
    file.write_text(PAGE, encoding="utf-8")
    return file


def claims(name: str) -> list[Claim]:
    return [Claim(f"{name}, seconds", 1.5, better=None)]


def test_a_benchmark_that_fails_is_named_and_the_others_go_on(page: Path, capsys: pytest.CaptureFixture[str]):
    def measure(name: str) -> list[Claim]:
        if name == "bag":
            raise subprocess.CalledProcessError(1, ["python", "-m", "benchmarks.training.bag"])
        return claims(name)

    assert measure_all(["bag", "clusters", "text"], measure, page) == ["bag"]
    text = page.read_text(encoding="utf-8")
    assert "old bag" in text and "old text" not in text  # a section that could not be measured again stays
    assert [line for line in text.splitlines() if line.startswith("### ")] == [
        "### bag",
        "### clusters",
        "### text",
    ]
    assert "| clusters, seconds | 1.5 |" in text and about("clusters") in text
    assert text.startswith("# Benchmarks\n") and text.endswith(f"{END}\n\nBelow.\n")
    assert "benchmarks.training.bag" in capsys.readouterr().err


def test_every_section_says_when_where_and_of_which_commit(page: Path):
    measure_all(["text"], claims, page)
    (line,) = (line for line in page.read_text(encoding="utf-8").splitlines() if "commit" in line)
    head = subprocess.run(
        ["git", "describe", "--always"], cwd=ROOT, capture_output=True, encoding="utf-8", check=True
    ).stdout.strip()
    assert f"commit {head}" in line and "cores" in line and "load average" in line and " min, " in line


def test_what_was_finished_before_an_interruption_is_written(page: Path):
    def measure(name: str) -> list[Claim]:
        if name == "text":
            raise KeyboardInterrupt
        return claims(name)

    with pytest.raises(KeyboardInterrupt):
        measure_all(["bag", "text"], measure, page)
    assert "| bag, seconds | 1.5 |" in page.read_text(encoding="utf-8") and "old text" in page.read_text(
        encoding="utf-8"
    )


def test_heavy_sizes_have_sections_of_their_own(page: Path):
    measure_all(["text"], claims, page, ", full sizes")
    assert "old text" in page.read_text(encoding="utf-8") and "### text, full sizes" in page.read_text(
        encoding="utf-8"
    )


def test_every_benchmark_is_listed():
    sources = {file: file.read_text(encoding="utf-8") for file in (ROOT / "benchmarks").rglob("*.py")}
    commands = {file.stem for file, source in sources.items() if "    sys.exit(run(" in source}
    assert commands == set(MODULES) - {"quality"} and all(map(about, MODULES))


def test_names_that_are_none_are_refused():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--only", "nothing"],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 2 and "invalid choice: 'nothing'" in done.stderr
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--only", "million"],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 2 and "add --full" in done.stderr


def seen() -> dict[str, str]:
    print("a rival that talks")
    return {name: os.environ[name] for name in ("OMP_WAIT_POLICY", "OMP_NUM_THREADS") if name in os.environ}


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
