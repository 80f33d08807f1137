"""``guidespace settings``, ``--help`` and ``--version``."""

import json
import subprocess
import sys
import tomllib

import pytest

from flows.cli.commands import COMMANDS
from flows.cli.main import main
from storage.stages import ROOT
from tests.contracts.test_form import described


def rows(capsys, *arguments):
    assert main(["settings", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_setting_of_the_form_is_listed_with_its_description(capsys):
    from flows.settings import Settings

    listed = {row["description"] for row in rows(capsys)}
    wanted = {text for path, text in described(Settings) if path.count(".") > 1 and "groups[" not in path}
    nested = {"What is held out, and by what", *(text for text in wanted if text not in listed)}
    assert len(wanted) > 100 and wanted - nested <= listed
    assert len(nested) < 7, nested  # groups of settings, whose members are listed in their place


def test_a_setting_has_type_default_bounds_and_description(capsys):
    (epochs,) = rows(capsys, "train.epochs")
    assert epochs == {
        "name": "train.epochs", "type": "int", "default": 5, "bounds": "at least 1, at most 10,000",
        "description": "Number of epochs; an epoch shows every labelled training title once",
    }  # fmt: skip
    (beta,) = (row for row in rows(capsys, "train.optimizer (adam)") if row["name"].endswith("beta1"))
    assert (
        beta["name"] == "train.optimizer (adam).beta1"
        and beta["default"] == 0.9
        and beta["bounds"] == "at least 0, less than 1"
    )
    rule = rows(capsys, "train.optimizer")[0]
    assert rule["default"] == "rowwise_adagrad" and {"adam", "sgd", "nadam"} <= set(rule["type"].split(" | "))
    assert all(row["type"] and row["description"] for row in rows(capsys))


def test_an_unknown_setting_lists_the_valid_ones(capsys):
    assert main(["settings", "train.epoch"]) == 2
    assert "no setting is named 'train.epoch'; expected ingest, tokenize" in capsys.readouterr().err


def test_the_version_is_the_projects(capsys):
    assert main(["--version"]) == 0
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert capsys.readouterr().out == f"guidespace {version}\n"


AT_FIRST_LINE = """
import sys
from flows.cli.main import main

class Screen:
    def write(self, text):
        modules = [name for name in sys.argv[1].split(",") if name in sys.modules]
        sys.__stdout__.write(f"{text.strip()}\\n{modules}\\n")
        sys.__stdout__.flush()
        import os
        os._exit(0)
    def flush(self): ...
    def isatty(self): return False

sys.stdout = Screen()
main(sys.argv[2:])
"""
HEAVY = "torch,mlflow,prefect,numba,sklearn,scipy,pyarrow,plotly"


@pytest.mark.parametrize(
    "arguments", [("nightly", "--feed", "none.xml"), ("ingest", "--feed", "none.xml"), ("doctor",)]
)
def test_a_line_is_printed_before_large_packages_are_imported(tmp_path, arguments):
    command = [sys.executable, "-c", AT_FIRST_LINE, HEAVY, *arguments, "--home", str(tmp_path / "home")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=120)
    assert done.stdout.splitlines()[1:] == ["[]"], done


@pytest.mark.parametrize("command", [command for group in COMMANDS.values() for command in group])
def test_every_command_has_a_help(command, capsys):
    assert main([command.__name__, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: guidespace {command.__name__} ")


def test_the_page_of_settings_is_what_the_command_prints(capsys):
    assert main(["settings", "--markdown"]) == 0
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert capsys.readouterr().out == page, "run `guidespace settings --markdown > docs/settings.md`"
