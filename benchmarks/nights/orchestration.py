"""Time that Prefect and MLflow add to a nightly run of four English guides, with running servers.

The flow is compared with the same stages called as plain functions in the same threads and processes
(plain_run.py). Each runs in a separate process with a new home. From the plain run, the parts that use MLflow
(its start, register, promote and report) are subtracted. CPU seconds of the flow include those of both
servers during the run. MLflow's server has one worker, as in ``guidespace up``. Pairs alternate, after a pair
that is not measured; figures are medians of three pairs, with the smallest and the largest as bounds.

Earlier figures of this benchmark, in % of the seconds, are not comparable, because what was measured changed:
29.5 (2026-11-24) was one pair on a busy machine; 11.1 (11-25) three pairs on an idle machine, with four
workers of MLflow; 5.97 (11-26) after the servers parsed requests by httptools; 4.27 after MLflow's server had
one worker; 0.6 after the plain functions had a helper process and ran the garbage collector like the flow,
without which they took 5 % longer. None of them included the servers' CPU seconds, and until then the plain
run's CPU seconds included MLflow's parts, so that the flow seemed to need less (0.91 of the plain functions).
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import psutil

from benchmarks.claims import SAMPLE, Claim, guides, run
from benchmarks.nights.serve import free_port
from benchmarks.processes import time_command

PAIRS = 3
TRACKED = ("MLflow start", "register", "promote", "report")


def measure_orchestration(quick: bool) -> Sequence[Claim]:
    """Measures all claims of this file."""
    feeds = list(map(str, [SAMPLE] if quick else guides("UK1", "US1", "AU1", "ZA1")))
    pairs: list[tuple[float, ...]] = []
    with tempfile.TemporaryDirectory() as folder, _servers(Path(folder)) as (servers, environment):
        for number in range(1 if quick else PAIRS + 1):
            bare = ["benchmarks.nights.plain_run", f"{folder}/bare-{number}", *feeds]
            plain_seconds, plain_cpu, output = time_command([sys.executable, "-m", *bare], os.environ)
            parts = json.loads(output.splitlines()[-1])
            untracked = plain_seconds - sum(parts[name] for name in TRACKED)
            untracked_cpu = plain_cpu - sum(parts[f"{name}, CPU"] for name in TRACKED)
            before = _cpu_of(servers)
            nightly = ["flows", "nightly", "--home", f"{folder}/home-{number}", "--feed", *feeds]
            seconds, cpu, _ = time_command([sys.executable, "-m", *nightly], environment)
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


@contextmanager
def _servers(folder: Path) -> Iterator[tuple[list[psutil.Process], dict[str, str]]]:
    """Starts Prefect's and MLflow's servers on loopback; yields them and the environment of a run."""
    prefect, mlflow = (f"{free_port()}" for _ in range(2))
    prefect_settings = {"PREFECT_HOME": str(folder / "prefect"), "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
    environment = os.environ | prefect_settings | {"DO_NOT_TRACK": "1", "MLFLOW_DISABLE_TELEMETRY": "true"}
    address_options = ["--host", "127.0.0.1", "--port"]
    store = [
        "--backend-store-uri",
        f"sqlite:///{folder}/mlflow.db",
        "--artifacts-destination",
        f"{folder}/mlflow",
    ]
    tracking = ["mlflow", "server", "--workers", "1", *address_options, mlflow, *store]
    commands = [["prefect", "server", "start", *address_options, prefect], tracking]
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
