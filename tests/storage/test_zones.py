"""The time zone of a home."""

import json
import os
import subprocess
import sys

import pytest

from flows.cli.main import main
from storage.home.marker import read_marker
from storage.home.workspace import Workspace
from storage.home.zones import ZoneError, home_zone, set_zone
from storage.stages import ROOT

MADE = "import sys; from storage.home.workspace import Workspace; Workspace(sys.argv[1])"


def test_a_home_gets_the_zone_of_the_machine_and_keeps_it(tmp_path):
    for zone in ("Australia/Lord_Howe", "Asia/Tokyo"):
        environment = os.environ | {"TZ": zone}
        subprocess.run([sys.executable, "-c", MADE, tmp_path / "home"], cwd=ROOT, env=environment, check=True)
    assert home_zone(tmp_path / "home").key == "Australia/Lord_Howe"


def test_a_home_of_an_older_version_gets_its_zone_from_its_next_writer(tmp_path):
    workspace = Workspace(tmp_path)
    (tmp_path / "home.json").write_text(json.dumps({"layout_version": 1}), encoding="utf-8")
    assert home_zone(tmp_path).key == "UTC" and "zone" not in read_marker(tmp_path)
    with workspace.writing("a test"):
        pass
    assert read_marker(tmp_path) == {"layout_version": 1, "zone": "UTC"}


def test_invalid_zones_are_refused(tmp_path):
    Workspace(tmp_path)
    for name in ("Mars/Olympus", "CEST", "+0100", "../etc", ""):
        with pytest.raises(ZoneError, match="is not an IANA time zone"):
            set_zone(tmp_path, name)
    assert home_zone(tmp_path).key == "UTC"


def test_the_command_shows_and_sets_the_zone(tmp_path, capsys):
    home = str(tmp_path / "home")
    assert main(["zone", "--home", home]) == 2
    assert main(["zone", "Europe/Paris", "--home", home]) == 0
    assert main(["zone", "--home", home]) == 0
    assert capsys.readouterr().out == "Europe/Paris\nEurope/Paris\n"
    assert main(["zone", "Paris", "--home", home]) == 2
    assert "'Paris' is not an IANA time zone; set one such as Europe/Paris: " in capsys.readouterr().err
