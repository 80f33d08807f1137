"""Counts the work of each stage of a night: ``python -m tests.growth.night_work FOLDER TITLES …``.

Four counts, which do not depend on the machine:

- lines: executed lines of this project, without those of compiled loops.
- products: multiply-adds of ``np.matmul``, ``np.dot`` and ``torch.mm``.
- rows: rows that operators of DuckDB read and write.
- bytes: peak of the memory of Python and NumPy above that at the start of the stage.
"""

import gc
import itertools
import json
import math
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import duckdb
import numpy as np

from benchmarks.nights.large_guide import SYLLABLES
from benchmarks.nights.plain_run import run_stages
from storage.stages import PACKAGES, ROOT
from tasks.text.clean import clean
from tests.worlds import WORDS

SOURCES = tuple(f"{ROOT / package}/" for package in PACKAGES)
WARM_UP = 200  # titles of the first night
COUNTS = ("lines", "products", "rows", "bytes")


class Work:
    """Counts the work of the calls of ``count``."""

    def __init__(self) -> None:
        self._lines = itertools.count()  # next() is atomic
        self.products = self.rows = 0
        self._unread: dict[int, Any] = {}  # connections with a query whose profile is not read yet

    @contextmanager
    def count(self, counts: dict[str, int]) -> Iterator[None]:
        """Stores the counts of the block in ``counts``."""
        gc.collect()
        first, products, rows = next(self._lines), self.products, self.rows
        tracemalloc.reset_peak()
        memory = tracemalloc.get_traced_memory()[0]
        threading.settrace(self._trace)
        sys.settrace(self._trace)
        try:
            yield
        finally:
            sys.settrace(None)
            threading.settrace(None)  # pyright: ignore[reportArgumentType]
        counts["lines"] = next(self._lines) - first - 1
        counts["products"] = self.products - products
        counts["rows"] = self.rows - rows
        counts["bytes"] = tracemalloc.get_traced_memory()[1] - memory

    def _trace(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        return self._count_line if frame.f_code.co_filename.startswith(SOURCES) else None

    def _count_line(self, _frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line":
            next(self._lines)
        return self._count_line

    def watch(self) -> None:
        """Counts products of NumPy and PyTorch and rows of DuckDB from now on."""
        import torch

        for package, name in ((np, "matmul"), (np, "dot"), (torch, "mm")):
            setattr(package, name, partial(self._multiply, getattr(package, name)))
        kind = duckdb.DuckDBPyConnection
        for name in ("execute", "sql", "cursor", "close", "__exit__"):
            setattr(kind, name, self._before(name, getattr(kind, name)))
        duckdb.connect = self._profiled(duckdb.connect)

    def _multiply(self, function: Callable[..., Any], left: Any, right: Any, *rest: Any, **named: Any) -> Any:
        result = function(left, right, *rest, **named)
        self.products += math.prod(result.shape) * np.shape(left)[-1]
        return result

    def _profiled(self, connect: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            connection = connect(*arguments, **named)
            connection.execute("SET python_scan_all_frames = true")
            connection.execute("PRAGMA enable_profiling = 'no_output'")
            return connection

        return call

    def _before(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wraps a method of a connection: reads the profile of the previous query first."""

        def call(connection: Any, *arguments: Any, **named: Any) -> Any:
            if self._unread.pop(id(connection), None) is not None:
                self.rows += _rows(json.loads(connection.get_profiling_information()))
            if name in ("execute", "sql"):
                self._unread[id(connection)] = connection
            return function(connection, *arguments, **named)

        return self._profiled(call) if name == "cursor" else call


def _rows(operator: Mapping[str, Any]) -> int:
    rows = operator.get("operator_cardinality", 0) + operator.get("operator_rows_scanned", 0)
    return rows + sum(map(_rows, operator.get("children", ())))


def write_guide(path: Path, titles: int) -> None:
    """Writes a guide whose words and channels grow with the titles. A title airs twice."""
    rng = np.random.default_rng(0)
    categories = list(WORDS)
    chances = 1 / np.arange(1, int(6 * titles**0.7) + 1)  # Zipf's law, and Heaps' law for the vocabulary
    invented = rng.choice(len(chances), (titles, 2), p=chances / chances.sum()).tolist()
    channels, lines = titles // 50, []
    for number in range(titles):
        category = categories[number % len(categories)]
        one, two = rng.choice(WORDS[category], 2)
        words = [
            "".join(SYLLABLES[rank // 70**place % 70] for place in range(2)) for rank in invented[number]
        ]
        title = f"{one} {words[0]} {two} {words[1]}".title()
        about = f"<desc>The {two} of {words[1]} and a {one}.</desc>" if number % 2 else ""
        for _ in range(2):
            start = datetime(2025, 3, 1) + timedelta(hours=float(rng.integers(14 * 24)))
            lines.append(
                f'<programme channel="{rng.integers(channels)}" start="{start:%Y%m%d%H%M%S}" '
                f'stop="{start + timedelta(hours=1):%Y%m%d%H%M%S}"><title lang="en">{title}</title>{about}'
                f"<category>{category}</category></programme>"
            )
    path.write_text("\n".join(["<tv>", *lines, "</tv>"]), encoding="utf-8")


def run_night(folder: Path, titles: int, measured: Callable[..., Any]) -> None:
    """Runs a night of a guide with ``titles`` titles in a new home."""
    from flows.settings import SMOKE

    folder.mkdir()
    write_guide(folder / "guide.xml", titles)
    preparing = replace(SMOKE.preprocess, minimum_titles=10, minimum_training_titles=10)
    settings = replace(SMOKE, preprocess=preparing, train=replace(SMOKE.train, dim=8, epochs=1))
    run_stages(folder / "home", [folder / "guide.xml"], settings, measured, one_by_one=True)


def count_night(folder: Path, titles: int, work: Work) -> dict[str, dict[str, int]]:
    """Returns the counts of each stage."""
    counts: dict[str, dict[str, int]] = {}

    def measured(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        with work.count(counts.setdefault(name, {})):
            return function(*arguments)

    run_night(folder, titles, measured)
    measured("quadratic", work_quadratically, titles)
    return counts


def work_quadratically(titles: int) -> None:
    """Does quadratic work of each kind, which the counts must show."""
    for _ in range((titles // 20) ** 2):
        clean("A title")
    np.matmul(np.ones((titles, 2)), np.ones((2, titles)))
    with duckdb.connect() as connection:
        connection.execute(f"SELECT sum(a.range + b.range) FROM range({titles}) a, range({titles}) b")


def main(folder: Path, sizes: list[int]) -> None:
    """Prints the counts by size and stage."""
    work = Work()
    work.watch()
    # a first night imports packages and fills caches
    run_night(folder / "first", WARM_UP, lambda name, function, *arguments: function(*arguments))
    gc.collect()
    gc.freeze()  # the collections of ``count`` skip what was imported
    tracemalloc.start()
    print(json.dumps({size: count_night(folder / str(size), size, work) for size in sizes}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), list(map(int, sys.argv[2:])))
