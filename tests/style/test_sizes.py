"""Folders, files and functions stay small enough to be read at once."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("flows", "tasks", "storage", "deployments", "benchmarks", "sample", "tests")
FILES_PER_FOLDER, LINES_PER_FILE, LINES_PER_FUNCTION = 25, 300, 60  # tests may have longer functions
# What is still too large. Remove a line when it is not; never add one.
PENDING = frozenset(
    [
        "benchmarks/linear/logistic.py: claims",
        "benchmarks/nights/plain_run.py: run_stages",
        "flows/nightly.py: nightly",
    ]
)


def too_large(root: Path) -> Iterator[str]:
    """Yields folders, files and functions below ``root`` that exceed a limit."""
    files = sorted(file for folder in FOLDERS for file in (root / folder).rglob("*.py"))
    counts = Counter(file.parent for file in files)
    yield from (f"{folder.relative_to(root)}" for folder in counts if counts[folder] > FILES_PER_FOLDER)
    for file in files:
        name, source = file.relative_to(root).as_posix(), file.read_text(encoding="utf-8")
        if source.count("\n") > LINES_PER_FILE:
            yield name
        if name.startswith("tests/"):
            continue
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if (node.end_lineno or 0) - node.lineno >= LINES_PER_FUNCTION:
                yield f"{name}: {node.name}"


def test_limits_are_reported(tmp_path: Path) -> None:
    long_function = "def f():\n" + "    pass\n" * LINES_PER_FUNCTION
    for folder in ("tasks", "tests"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "function.py").write_text(long_function, encoding="utf-8")
        (tmp_path / folder / "file.py").write_text("\n" * (LINES_PER_FILE + 1), encoding="utf-8")
    for number in range(FILES_PER_FOLDER - 1):
        (tmp_path / "tests" / f"{number}.py").touch()
    assert sorted(too_large(tmp_path)) == ["tasks/file.py", "tasks/function.py: f", "tests", "tests/file.py"]


def test_nothing_else_exceeds_the_limits() -> None:
    findings = set(too_large(ROOT))
    assert findings - PENDING == set(), "split or shorten these"
    assert PENDING - findings == set(), "remove these lines from PENDING"
