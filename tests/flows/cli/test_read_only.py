"""A user without privileges and an installation that this user cannot write to."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.flows.command import QUICK_NIGHT, ROOT, guidespace

USER = 65534
READERS = """
import json, sys
from flows.cli.main import main
for words in json.loads(sys.argv[1]):
    print(words)
    assert main([*words, "--home", sys.argv[2]]) == 0, words
"""
QUICK = "--preset", "smoke", "--set", *QUICK_NIGHT
TITLE = "Murder, She Wrote"
EVENING = "--from", "2026-01-12T00:00+00:00", "--hours", "120"
SETPRIV = (
    "setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups",
    # An interpreter below /root can be read; nothing can be written.
    "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search",
)  # fmt: skip

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv"),
]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Folder that every user can enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.fixture
def installation(folder: Path) -> Path:
    """Copy of the packages without compiled files."""
    for name in ("flows", "tasks", "storage", "deployments", "sample"):
        shutil.copytree(ROOT / name, folder / "app" / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder / "app"


def test_a_night_and_its_readers_need_only_a_writable_home(folder: Path, installation: Path) -> None:
    before = sorted(installation.rglob("*"))
    writable = folder / "writable"
    writable.mkdir()
    os.chown(writable, USER, USER)
    home, feed = writable / "home", installation / "sample" / "guide.xml.gz"
    variables = {"HOME": "/nonexistent", "TMPDIR": str(writable), "PYTHONPATH": str(installation)}

    def run(*arguments: object, program: Sequence[str] = ("-m", "flows")) -> str:
        done = guidespace(*arguments, program=program, cwd=writable, before=SETPRIV, **variables)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout

    assert "is champion" in run("nightly", "--feed", feed, *QUICK, "--home", home)
    readers = [["similar", TITLE], ["like", TITLE], ["tonight", *EVENING], ["status"], ["scores"], ["doctor"]]
    readers += [["gc", "--dry-run"], ["sql", "SELECT count(*) FROM titles"]]
    printed = run(json.dumps(readers), home, program=("-c", READERS))
    assert printed.count("Midsomer Murders") >= 2 and "9,936 programmes" in printed
    assert sorted(installation.rglob("*")) == before
    assert {file.stat().st_uid for file in home.rglob("*")} == {USER}
