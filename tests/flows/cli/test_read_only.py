"""A user without privileges and an installation that this user cannot write to."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flows.command import ROOT, guidespace

USER = 65534
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
    """A folder that every user can enter, as those of pytest are not."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.fixture
def installation(folder: Path) -> Path:
    """A copy of the packages, without compiled files."""
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

    def run(*arguments: object) -> str:
        done = guidespace(*arguments, "--home", home, cwd=writable, before=SETPRIV, **variables)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout

    assert "is champion" in run("nightly", "--feed", feed, "--preset", "smoke")
    assert "Midsomer Murders" in run("similar", "Murder, She Wrote")
    run("like", "Murder, She Wrote")
    assert "Midsomer Murders" in run("tonight", "--from", "2026-01-12T00:00+00:00", "--hours", "120")
    assert "9,936 programmes" in run("status")
    for arguments in (("scores",), ("doctor",), ("gc", "--dry-run"), ("sql", "SELECT count(*) FROM titles")):
        run(*arguments)
    assert sorted(installation.rglob("*")) == before
    assert {file.stat().st_uid for file in home.rglob("*")} == {USER}
