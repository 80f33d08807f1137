"""The files and commands in the tables of docs/systems.md and docs/glossary.md exist."""

import re
import shlex
import typing
from pathlib import Path

import pytest
from typer.main import get_group

from flows.cli.commands import app
from flows.settings import LAPTOP
from tasks.overrides import override
from tasks.train.tuning.settings import Search

ROOT = Path(__file__).parents[2]


def rows(page: str) -> list[list[str]]:
    """Returns the cells of each row of a table."""
    lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    return [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")][2:]


SYSTEMS = rows("systems.md")


@pytest.mark.parametrize("page", ["systems.md", "glossary.md"])
def test_files_exist(page: str) -> None:
    files = re.findall(r"`([\w/]+\.(?:py|html|sql))`", (ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert files and [file for file in files if not (ROOT / file).is_file()] == []


@pytest.mark.parametrize("command", [row[3].strip("`") for row in SYSTEMS])
def test_commands_exist(command: str) -> None:
    program, *arguments = shlex.split(command)
    if program == "python":
        module = ROOT / f"{arguments[1].replace('.', '/')}.py"
        assert "__main__" in module.read_text(encoding="utf-8")
        return
    assert program == "guidespace" and arguments[0] in get_group(app).commands
    options = dict(zip(arguments[1::2], arguments[2::2], strict=True))
    override(LAPTOP, [options.get("--set", "train.epochs=5")])
    assert options.get("--search", "esgd") in {search.name for search in typing.get_args(Search)}


def test_types_of_terms_are_defined_in_their_files() -> None:
    for term, _, kind, file in rows("glossary.md"):
        if kind.startswith("`"):
            source, name = (ROOT / file.strip("`")).read_text(encoding="utf-8"), kind.strip("`")
            assert re.search(rf"^(?:class|def) {name}\b|^{name} = ", source, re.MULTILINE), term


def test_each_term_is_listed_once_in_alphabetical_order() -> None:
    terms = [row[0].lower() for row in rows("glossary.md")]
    assert terms == sorted(terms) and len(terms) == len(set(terms))
