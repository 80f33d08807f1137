"""Runs every benchmark in a process of its own and writes the table in benchmarks/README.md."""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
from pathlib import Path

from benchmarks.claims import Claim, commit, machine, table

HERE = Path(__file__).parent
NOT_BENCHMARKS = {"__init__", "__main__", "claims", "million", "road"}
BEGIN, END = "<!-- measured -->", "<!-- end -->"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    parts = []
    for file in sorted(HERE.glob("*.py")):
        if file.stem in NOT_BENCHMARKS or file.stem.startswith("_"):
            continue
        print(f"benchmarks.{file.stem} …", file=sys.stderr, flush=True)
        done = subprocess.run([sys.executable, "-m", f"benchmarks.{file.stem}", "--json", *(["--quick"] if given.quick else [])], stdout=subprocess.PIPE, text=True, check=True)
        claims = [Claim(**{name: row[name] for name in Claim.__dataclass_fields__}) for row in json.loads(done.stdout)]
        parts.append(f"### {file.stem}\n\n{table(claims)}\n")
        print(table(claims), flush=True)
    about = f"{datetime.date.today():%Y-%m-%d}, commit {commit()}, {machine()}{', quick' if given.quick else ''}\n"
    readme = HERE / "README.md"
    before, _, rest = readme.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    readme.write_text(f"{before}{BEGIN}\n\n{about}\n{chr(10).join(parts)}\n{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
