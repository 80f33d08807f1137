"""Every key that a command prints with --json is documented."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from flows.cli.main import main
from tests.flows.command import ROOT, answer

pytestmark = pytest.mark.slow  # a home of its own

TITLE = "Midsomer Murders"
COMMANDS = {
    ("scores",): "json.md",
    ("status",): "json.md",
    ("similar", TITLE): "json.md",
    ("settings", "ingest"): "json.md",
    ("correct", "--list"): "json.md",
    ("gc", "--dry-run"): "json.md",
    ("doctor",): "json.md",
    ("categories",): "json.md",
    ("explain", TITLE): "explain.md",
    ("explain", TITLE, "MasterChef"): "explain.md",
    ("duplicates",): "explain.md",
    ("tonight", "--at", "2026-01-14T18:30:00+00:00"): "tonight.md",
}
OPEN = {"languages", "votes", "rejects"}  # their keys are data


def keys_of(document: Any) -> Iterator[str]:
    """Returns the keys of a JSON document at any depth."""
    if isinstance(document, list):
        for item in document:
            yield from keys_of(item)
    elif isinstance(document, dict):
        for key, value in document.items():
            yield key
            yield from () if key in OPEN else keys_of(value)


@pytest.fixture(scope="module")
def home(copy_night, tmp_path_factory):
    """Copy of the home in which a viewer likes a title and a person corrects one."""
    home = tmp_path_factory.mktemp("keys") / "home"
    copy_night(home)
    for command in (["like", TITLE], ["correct", TITLE, "crime"]):
        assert main([*command, "--home", str(home)]) == 0
    return home


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_key_is_documented(home, command, capsys):
    text = (ROOT / "docs" / COMMANDS[command]).read_text(encoding="utf-8")
    where = () if command[0] == "settings" else ("--home", str(home))
    if command[0] == "gc":  # starts a Prefect server
        document = answer(*command, *where, "--json")
    else:
        assert main([*command, *where, "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
    keys = set(keys_of(document))
    assert keys and not {key for key in keys if not re.search(rf'["`]{re.escape(key)}["`]', text)}
