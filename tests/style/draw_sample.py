"""Draws docstrings, messages, documentation sentences and names at random for a readability review.

    python tests/style/draw_sample.py --seed 1 > sample.md

Readers who do not know the project rate each item: 1 clear at once, 2 clear on second reading, 3 unclear.
Each item has two lines of context before and after it. The population is every Python file of flows, tasks,
storage and deployments, and every page of documentation; each item is equally likely to be drawn.
"""

import argparse
import ast
import inspect
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
CODE_FOLDERS = ("flows", "tasks", "storage", "deployments")
CONTEXT_LINES = 2
MIN_WORDS = 4  # shorter string literals are keys or column names, not messages


class Item(NamedTuple):
    """An entry to rate."""

    file: Path
    line: int  # from 1
    text: str


def code_files() -> list[Path]:
    """Returns all Python files outside tests and benchmarks."""
    return sorted(file for folder in CODE_FOLDERS for file in (ROOT / folder).rglob("*.py"))


def documentation_files() -> list[Path]:
    """Returns README, CHANGELOG and the pages in docs, without the log of experiments."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "deployments").glob("*.md")]
    return sorted(pages)


def docstrings(file: Path) -> Iterator[Item]:
    """Yields the docstrings of the module, its classes and functions."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        is_documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if is_documented and (text := ast.get_docstring(node)):
            yield Item(file, node.body[0].lineno, text)


def messages(file: Path) -> Iterator[Item]:
    """String literals of at least MIN_WORDS words except docstrings, SQL, patterns and parts of f-strings."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    documented = {item.text for item in docstrings(file)}
    nodes = list(ast.walk(tree))
    fragments = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        text = ""
        if isinstance(node, ast.JoinedStr):
            text = ast.unparse(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in fragments:
            text = node.value
        is_code = re.search(r"\b(SELECT|FROM|JOIN|INSERT|UPDATE|CREATE|SET|STRUCT)\b|\\[bdswW(\[]|\(\?", text)
        if len(text.split()) >= MIN_WORDS and not is_code and inspect.cleandoc(text) not in documented:
            yield Item(file, node.lineno, text)


def sentences(file: Path) -> Iterator[Item]:
    """Sentences of a page, which may continue over lines; no code blocks, tables and link targets."""
    in_code, first, paragraph = False, 1, list[str]()
    for number, line in enumerate([*file.read_text(encoding="utf-8").splitlines(), ""], 1):
        in_code ^= line.startswith("```")
        is_link_target = re.match(r"\[[^\]]+\]: ", line) is not None
        if line and not in_code and not is_link_target and not line.startswith(("|", "#", "```")):
            paragraph.append(line)
            continue
        text = "\n".join(paragraph)
        for match in re.finditer(r"\S.*?(?:[.](?=\s)|\Z)", text, re.DOTALL):
            if len(match[0].split()) >= MIN_WORDS:
                yield Item(file, first + text.count("\n", 0, match.start()), match[0])
        first, paragraph = number + 1, []


def names(file: Path) -> Iterator[Item]:
    """Yields the names that a file binds: functions, classes, parameters, variables and attributes."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    seen: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound = node.name
        elif isinstance(node, ast.arg):
            bound = node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound = node.id
        else:
            continue
        if bound not in seen and bound not in ("self", "_"):
            seen.add(bound)
            yield Item(file, getattr(node, "lineno", 1), bound)


def show(number: int, item: Item) -> str:
    """Formats an item with its context as Markdown."""
    lines = item.file.read_text(encoding="utf-8").splitlines()
    first = max(0, item.line - 1 - CONTEXT_LINES)
    last = item.line + item.text.count("\n") + CONTEXT_LINES
    context = "\n".join(lines[first:last])
    title = f"### {number}. {item.file.relative_to(ROOT)}:{item.line}"
    return f"{title}\n\nRate: {item.text.strip()}\n\n```\n{context}\n```\n"


def main() -> None:
    """Prints the sample as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--docstrings", type=int, default=60)
    parser.add_argument("--messages", type=int, default=60)
    parser.add_argument("--names", type=int, default=100)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    code, pages = code_files(), documentation_files()
    texts = [item for file in code for item in messages(file)]
    texts += [item for page in pages for item in sentences(page)]
    groups = {
        "Docstrings": ([item for file in code for item in docstrings(file)], options.docstrings),
        "Messages and documentation": (texts, options.messages),
        "Names": ([item for file in code for item in names(file)], options.names),
    }
    for title, (population, count) in groups.items():
        print(f"## {title}\n")
        for number, item in enumerate(rng.sample(population, count), 1):
            print(show(number, item))


if __name__ == "__main__":
    main()
