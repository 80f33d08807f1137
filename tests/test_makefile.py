"""The Makefile in an empty checkout: installed packages and supported versions of Python."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from storage.stages import ROOT

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")

# What make passes to the makes that it starts.
MAKE_VARIABLES = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def make(checkout: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs make with ``environment`` added to this process's, and as a top-level make even under `make test`:
    a make that inherits MAKELEVEL also prints the folders that it enters and leaves."""
    inherited = {name: value for name, value in os.environ.items() if name not in MAKE_VARIABLES}
    return subprocess.run(
        ["make", *arguments],
        cwd=checkout,
        env={**inherited, **environment},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )


@pytest.mark.parametrize(
    ("target", "developers"),
    [("run", False), ("test", True), ("check", True), ("slow", True), ("bench", True)],
)
def test_only_developers_get_what_developers_need(checkout: Path, target: str, developers: bool) -> None:
    planned = make(checkout, "-n", target).stdout
    assert "pip install -q -e '.[night]'\n" in planned
    assert ("'.[dev]'" in planned) is developers


def test_the_environment_is_ready_only_after_a_trial_run_without_servers_of_the_user(checkout: Path) -> None:
    """Its machine code and databases spare the first run of the user 13 of 30 CPU seconds."""
    trial = make(checkout, "-n", ".venv/.ready").stdout.partition("pip install -q -e '.[night]'\n")[2]
    guidespace = checkout / ".venv" / "bin" / "guidespace"
    guidespace.parent.mkdir(parents=True)
    guidespace.touch(mode=0o755)
    servers = {"MLFLOW_TRACKING_URI": "http://mlflow.test", "PREFECT_API_URL": "http://prefect.test/api"}
    for last, failed in (("exit 3", True), ('test -z "$MLFLOW_TRACKING_URI$PREFECT_API_URL"', False)):
        guidespace.write_text(f"#!/bin/sh\necho $*; {last}\n", encoding="utf-8")
        command = ["sh", "-ec", trial]
        done = subprocess.run(
            command, cwd=checkout, env={**os.environ, **servers}, capture_output=True, encoding="utf-8"
        )
        assert (done.returncode != 0) is failed and ("nightly --feed sample/guide" in done.stdout) is failed
        assert (checkout / ".venv" / ".ready").exists() is not failed


@pytest.mark.parametrize(
    ("version", "refused"), [((3, 10), True), ((3, 11), False), ((3, 13), False), ((3, 14), True)]
)
def test_a_python_without_wheels_is_refused_before_pip_runs(
    checkout: Path, version: tuple[int, int], refused: bool
) -> None:
    stand_in = checkout / "python"
    text = ".".join(map(str, version))
    stand_in.write_text(
        f"""#!/bin/sh
case "$1" in
  --version) echo "Python {text}.0";;
  -c) exec {sys.executable} -c "import sys; sys.version_info = ({version[0]}, {version[1]}, 0)
$2";;
  *) echo "asked: $*"; exit 3;;
esac
""",
        encoding="utf-8",
    )
    stand_in.chmod(0o755)
    done = make(checkout, ".venv/.ready", f"PYTHON={stand_in}")
    assert done.returncode == 2
    assert (
        "GuideSpace needs Python 3.11, 3.12 or 3.13" in done.stdout and f"Python {text}.0" in done.stdout
    ) is refused
    assert ("asked: -m venv .venv" in done.stdout) is not refused


@pytest.mark.parametrize("python", ["missing", "shim"])
def test_an_unusable_python_gives_one_line(checkout: Path, python: str) -> None:
    """As on a fresh clone, where .venv is missing; pyenv has a shim for each Python of any version."""
    shim = checkout / "shim"
    shim.write_text('#!/bin/sh\necho "pyenv: shim: command not found" >&2\nexit 127\n', encoding="utf-8")
    shim.chmod(0o755)
    path = f"{checkout}:{os.environ['PATH']}"
    done = make(checkout, ".venv/.ready", f"PYTHON={python}", PATH=path)
    (line,) = done.stdout.splitlines()
    assert line.startswith(f"GuideSpace needs Python 3.11, 3.12 or 3.13; {python} is not usable. Set PYTHON=")
    (error,) = done.stderr.splitlines()
    assert error.startswith("make: ***") and done.returncode == 2


@pytest.mark.parametrize("venv", [None, "broken link", "usable"])
def test_a_missing_or_broken_environment_is_made_without_a_message(checkout: Path, venv: str | None) -> None:
    if venv:
        (checkout / ".venv" / "bin").mkdir(parents=True)
        (checkout / ".venv" / "bin" / "python").symlink_to(sys.executable if venv == "usable" else "/nowhere")
        (checkout / ".venv" / ".ready").touch()
    done = make(checkout, "-n", "run")
    assert done.stderr == "" and ("rm -rf .venv" in done.stdout) is (venv != "usable")
