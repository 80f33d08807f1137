"""Commands that only read run without torch, Prefect, MLflow and SciPy."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from flows.cli.commands import COMMANDS, NIGHT_COMMANDS
from flows.cli.installation import NIGHT_PACKAGES
from tests.flows.command import ROOT, guidespace
from tests.flows.light_commands import light_commands
from tests.flows.serve_process import serving

MAX_BYTES = 500_000_000
IMPORTED = {"scikit-learn": "sklearn"}  # import names that differ from names of packages
ELSEWHERE = {"serve", "forget", "backfill", "ngrams", "vector"}  # light commands that other tests run


def test_the_list_of_packages_is_that_of_the_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [re.split(r"[<>=\[]", line)[0] for line in project["optional-dependencies"]["night"]]
    assert sorted(IMPORTED.get(name, name) for name in names) == sorted(NIGHT_PACKAGES)


def test_every_command_is_light_or_names_the_extra():
    light = {command[0] for command in light_commands(Path("home"), Path("folder"))} | ELSEWHERE
    names = {function.__name__ for group in COMMANDS.values() for function in group}
    assert light | {function.__name__ for function in NIGHT_COMMANDS} == names
    assert not light & {function.__name__ for function in NIGHT_COMMANDS}


@pytest.mark.slow
def test_reading_commands_import_no_package_of_the_extra(copy_night: Callable[[Path], Path], tmp_path: Path):
    home = copy_night(tmp_path / "home")
    done = guidespace(home, tmp_path, program=("-m", "tests.flows.light_commands"))
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert set(report["codes"].values()) == {0}, (report, done.stderr)
    assert report["night"] == [2, 2] and not report["made"]
    assert "`guidespace nightly` needs the packages prefect, torch" in done.stderr
    assert "pip install 'guidespace[night]'" in done.stderr and "Traceback" not in done.stderr
    assert (tmp_path / "filled.xml").stat().st_size > 1_000_000 and (tmp_path / "tonight.html").exists()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_empty_environment_installs_and_runs_every_reading_command(
    copy_night: Callable[[Path], Path], tmp_path: Path
):
    home = copy_night(tmp_path / "home")
    checkout, environment = tmp_path / "checkout", tmp_path / "venv"
    for name in ("flows", "tasks", "storage", "deployments"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout)
    variables = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "MLFLOW"))}

    def run(*command: object) -> subprocess.CompletedProcess[str]:
        words = list(map(str, command))
        return subprocess.run(words, cwd=tmp_path, env=variables, capture_output=True, encoding="utf-8")

    python, program = environment / "bin" / "python", environment / "bin" / "guidespace"
    for command in (
        (sys.executable, "-m", "venv", environment),
        (python, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", tmp_path, checkout),
        (python, "-m", "pip", "install", "-q", "--find-links", tmp_path, "guidespace"),
    ):
        done = run(*command)
        assert done.returncode == 0, done.stderr[-3000:]
    absent = f"from importlib.util import find_spec as f; assert not any(map(f, {NIGHT_PACKAGES}))"
    assert run(python, "-c", absent).returncode == 0
    files = (path for path in environment.rglob("*") if path.is_file() and not path.is_symlink())
    size = sum(path.stat().st_size for path in files)
    print(f"the light installation has {size / 1e6:.0f} MB")
    assert size < MAX_BYTES
    for command in light_commands(home, tmp_path):
        done = run(program, *command)
        assert done.returncode == 0 and "Traceback" not in done.stderr, (command, done.stderr)
    with serving(home, tmp_path / "serve.log", program=[str(program)]) as (url, *_):
        answer = httpx.post(f"{url}/similar", json={"titles": ["Murder, She Wrote"], "k": 3}, timeout=60)
        assert len(answer.json()["answers"][0]["neighbours"]) == 3
    done = run(program, "nightly", "--home", home)
    assert done.returncode == 2 and "pip install 'guidespace[night]'" in done.stderr
