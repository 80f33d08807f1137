"""The command in locales whose encoding is not UTF-8: ASCII, and ISO-8859-1."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from flows.cli.main import main
from tests.flows.command import QUICK_NIGHT, SAMPLE, answer, guidespace

# A text file or pipe that one of our modules opens without encoding= raises; libraries may do so.
PROGRAM = """
import warnings
warnings.simplefilter("ignore", EncodingWarning)
ours = r"(flows|tasks|storage|deployments)\\b"
warnings.filterwarnings("error", category=EncodingWarning, module=ours)
from flows.cli.main import entry
entry()
"""
STRICT = "-X", "warn_default_encoding", "-c", PROGRAM
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
ACCENTED = "SELECT DISTINCT title FROM programmes WHERE title <> strip_accents(title) ORDER BY title"


def test_characters_that_a_terminal_cannot_show_are_escaped_as_in_json() -> None:
    code = "from flows.cli.main import escape_unprintable; escape_unprintable(); print('\"Café 🎬\"')"
    done = guidespace(program=("-c", code), PYTHONIOENCODING="ascii")
    assert done.stdout == '"Caf\\u00e9 \\ud83c\\udfac"\n', done.stderr
    assert json.loads(done.stdout) == "Café 🎬"


def test_an_argument_that_the_locale_cannot_decode_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["similar", "Caf\udce9"]) == 2
    assert "LC_ALL=C.UTF-8" in capsys.readouterr().err


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Home of a night that ran in the C locale. Read only."""
    folder = tmp_path_factory.mktemp("locale")
    settings = "--preset", "smoke", "--set", *QUICK_NIGHT
    done = guidespace(
        "nightly", "--feed", SAMPLE, "--home", folder / "home", *settings, program=STRICT, **ASCII
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "home"


@pytest.fixture
def latin(tmp_path: Path) -> dict[str, str]:
    """Environment variables of an ISO-8859-1 locale, compiled into a folder of the test."""
    if shutil.which("localedef") is None or not Path("/usr/share/i18n/charmaps").is_dir():
        pytest.skip("localedef or its sources are missing (apt install locales)")
    folder = tmp_path / "locales"
    folder.mkdir()
    subprocess.run(["localedef", "-i", "fr_FR", "-f", "ISO-8859-1", folder / "fr_FR.ISO-8859-1"], check=True)
    return {"LOCPATH": str(folder), "LC_ALL": "fr_FR.ISO-8859-1", "PYTHONUTF8": "0"}


@pytest.mark.slow
@pytest.mark.parametrize("command", ["scores", "status", "categories", "doctor"])
def test_reports_are_printed_in_ascii(home: Path, command: str) -> None:
    done = guidespace(command, "--home", home, program=STRICT, encoding="ascii", **ASCII)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_titles_that_ascii_lacks_are_escaped(home: Path) -> None:
    done = guidespace("sql", ACCENTED, "--home", home, program=STRICT, encoding="ascii", **ASCII)
    assert done.returncode == 0, done.stderr
    assert "\\u00e9" in done.stdout
    lines = guidespace("sql", ACCENTED, "--json", "--home", home, program=STRICT, encoding="ascii", **ASCII)
    titles = [row["title"] for row in json.loads(lines.stdout)]
    assert titles == [row["title"] for row in answer("sql", ACCENTED, "--json", "--home", home)]
    assert titles and not any(title.isascii() for title in titles)


@pytest.mark.slow
def test_a_terminal_of_another_encoding_shows_what_it_has(home: Path, latin: dict[str, str]) -> None:
    query = "SELECT 'Caf' || chr(233) AS latin, chr(1050) || chr(1072) AS cyrillic"
    done = guidespace("sql", query, "--home", home, program=STRICT, encoding="iso-8859-1", **latin)
    assert done.returncode == 0, done.stderr
    assert "Café" in done.stdout and "\\u041a\\u0430" in done.stdout
