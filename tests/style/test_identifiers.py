"""Names say what a value is: words that fill the place of a noun are banned in identifiers."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
BANNED = frozenset(
    [
        "own",
        "found",
        "known",
        "asked",
        "given",
        "whole",
        "told",
        "said",
        "heard",
        "settle",
        "ahead",
        "room",
        "aside",
    ]
)
CODE_FOLDERS = ("flows", "tasks", "storage", "deployments")
FILES = sorted(file for folder in CODE_FOLDERS for file in (ROOT / folder).rglob("*.py"))


def bound_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of everything that a module binds: variables, attributes, parameters, definitions."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr
            case ast.alias(asname=str()):
                yield node.lineno, node.asname
            case ast.ExceptHandler(name=str()):
                yield node.lineno, node.name


def banned_names(source: str) -> list[str]:
    """Returns the names in a source that contain a banned word, each with its line."""
    names = bound_names(ast.parse(source))
    return [f"line {line}: {name}" for line, name in names if BANNED & set(name.lower().split("_"))]


def test_a_banned_word_is_reported_wherever_it_is_bound() -> None:
    source = "\n".join(
        [
            "def settle_up(given): own = given",
            "class A:",
            "    def b(self): self.known_rows = 1",
            "for found in []: pass",
            "unknown = download = 2",  # contain the letters, not the words
        ]
    )
    assert sorted(banned_names(source)) == [
        "line 1: given",
        "line 1: own",
        "line 1: settle_up",
        "line 3: known_rows",
        "line 4: found",
    ]


def test_no_identifier_contains_a_banned_word() -> None:
    findings = {file: banned_names(file.read_text(encoding="utf-8")) for file in FILES}
    assert {f"{file.relative_to(ROOT)}": names for file, names in findings.items() if names} == {}
