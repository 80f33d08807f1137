"""Time that Prefect and MLflow add to a nightly run of four English guides, with running servers.

MLflow's server has one worker, as in ``guidespace up``: with several workers, without TCP_NODELAY, answers
take 40 ms longer. The flow is compared with the same stages called as plain functions in the same threads and
processes (plain_run.py). Each runs in a separate process with a new home. Wall seconds and processor time are
compared with the same plain run, from which the parts that use MLflow (its start, register, promote and
report) are subtracted. Processor time includes that of both servers during the run. Pairs alternate, after a
pair that is not measured; figures are medians of three pairs, with the smallest and the largest as bounds.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import psutil

from benchmarks.claims import SAMPLE, Claim, guides, run
from benchmarks.nights.serve import free_port

PAIRS = 3
TRACKED = ("MLflow start", "register", "promote", "report")


def measure_orchestration(quick: bool) -> Sequence[Claim]:
    """Measures all claims of this file."""
    feeds = list(map(str, [SAMPLE] if quick else guides("UK1", "US1", "AU1", "ZA1")))
    pairs: list[tuple[float, ...]] = []
    with tempfile.TemporaryDirectory() as folder, _servers(Path(folder)) as (servers, environment):
        for number in range(1 if quick else PAIRS + 1):
            bare = ["benchmarks.nights.plain_run", f"{folder}/bare-{number}", *feeds]
            plain_seconds, plain_cpu, output = _timed(bare, dict(os.environ))
            parts = json.loads(output.splitlines()[-1])
            untracked = plain_seconds - sum(parts[name] for name in TRACKED)
            untracked_cpu = plain_cpu - sum(parts[f"{name}, CPU"] for name in TRACKED)
            before = _cpu_of(servers)
            nightly = ["flows", "nightly", "--home", f"{folder}/home-{number}", "--feed", *feeds]
            seconds, cpu, _ = _timed(nightly, environment)
            cpu += _cpu_of(servers) - before
            pairs.append((seconds, untracked, cpu, untracked_cpu, 100 * (1 - untracked / seconds)))
    columns = [*zip(*pairs[-PAIRS:], strict=True)]
    seconds, untracked, cpu, untracked_cpu, share = map(statistics.median, columns)
    bounds = [(min(column), max(column)) for column in columns]
    plain = "plain functions"
    return [
        Claim(
            "a night with both servers, seconds", seconds, plain, untracked, aim=1.05, better="less",
            interval=bounds[0], rival_interval=bounds[1],
        ),
        Claim(
            "its processor time with that of the servers, s", cpu, plain, untracked_cpu, aim=1.1,
            better="less", interval=bounds[2], rival_interval=bounds[3],
        ),
        Claim("Prefect and MLflow, % of the seconds", share, better=None, interval=bounds[4]),
    ]  # fmt: skip


def _cpu_of(servers: Sequence[psutil.Process]) -> float:
    """Returns the CPU seconds of servers and of all their processes so far."""
    total = 0.0
    for server in servers:
        for process in (server, *server.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                total += sum(process.cpu_times()[:2])
    return total


def _timed(arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[float, float, str]:
    """Runs ``python -m ARGUMENTS``; returns wall seconds, CPU seconds and the output."""
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, encoding="utf-8")
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, done.stdout


@contextmanager
def _servers(folder: Path) -> Iterator[tuple[list[psutil.Process], dict[str, str]]]:
    """Starts Prefect's and MLflow's servers on loopback; yields them and the environment of a run."""
    prefect, mlflow = (f"{free_port()}" for _ in range(2))
    prefect_settings = {"PREFECT_HOME": str(folder / "prefect"), "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
    environment = os.environ | prefect_settings | {"DO_NOT_TRACK": "1", "MLFLOW_DISABLE_TELEMETRY": "true"}
    at = ["--host", "127.0.0.1", "--port"]
    store = [
        "--backend-store-uri",
        f"sqlite:///{folder}/mlflow.db",
        "--artifacts-destination",
        f"{folder}/mlflow",
    ]
    tracking = ["mlflow", "server", "--workers", "1", *at, mlflow, *store]
    commands = [["prefect", "server", "start", *at, prefect], tracking]
    with open(folder / "servers.log", "wb") as log:
        started = [
            subprocess.Popen([sys.executable, "-m", *command], env=environment, stdout=log, stderr=log)
            for command in commands
        ]
        try:
            for address in (f"http://127.0.0.1:{prefect}/api/health", f"http://127.0.0.1:{mlflow}/health"):
                _wait_for(address)
            use = {"PREFECT_API_URL": f"http://127.0.0.1:{prefect}/api"}
            processes = [psutil.Process(process.pid) for process in started]
            yield processes, environment | use | {"MLFLOW_TRACKING_URI": f"http://127.0.0.1:{mlflow}"}
        finally:
            for process in started:
                process.terminate()
                process.wait(60)


def _wait_for(address: str, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            with urlopen(address, timeout=10):
                return
        except (URLError, OSError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(run(measure_orchestration, __doc__ or ""))
