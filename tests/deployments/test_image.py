"""compose.yaml and the Dockerfile without a Docker engine: the specification's schema, hadolint, our own
rules, and (soak) the pip lines of the CPU target in a virtual environment."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import torch
import yaml

from flows.defaults import WORK_POOL
from storage.stages import ROOT

BYTES_OF_BASE = 0.2e9  # python:3.11-slim-bookworm and the checkout, rounded up
BYTES_OF_IMAGE = 2.5e9


@pytest.fixture
def compose() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))


def stages() -> dict[str, list[tuple[str, str]]]:
    """Returns the instructions of each stage of the Dockerfile; the first of each stage is FROM."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "Dockerfile").read_text("utf-8"), flags=re.MULTILINE)
    found: dict[str, list[tuple[str, str]]] = {}
    name = ""
    for line in filter(None, re.sub(r"\\\n\s*", "", text).splitlines()):
        instruction, _, arguments = line.partition(" ")
        if instruction == "FROM":
            name = arguments.rpartition(" AS ")[2]
        found.setdefault(name, []).append((instruction, arguments))
    return found


def test_compose_follows_the_specification(compose: dict[str, Any]) -> None:
    found = importlib.util.find_spec("check_jsonschema")
    if found is None or not found.submodule_search_locations:
        pytest.skip("check-jsonschema, which carries the schema, is not installed")
    (folder,) = found.submodule_search_locations
    schema = json.loads(Path(folder, "builtin_schemas", "vendor", "compose-spec.json").read_text("utf-8"))
    jsonschema.validate(compose, schema)


def test_hadolint_finds_nothing() -> None:
    own = Path(sys.executable).with_name("hadolint")
    program = str(own) if own.exists() else shutil.which("hadolint")
    if program is None:
        pytest.skip("hadolint is not installed")
    done = subprocess.run(
        [program, "--no-color", ROOT / "Dockerfile"], capture_output=True, encoding="utf-8", timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_services_are_pinned_healthy_and_on_loopback(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert re.fullmatch(r"guidespace:(cpu|gpu|light)|[\w/]+:\d+\.\d[\w.-]*", service["image"]), name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), name
        assert ("healthcheck" in service) is (name != "deployments"), name
        assert {each.partition(":")[0] for each in service.get("volumes", ())} <= set(compose["volumes"])
        for needed, about in service.get("depends_on", {}).items():
            ends = needed == "deployments"
            assert about["condition"] == f"service_{'completed_successfully' if ends else 'healthy'}"
    for (_, base), *_ in stages().values():
        assert base.split(" ")[0] in ("base", "python:3.11-slim-bookworm")


def test_every_secret_comes_from_the_environment(compose: dict[str, Any]) -> None:
    text = (ROOT / "compose.yaml").read_text("utf-8")
    named = set(re.findall(r"\$\{(\w+)", text))
    example = dict(
        line.split("=", 1)
        for line in (ROOT / ".env.example").read_text(encoding="utf-8").splitlines()
        if "=" in line[:30]
    )
    secrets = {name: value for name, value in example.items() if "PORT" not in name and name != "TZ"}
    assert named == set(example) and not any(secrets.values())
    secret = re.compile("PASSWORD|SECRET|ACCESS_KEY|AUTH_STRING|_URI$|CONNECTION_URL")
    for service in compose["services"].values():
        for name, value in service.get("environment", {}).items():
            if secret.search(name) and not re.match(r"(http|s3)://", value):
                assert re.search(r"\$\{\w+(:\?.*?)?\}", value), name
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert ".env" in ignored
    assert not any(
        "!.env" in line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    )


def test_the_worker_polls_the_pool_that_is_made(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert services["deployments"]["command"].startswith("python -m deployments.site /data/home")
    command = services["worker"]["command"]
    assert command[command.index("--pool") + 1] == WORK_POOL
    assert {services[name]["build"]["target"] for name in ("worker", "worker-gpu")} <= set(stages())


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_the_cpu_image_is_under_its_limit_and_runs(tmp_path: Path) -> None:
    index = os.environ.get("TORCH_INDEX_URL")
    if not index and torch.version.cuda:
        pytest.skip("TORCH_INDEX_URL names no index with the CPU build of torch")
    checkout, environment = tmp_path / "checkout", tmp_path / "venv"
    checkout.mkdir()
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        source = ROOT / line.removeprefix("!")
        if line.startswith("!"):
            copy = shutil.copytree if source.is_dir() else shutil.copy
            copy(source, checkout / source.name)
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    variables = os.environ | {
        "PATH": f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "TORCH_INDEX_URL": index or tmp_path.as_uri(),  # pip's own settings name where the CPU build is
    }
    variables.pop("PYTHONPATH", None)
    lines = [arguments for instruction, arguments in stages()["cpu"] if instruction == "RUN"]
    assert len(lines) == 2 and all(line.startswith("python -m pip install ") for line in lines)
    smoke = "guidespace nightly --feed sample/guide.xml.gz --preset smoke --home ../home"
    for line in [*lines, "python -c 'import psycopg2, asyncpg, boto3, flask_wtf'", smoke]:
        done = subprocess.run(
            ["sh", "-c", line], cwd=checkout, env=variables, capture_output=True, encoding="utf-8"
        )
        assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    files = (path for path in environment.rglob("*") if path.is_file() and not path.is_symlink())
    size = sum(path.stat().st_size for path in files)
    print(f"the environment of the CPU image is {size / 1e9:.2f} GB")
    assert size + BYTES_OF_BASE < BYTES_OF_IMAGE
