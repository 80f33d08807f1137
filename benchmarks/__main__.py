"""Runs benchmarks, each in a fresh process, and records their claims as they finish.

Each finished benchmark is appended to ``history.jsonl``, and ``README.md`` and ``docs/figures.md`` are
generated from it. If a benchmark fails, its section does not change, the others continue, and its name is
printed at the end. An interrupted command can be called again: what was measured at the current commit is
left out. The benchmarks of docs/figures.md run first, then the others, the shortest first; those that would
exceed the limit are left out and named.
"""

import argparse
import datetime
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks import figures, page, quotes
from benchmarks.claims import ROOT, Claim, commit, machine, table
from benchmarks.history import HISTORY, Measurement, append, latest, read_history
from benchmarks.page import MODULES, SUFFIX

# benchmarks with --full
FULL = {
    "enrich",
    "fasttext_reader",
    "ingest",
    "kills",
    "kinds",
    "linear",
    "million",
    "neighbours",
    "objectives",
    "quality",
    "titles",
    "training",
}
ONLY_FULL = {"million", "quality"}
MINUTES = 90.0  # limit of all benchmarks without --full
UNKNOWN = 5.0  # expected minutes of a benchmark that has not been measured
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
    parser.add_argument(
        "--minutes",
        type=float,
        help=f"limit of the duration, by default {MINUTES:g}; none with --full or --only",
    )
    parser.add_argument("--again", action="store_true", help="repeat what was measured at this commit")
    parser.add_argument("--render", action="store_true", help="write the pages from the history, and end")
    parser.add_argument("--outdated", action="store_true", help="list changed benchmarks, and end")
    options = parser.parse_args()
    if options.render:
        write_pages()
        return 0
    if options.outdated:
        for name, old in page.outdated(read_history()).items():
            print(f"warning: the benchmark of section {name!r} has changed since its commit {old}")
        return 0
    if options.full and options.quick:
        parser.error("--full and --quick are two sets of sizes: name one")
    chosen = options.only or names_available
    names = [name for name in chosen if (name in FULL if options.full else name not in ONLY_FULL)]
    if not names:
        parser.error(
            f"nothing to measure: {' '.join(options.only)} "
            + ("has no heavy sizes" if options.full else "has heavy sizes alone: add --full")
        )
    measured = commit()
    if measured.endswith("-dirty") and not options.quick:
        parser.error("a section names its commit: commit your changes, or use --quick, which writes nothing")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that run_one ends its group
    unlimited = options.full or options.quick or options.only
    return run_all(
        names,
        "--quick" if options.quick else "--full" if options.full else "",
        history=None if options.quick else HISTORY,
        minutes=options.minutes or (float("inf") if unlimited else MINUTES),
        done=set() if options.again or options.quick else measured_at(measured, read_history()),
    )


def run_all(names: Sequence[str], size: str, *, history: Path | None, minutes: float, done: set[str]) -> int:
    """Measures benchmarks within a limit and prints which failed or were left out; returns the exit code.

    Args:
        names: Names of benchmarks.
        size: Option of the benchmarks, or "".
        history: File to which measurements are appended; with None, claims are only printed.
        minutes: Limit of the total duration.
        done: Sections that are not measured again.
    """
    suffix = SUFFIX if size == "--full" else ""
    expected = expected_minutes(names, suffix, read_history())
    pending = [name for name in expected if name + suffix not in done]
    total = sum(expected[name] for name in pending)
    print(f"sections: {len(pending)}, expected minutes: {total:.0f}, limit: {minutes:g}", file=sys.stderr)
    failed, skipped = measure_all(
        pending, lambda name: run_one(name, size), history, suffix, minutes=minutes, expected=expected
    )
    if failed:
        print(f"failed, and their sections left as they were: {', '.join(failed)}", file=sys.stderr)
    if repeated := [name for name in expected if name not in pending]:
        print(f"left out, measured at this commit already: {', '.join(repeated)}", file=sys.stderr)
    if skipped:
        left = ", ".join(skipped)
        print(f"left out, more than {minutes:g} minutes in total (run it again): {left}", file=sys.stderr)
    if not size and len(names) > 1:
        print(f"left out, heavy sizes (--full): {', '.join(sorted(FULL))}", file=sys.stderr)
    return 1 if failed else 0


def expected_minutes(names: Iterable[str], suffix: str, history: Sequence[Measurement]) -> dict[str, float]:
    """Returns the minutes of each benchmark when last measured: those of figures first, then the shortest."""
    last = latest(history)
    measured = {name: last[name + suffix].minutes if name + suffix in last else None for name in names}
    minutes = {name: UNKNOWN if one is None else one for name, one in measured.items()}
    in_figures = {figure.section for figure in figures.FIGURES}
    return dict(sorted(minutes.items(), key=lambda item: (item[0] not in in_figures, item[1])))


def measured_at(name: str, history: Sequence[Measurement]) -> set[str]:
    """Returns the sections that were measured at a commit."""
    return {each.section for each in history if each.commit == name}


def measure_all(
    names: Iterable[str],
    measure: Callable[[str], Sequence[Claim]],
    history: Path | None,
    suffix: str = "",
    *,
    minutes: float = float("inf"),
    expected: Mapping[str, float] | None = None,
) -> tuple[list[str], list[str]]:
    """Measures one benchmark after the other and records each when it is done.

    Args:
        names: Names of benchmarks.
        measure: Returns the claims of a benchmark, or raises CalledProcessError or TimeoutExpired.
        history: File to which measurements are appended; with None, claims are only printed.
        suffix: Suffix of the names of sections.
        minutes: Limit of the total duration.
        expected: Expected minutes by name; a benchmark that would exceed the limit is left out.

    Returns:
        The names of benchmarks that failed, and of those that were left out.
    """
    failed, skipped, measured = [], [], commit()
    begun = time.monotonic()
    for name in names:
        if (time.monotonic() - begun) / 60 + (expected or {}).get(name, 0) > minutes:
            skipped.append(name)
            continue
        print(f"{MODULES[name]}{suffix} …", file=sys.stderr, flush=True)
        date, load, started = datetime.datetime.now(datetime.UTC), os.getloadavg()[0], time.monotonic()
        try:
            claims = measure(name)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            print(f"{MODULES[name]}: {error}", file=sys.stderr, flush=True)
            failed.append(name)
            continue
        took = (time.monotonic() - started) / 60
        print(f"{took:.1f} min\n{table(claims)}", flush=True)
        if history:
            one = Measurement(
                section=name + suffix,
                date=f"{date:%Y-%m-%d %H:%M} UTC",
                commit=measured,
                machine=machine(),
                minutes=round(took, 1),
                load=round(load, 1),
                claims=tuple(claims),
            )
            append(one, history)
            if history == HISTORY:
                write_pages()
    return failed, skipped


def write_pages() -> None:
    """Writes the sections of README.md of this folder, docs/figures.md with its plot, and quoted figures."""
    history = read_history()
    page.update(page.PAGE, history)
    figures.update(history)
    quotes.update(history)


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


if __name__ == "__main__":
    sys.exit(main())
