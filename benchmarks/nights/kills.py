"""Nightly runs on the bundled guide, some by servers, that are killed at random moments: how many recover.

Runs the soak tests of tests/recovery with three seeds each, or with all 20 (--full). SIGKILL ends the
process of ``guidespace nightly``, or the flow's process, the worker, Prefect's server, MLflow's server or
PostgreSQL while a worker runs the flow, or ``guidespace up`` during a night or while it starts. A kill counts
as survived if, after the next run or Retry, the catalogue, the scores and the model equal those of an
undisturbed night, exactly one version is champion, no run is left Running, and no finished stage was
repeated.
"""

import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from benchmarks.claims import ROOT, Claim, is_installed, run

SERVERS = "test_servers.py::test_a_kill_and_what_follows[{part}-{{seed}}]"
KINDS = {
    "guidespace nightly": "test_one_command.py::test_kills[{seed}]",
    "flow": SERVERS.format(part="flow"),
    "worker": SERVERS.format(part="worker"),
    "Prefect's server": SERVERS.format(part="prefect"),
    "MLflow's server": SERVERS.format(part="mlflow"),
    "PostgreSQL": SERVERS.format(part="database"),
    "guidespace up, in a night": "test_up.py::test_a_kill_during_a_night[{seed}]",
    "guidespace up, starting": "test_up.py::test_a_kill_while_it_starts[{seed}]",
}
SEEDS, ALL_SEEDS = 3, 20
PROBLEMS = ("skipped", "failure", "error")


def measure_kills(seeds: int) -> Sequence[Claim]:
    """Counts the kills that are survived, of ``seeds`` of each kind."""
    servers = is_installed("psycopg2", "kills of servers on PostgreSQL")
    kinds = {
        test.format(seed=seed): kind
        for kind, test in KINDS.items()
        for seed in range(seeds if servers or "test_servers" not in test else 0)
    }
    outcomes = _outcomes([*kinds])
    if errors := [test for test, outcome in outcomes.items() if outcome == "error"]:
        sys.exit(f"nothing was killed, because the servers or the undisturbed night failed: {errors}")
    killed = Counter(kinds[test] for test, outcome in outcomes.items() if outcome != "skipped")
    survived = Counter(kinds[test] for test, outcome in outcomes.items() if outcome == "passed")
    claims = [Claim("kills survived, all kinds", survived.total(), "kills", killed.total(), aim=1)]
    return claims + [
        Claim(f"kills survived, {kind}", survived[kind], "kills", count, aim=1)
        for kind, count in killed.items()
    ]


def _outcomes(tests: Sequence[str]) -> dict[str, str]:
    """Runs soak tests of tests/recovery; returns "passed", "skipped", "failure" or "error" by test."""
    outcomes = dict.fromkeys(tests, "error")  # of tests that the report lacks
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        options = ["-q", "-m", "soak", "-p", "no:cacheprovider", f"--junitxml={report}"]
        command = [sys.executable, "-m", "pytest", *options, *(f"tests/recovery/{test}" for test in tests)]
        subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False)
        for case in ElementTree.parse(report).iter("testcase"):
            name = f"{case.attrib['classname'].rpartition('.')[2]}.py::{case.attrib['name']}"
            outcomes[name] = next((element.tag for element in case if element.tag in PROBLEMS), "passed")
    return outcomes


def main(quick: bool) -> Sequence[Claim]:
    """Measures three kills of each kind, or with ``quick`` one."""
    return measure_kills(1 if quick else SEEDS)


if __name__ == "__main__":
    sys.exit(run(main, __doc__ or "", lambda: measure_kills(ALL_SEEDS)))
