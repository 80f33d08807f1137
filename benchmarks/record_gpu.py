"""Adds GPU measurements to the history: ``python -m benchmarks.record_gpu DIR/measured.jsonl COMMIT``.

``benchmarks.on_gpu`` runs on machines that may lack git and the other packages of the benchmarks, so its
lines are added afterwards. COMMIT is the measured commit. Each part becomes a section ``on_gpu, PART``, with
the machine of the facts in the file; 90th percentiles are left out.
"""

import argparse
import datetime
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from benchmarks.__main__ import write_pages
from benchmarks.claims import Claim
from benchmarks.history import HISTORY, Measurement, append, is_commit

FIELDS = {field.name for field in fields(Claim)}


def sections(lines: Iterable[Mapping[str, Any]], commit: str, date: str) -> list[Measurement]:
    """Returns the claims of each part as a measurement; ``lines`` are those of ``measured.jsonl``."""
    facts, minutes = {}, {}
    claims: dict[str, list[Claim]] = {}
    for line in lines:
        part = line["part"]
        minutes[part] = minutes.get(part, 0.0) + line.get("took_seconds", 0.0) / 60
        if "rival" not in line:
            facts.update(line)
        elif ", p90, " not in line["name"]:
            row = {name: value for name, value in line.items() if name in FIELDS}
            claims.setdefault(part, []).append(Claim(**row))
    if "driver_version" not in facts:
        raise ValueError("the facts of the machine are missing: measure the part decisive in the same folder")
    host = f"{facts['cpus']} cores, {facts['memory_bytes'] / 2**30:.0f} GiB, Python {facts['python']}"
    link = f"PCIe {facts['pcie.link.gen.current']} x{facts['pcie.link.width.current']}"
    versions = f"driver {facts['driver_version']}, torch {facts['versions']['torch']}, CUDA {facts['cuda']}"
    machine = f"{facts['name']}, {link}, {versions}, {host}"
    return [
        Measurement(
            section=f"on_gpu, {part}",
            date=date,
            commit=commit,
            machine=machine,
            minutes=round(minutes[part], 2),
            load=None,
            claims=tuple(rows),
        )
        for part, rows in claims.items()
    ]


def main() -> int:
    """Runs the command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.record_gpu", description=__doc__)
    parser.add_argument("file", type=Path, help="measured.jsonl")
    parser.add_argument("commit", help="short hash of the measured commit")
    options = parser.parse_args()
    if not is_commit(options.commit):
        parser.error(f"{options.commit} is not a commit in the history of HEAD")
    measured = datetime.datetime.fromtimestamp(options.file.stat().st_mtime, datetime.UTC)
    lines = [json.loads(line) for line in options.file.read_text(encoding="utf-8").splitlines()]
    for measurement in sections(lines, options.commit, f"{measured:%Y-%m-%d %H:%M} UTC"):
        append(measurement, HISTORY)
    write_pages()
    return 0


if __name__ == "__main__":
    sys.exit(main())
