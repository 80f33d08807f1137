"""Reads and appends ``history.jsonl``: one line per measured section, the only source of all figures.

``README.md`` of this folder and ``docs/figures.md`` are generated from it.
"""

import json
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from benchmarks.claims import ROOT, Claim

HISTORY = Path(__file__).with_name("history.jsonl")


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """The claims of a benchmark, measured together.

    Attributes:
        section: Name of the benchmark, with ", full sizes" for its heavy sizes.
        date: Start of the measurement, "YYYY-MM-DD HH:MM UTC".
        commit: Short hash of the measured commit.
        machine: Description of the machine.
        minutes: Duration; None if it was not recorded.
        load: Load average at the start; None if it was not recorded.
        claims: The measured claims.
    """

    section: str
    date: str
    commit: str
    machine: str
    minutes: float | None
    load: float | None
    claims: tuple[Claim, ...]

    def line(self) -> str:
        """Formats the measurement as a line of JSON; claims are objects without default values."""
        record = {field.name: getattr(self, field.name) for field in fields(self)}
        record["claims"] = [_changed(claim) for claim in self.claims]
        return json.dumps(record, ensure_ascii=False) + "\n"

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "Measurement":
        """Reads a measurement from the JSON object of its line."""
        rows: list[dict[str, Any]] = [
            {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
            for row in record["claims"]
        ]
        return cls(**{**record, "claims": tuple(Claim(**row) for row in rows)})


def _changed(claim: Claim) -> dict[str, Any]:
    defaults = asdict(Claim("", 0.0))
    return {name: value for name, value in asdict(claim).items() if value != defaults[name]} | {
        "name": claim.name,
        "value": claim.value,
    }


def read_history(file: Path = HISTORY) -> list[Measurement]:
    """Returns all measurements, oldest first; none if the file does not exist."""
    if not file.exists():
        return []
    lines = file.read_text(encoding="utf-8").splitlines()
    measurements = (Measurement.of(json.loads(line)) for line in lines)
    return sorted(measurements, key=lambda measurement: measurement.date)


def append(measurement: Measurement, file: Path = HISTORY) -> None:
    """Appends a measurement."""
    with file.open("a", encoding="utf-8") as handle:
        handle.write(measurement.line())


def latest(history: Iterable[Measurement]) -> dict[str, Measurement]:
    """Returns the newest measurement of each section, from measurements that are sorted by date."""
    return {measurement.section: measurement for measurement in history}


def is_commit(name: str) -> bool:
    """Returns whether a commit of this name is in the history of HEAD.

    A commit that was replaced in a rebase exists only in the repository in which it was made.
    """
    command = ["git", "merge-base", "--is-ancestor", name, "HEAD"]
    return not subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode
