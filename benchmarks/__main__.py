"""Runs benchmarks, each in a fresh process, and writes their sections of benchmarks/README.md as they
finish.

A section has the date, the commit and the machine of the measurement. If a benchmark fails, its section does
not change, the others continue, and its name is printed at the end. Finished sections are kept if the command
is interrupted.
"""

import argparse
import ast
import datetime
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from benchmarks.claims import ROOT, Claim, commit, machine, table

PAGE = Path(__file__).with_name("README.md")
MODULES = {
    name: f"benchmarks.{folder}.{name}"
    for folder, names in {
        "ingest": ("enrich", "ingest"),
        "linear": ("factorisation", "linear"),
        "nights": ("million", "nightly", "orchestration", "serve"),
        "objectives": ("objectives",),
        "offload": ("eviction", "offload", "rivals"),
        "players": ("guide", "kinds", "players"),
        "quality": ("quality",),
        "recommend": ("recommend",),
        "search": ("clusters", "layout", "neighbours"),
        "text": ("fasttext_reader", "oov", "sentences", "text", "titles"),
        "training": ("bag", "loader", "runners", "training"),
    }.items()
    for name in names
}
# benchmarks with --full
FULL = {"fasttext_reader", "ingest", "linear", "million", "neighbours", "titles", "training"}
ONLY_FULL = {"million"}
BEGIN, END = "<!-- measured -->", "<!-- end -->"
LONGEST = 2 * 3600  # maximum seconds of a benchmark


def main() -> int:
    """Runs the benchmarks that the command line names; returns the exit code."""
    names_available = sorted(MODULES)
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="NAME",
        choices=names_available,
        help=f"measure these sections alone: {', '.join(names_available)}",
    )
    parser.add_argument(
        "--full",
        action="store_true",
        help=f"measure the heavy sizes, sections of their own, of {', '.join(sorted(FULL))}",
    )
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, to see that all works; prints, and writes nothing"
    )
    options = parser.parse_args()
    if options.full and options.quick:
        parser.error("--full and --quick are two sets of sizes: name one")
    names = [
        name
        for name in options.only or names_available
        if (name in FULL if options.full else name not in ONLY_FULL)
    ]
    if not names:
        parser.error(
            f"nothing to measure: {' '.join(options.only)} "
            + ("has no heavy sizes" if options.full else "has heavy sizes alone: add --full")
        )
    size = "--quick" if options.quick else "--full" if options.full else ""
    failed = measure_all(
        names,
        lambda name: run_one(name, size),
        None if options.quick else PAGE,
        ", full sizes" if options.full else "",
    )
    if failed:
        print(f"failed, and their sections left as they were: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def measure_all(
    names: Iterable[str], measure: Callable[[str], Sequence[Claim]], readme: Path | None, suffix: str = ""
) -> list[str]:
    """Measures one benchmark after the other and writes each section when it is done.

    Args:
        names: Names of benchmarks.
        measure: Returns the claims of a benchmark, or raises CalledProcessError or TimeoutExpired.
        readme: Page whose sections are replaced; with None, the claims are only printed.
        suffix: Suffix of the names of sections.

    Returns:
        The names of benchmarks that failed.
    """
    failed, measured = [], commit()  # before the page is written, which changes the state of the commit
    for name in names:
        print(f"{MODULES[name]}{suffix} …", file=sys.stderr, flush=True)
        load, begun = os.getloadavg()[0], time.monotonic()
        try:
            claims = measure(name)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            print(f"{MODULES[name]}: {error}", file=sys.stderr, flush=True)
            failed.append(name)
            continue
        took = f"{(time.monotonic() - begun) / 60:.1f} min"
        print(f"{took}\n{table(claims)}", flush=True)
        if readme:
            now = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC"
            load_then = f"load average {load:.1f} at the start."
            line = f"{now}, commit {measured}, {machine()}; {took}, {load_then}"
            replace_section(readme, name + suffix, f"{about(name)}\n\n{line}\n\n{table(claims)}\n")
    return failed


def run_one(name: str, size: str = "") -> list[Claim]:
    """Returns the claims of one benchmark, run in a separate process group, which is ended afterwards."""
    command = [sys.executable, "-m", MODULES[name], "--json", *filter(None, [size])]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, encoding="utf-8", cwd=ROOT, start_new_session=True
    ) as process:
        try:
            out, _ = process.communicate(timeout=LONGEST)
        except BaseException:  # on interruption or timeout, its child processes are ended, too
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return [Claim(**{field: row[field] for field in Claim.__dataclass_fields__}) for row in json.loads(out)]


def about(name: str) -> str:
    """Returns the first paragraph of the docstring of a benchmark."""
    source = (ROOT / MODULES[name].replace(".", "/")).with_suffix(".py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n\n")[0].replace("\n", " ")


def replace_section(readme: Path, name: str, content: str) -> None:
    """Replaces or adds the section of a benchmark in a page, and keeps the sections in alphabetical order.

    Comments mark the beginning and the end of a section.
    """
    before, _, rest = readme.read_text(encoding="utf-8").partition(BEGIN)
    measured, _, after = rest.partition(END)
    sections = dict(part.split("\n", 1) for part in measured.split("\n### ")[1:])
    sections[name] = f"\n{content}"
    body = "\n".join(
        f"### {title}\n{text.strip(chr(10)).join([chr(10)] * 2)}" for title, text in sorted(sections.items())
    )
    written = readme.with_suffix(".tmp")
    written.write_text(f"{before}{BEGIN}\n\n{body}\n{END}{after}", encoding="utf-8")
    os.replace(written, readme)


if __name__ == "__main__":
    sys.exit(main())
