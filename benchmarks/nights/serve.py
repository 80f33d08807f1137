"""``guidespace serve`` beside ``mlflow models serve`` with the same champion.

Eight clients, which send the next request after each answer, run in a process beside the server, with the
model of four English guides (--quick: of the bundled guide). Nine of ten titles are titles of the guide,
drawn in proportion to their airings; every tenth title is new: two titles of the guide joined, never
requested twice. Both servers get the same 2,000 requests as a warm-up, then 2,000 others that are measured.
Then our server alone gets 10,000 requests as a warm-up and 100,000 others that are measured. A cold start is
the time from the command to its first answer, the median of three.
"""

import http.client
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, Literal

import numpy as np
import pyarrow.parquet as pq

from benchmarks.claims import SAMPLE, Claim, guides, run
from benchmarks.nights.night import run_night
from benchmarks.processes import call_apart
from storage.tracking import MODEL_NAME, Registry

CLIENTS, MANY, FEW, STARTS = 8, 100_000, 2_000, 3
NEW = 10  # one of NEW titles is new
OURSELVES = "ours"
MLFLOW = "mlflow models serve"


@dataclass(frozen=True)
class Loaded:
    """Latencies and throughput that the clients measured on a server under load."""

    milliseconds: np.ndarray  # per request
    errors: int
    seconds: float

    def percentile(self, share: int) -> float:
        """Returns the milliseconds within which ``share`` percent of the requests were answered."""
        return float(np.percentile(self.milliseconds, share))


@dataclass(frozen=True)
class Server:
    """A server to measure: its command, its URL path, and the format of its requests."""

    command: list[str]
    environment: dict[str, str]
    path: str
    ask: Callable[[str], object]


def free_port() -> int:
    """Returns an unused port on loopback."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def ours(home: Path, port: int) -> Server:
    """Returns the server ``guidespace serve``."""
    command = [sys.executable, "-m", "flows", "serve", "--home", str(home), "--port", str(port)]
    return Server(command, {}, "/similar", lambda title: {"titles": [title]})


def theirs(home: Path, port: int) -> Server:
    """Returns the server ``mlflow models serve``."""
    command = [sys.executable, "-m", "mlflow", "models", "serve", "--env-manager", "local"]
    command += ["-m", f"models:/{MODEL_NAME}@champion", "--host", "127.0.0.1", "-p", str(port)]
    environment = {
        "MLFLOW_TRACKING_URI": f"sqlite:///{home / 'mlflow.db'}",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    return Server(
        command,
        environment,
        "/invocations",
        lambda title: {"dataframe_split": {"columns": ["title"], "data": [[title]]}},
    )


@contextmanager
def running(server: Server, port: int, title: str) -> Iterator[tuple[int, float]]:
    """Runs a server; yields its process id and the seconds from the command to its first answer."""
    common = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    started = time.perf_counter()
    process = subprocess.Popen(
        server.command,
        env={**os.environ, **common, **server.environment},
        stdout=sys.stderr,
        start_new_session=True,
    )
    try:
        while not _answered(server, port, title):
            if process.poll() is not None:
                sys.exit(f"{' '.join(server.command)} ended with {process.returncode}")
            time.sleep(0.02)
        yield process.pid, time.perf_counter() - started
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _answered(server: Server, port: int, title: str) -> bool:
    try:
        return load(port, server.path, [json.dumps(server.ask(title))], 1).errors == 0
    except OSError:
        return False


def load(port: int, path: str, bodies: Sequence[str], clients: int) -> Loaded:
    """Sends requests by ``clients`` concurrent clients; each sends its next request after an answer."""
    times, errors, remaining_numbers = np.zeros(len(bodies)), [0] * clients, iter(range(len(bodies)))
    connection_errors: list[OSError] = []

    def send(client: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.connect()
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for place in remaining_numbers:
                started = time.perf_counter()
                connection.request("POST", path, bodies[place], {"Content-Type": "application/json"})
                answer = connection.getresponse()
                answer.read()
                times[place] = time.perf_counter() - started
                errors[client] += answer.status != 200
        except (OSError, http.client.HTTPException) as error:
            connection_errors.append(OSError(str(error)))
        finally:
            connection.close()

    threads = [Thread(target=send, args=(client,)) for client in range(clients)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if connection_errors:
        raise connection_errors[0]
    return Loaded(times * 1000, sum(errors), time.perf_counter() - started)


def titles_to_ask(model: Path, count: int, new: int = NEW, seed: int = 0) -> list[str]:
    """Draws titles of a model to request, in proportion to airings; every ``new``-th is unknown (0: none)."""
    table = pq.read_table(model / "titles.parquet", columns=["title", "airings"])
    names, airings = table["title"].to_pylist(), np.asarray(table["airings"], dtype=np.float64)
    rng = np.random.default_rng(seed)
    drawn = rng.choice(len(names), size=(count, 2), p=airings / airings.sum())
    return [
        f"{names[one]} and {names[other]} {place}" if new and place % new == new - 1 else names[one]
        for place, (one, other) in enumerate(drawn.tolist())
    ]


def resident(group: int) -> float:
    """Returns the resident memory of a process group in MiB."""
    total = 0
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.getpgid(int(entry.name)) == group:
                total += int((entry / "statm").read_text(encoding="utf-8").split()[1]) * os.sysconf(
                    "SC_PAGE_SIZE"
                )
    return total / 2**20


def measure_serve(quick: bool) -> Sequence[Claim]:
    """Measures all claims of this file."""
    feeds = [SAMPLE] if quick else guides("UK1", "US1", "AU1", "ZA1")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        run_night(home, feeds)
        return measure_home(home, quick)


def measure_home(home: Path, quick: bool) -> list[Claim]:
    """Measures the claims for a home with a champion."""
    champion = Registry(home).champion()
    assert champion is not None
    many, few = (2_000, 200) if quick else (MANY, FEW)
    titles = titles_to_ask(champion.folder, many + many // 10)
    figures: dict[str, Any] = {}
    for name, create, count in ((OURSELVES, ours, many), (MLFLOW, theirs, 0)):
        starts = []
        for attempt in range(1 if quick else STARTS):
            server = create(home, port := free_port())
            with running(server, port, titles[0]) as (process, seconds):
                starts.append(seconds)
                if attempt:
                    continue
                figures[name] = _loads(server, port, process, champion.folder, few)
                if count:
                    bodies = [json.dumps(server.ask(title)) for title in titles]
                    figures[name] |= _long(server, port, process, bodies, count)
        figures[name]["start"] = statistics.median(starts)
    return [*_beside(figures[OURSELVES], figures[MLFLOW], few), *_alone(figures[OURSELVES], many)]


def _loads(server: Server, port: int, process: int, model: Path, few: int) -> dict[str, Any]:
    """Measures a server after a warm-up: mixed titles, each kind of title, and its memory."""
    mixed, *kinds = (
        [json.dumps(server.ask(title)) for title in titles_to_ask(model, count, new=new, seed=seed)]
        for seed, (count, new) in enumerate(((2 * few, NEW), (few, 0), (few, 1)), start=1)
    )
    _apart(port, server.path, mixed[:few])
    results: dict[str, Any] = {"all": _apart(port, server.path, mixed[few:])}
    for name, requests in zip(("guide", "new"), kinds, strict=True):
        results[name] = _apart(port, server.path, requests)
    return {**results, "memory": resident(process)}


def _long(server: Server, port: int, process: int, bodies: list[str], count: int) -> dict[str, Any]:
    """Measures our server with ``count`` requests after a warm-up with the others, and its memory."""
    _apart(port, server.path, bodies[count:])
    begin, cached_titles = resident(process), _cached_titles(port)
    many = _apart(port, server.path, bodies[:count])
    share = (_cached_titles(port) - cached_titles) / count
    return {"many": many, "cached": share, "begin": begin, "end": resident(process)}


def _cached_titles(port: int) -> float:
    """Returns how many titles our server has answered from its cache."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("guidespace_cached_titles_total"))


def _apart(port: int, path: str, bodies: list[str]) -> Loaded:
    return call_apart(load, port, path, bodies, CLIENTS, threads=1)


def _beside(figures: dict[str, Any], rival_figures: dict[str, Any], few: int) -> Iterator[Claim]:
    """Makes the claims that compare our server with MLflow's."""

    def both(name: str, mine: float, their: float, better: Literal["more", "less"] = "less") -> Claim:
        return Claim(name, mine, MLFLOW, their, aim=1, better=better)

    mine, their = figures["all"], rival_figures["all"]
    condition = f"{CLIENTS} clients, {few:,} requests"
    for share in (50, 99):
        yield both(f"{condition}: p{share}, ms", mine.percentile(share), their.percentile(share))
    rates = [len(loaded.milliseconds) / loaded.seconds for loaded in (mine, their)]
    yield both(f"{condition}: requests/s", *rates, better="more")
    for name, which in (("guide", "titles of the guide alone"), ("new", "new titles alone")):
        for share in (50, 99):
            pair = figures[name].percentile(share), rival_figures[name].percentile(share)
            yield both(f"{CLIENTS} clients, {which}: p{share}, ms", *pair)
    yield both("cold start to the first answer, s", figures["start"], rival_figures["start"])
    yield both("memory after these requests, MiB", figures["memory"], rival_figures["memory"])


def _alone(figures: dict[str, Any], many: int) -> Iterator[Claim]:
    """Makes the claims on our server alone."""
    loaded, condition = figures["many"], f"{CLIENTS} clients, {many:,} requests"
    yield Claim(f"{condition}: p99, ms", loaded.percentile(99), aim=12, better="less")
    yield Claim(f"{condition}: share of cached answers", figures["cached"], better=None)
    yield Claim(f"{condition}: requests/s", len(loaded.milliseconds) / loaded.seconds, better=None)
    yield Claim(f"{condition}: errors", loaded.errors, aim=0, better="less")
    yield Claim("cold start to the first answer, s", figures["start"], aim=2.5, better="less")
    grown = figures["end"] / figures["begin"]
    yield Claim(f"memory after {many:,} requests over that after a tenth", grown, aim=1.05, better="less")


if __name__ == "__main__":
    sys.exit(run(measure_serve, __doc__ or ""))
