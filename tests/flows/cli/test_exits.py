"""Exit codes when feeds are read; docs/json.md lists them."""

import errno
import http.server
import os
import re
import shutil
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from flows.cli import exits
from flows.cli.main import main
from storage.catalogue.ledger import LedgerError
from storage.home.workspace import HomeLocked
from tasks.ingest.sources.feeds import FeedError, FeedUnreachable
from tests.flows.command import ROOT, guidespace

PROGRAMME = '<programme channel="{}" start="2025030110" stop="2025030111"><title>{}</title></programme>'
GUIDE = f"<tv>{PROGRAMME.format('one', 'a')}</tv>"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)


@pytest.fixture
def dead(monkeypatch: pytest.MonkeyPatch):
    """URL at which no server answers; requests are repeated without delay."""
    monkeypatch.setattr("tasks.ingest.sources.download._PAUSE_BEFORE_RETRY", lambda state: 0.0)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/guide.xml"


@pytest.fixture
def gone():
    """URL that a server answers with 404."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/guide.xml"
        server.shutdown()


@pytest.fixture
def ingest(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "good.xml").write_text(GUIDE, encoding="utf-8")
    (tmp_path / "picture.xml").write_bytes(PNG)

    def run(*feeds: object, required: str = "") -> tuple[int, str, str]:
        settings = ["--set", "ingest.private_addresses=true"]  # the servers here are on loopback
        settings += [f'ingest.required=["{required}"]'] if required else []
        given = [str(tmp_path / str(feed)) if "://" not in str(feed) else str(feed) for feed in feeds]
        code = main(["ingest", "--home", str(tmp_path / "home"), "--feed", *given, *settings])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_a_bad_feed_does_not_affect_a_good_one(ingest, dead: str, gone: str) -> None:
    code, out, err = ingest("picture.xml", "good.xml", dead, gone, "missing.xml")
    assert code == exits.INCOMPLETE == 3
    assert "good.xml: 1 programmes seen, 1 stored" in out and "The guide: " in out
    assert [line.split(":")[0] for line in err.splitlines()] == [
        "feed FAILED",
        "feed FAILED",
        "warning",
        "feed FAILED",
        "feed FAILED",
    ]
    assert all(
        name in err
        for name in (
            "picture.xml: not XML",
            "missing.xml: no such file",
            "cannot be fetched (ConnectError",
            "answered 404",
        )
    )


def test_a_run_with_only_bad_feeds_fails(ingest, dead: str, gone: str) -> None:
    code, _, err = ingest("picture.xml", "missing.xml")
    assert (
        code == exits.REFUSED == 2
        and err.startswith("guidespace: none of the 2 feeds can be read: ")
        and len(err.splitlines()) == 1
    )
    assert ingest(gone)[0] == exits.REFUSED
    assert ingest("picture.xml", dead)[0] == exits.REFUSED
    code, _, err = ingest(dead)
    assert (
        code == exits.UNAVAILABLE == 4
        and "cannot be fetched (ConnectError" in err.splitlines()[-1]
        and err.splitlines()[-1].startswith("guidespace: ")
    )


def test_a_required_feed_that_fails(ingest, dead: str) -> None:
    code, out, err = ingest("good.xml", dead, required="http://*")
    assert (
        code == exits.UNAVAILABLE
        and "good.xml: 1 programmes seen, 1 stored" in out
        and "the feed is listed in ingest.required" in err
    )
    assert ingest("good.xml", "picture.xml", required="*/picture.xml")[0] == exits.REFUSED
    assert (
        ingest("good.xml", "picture.xml", required="*/good.xml")[0] == exits.REFUSED
    )  # it ended before today
    assert ingest("good.xml", "picture.xml", required="*/other.xml")[0] == exits.INCOMPLETE


def as_anybody() -> tuple[str, ...]:
    """Returns a command prefix that removes root's right to read all files; empty for other users."""
    if os.geteuid():
        return ()
    command = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
    if not shutil.which("setpriv") or subprocess.run([*command, "true"], capture_output=True).returncode:
        pytest.skip(
            "run as root without setpriv (util-linux), which takes root's right to read everything away"
        )
    return command


@pytest.mark.slow
def test_unreadable_feeds_are_one_line(tmp_path: Path) -> None:
    before, home = as_anybody(), tmp_path / "home"
    closed = tmp_path / "closed"
    closed.mkdir()
    for file in (tmp_path / "good.xml", tmp_path / "secret.xml", closed / "guide.xml"):
        file.write_text(GUIDE, encoding="utf-8")
    (tmp_path / "secret.xml").chmod(0)
    closed.chmod(0)
    try:
        for feed in (tmp_path / "secret.xml", closed, closed / "guide.xml"):
            done = guidespace("ingest", "--home", home, "--feed", feed, before=before)
            assert done.returncode == exits.REFUSED and re.fullmatch(
                rf"guidespace: {feed}: cannot be read \(Permission denied\).*\n", done.stderr
            ), done.stderr
        done = guidespace(
            "ingest", "--home", home, "--feed", tmp_path / "secret.xml", tmp_path / "good.xml", before=before
        )
        assert (
            done.returncode == exits.INCOMPLETE
            and "Permission denied" in done.stderr
            and "Traceback" not in done.stderr
        )
        assert "1 stored" in done.stdout
    finally:
        closed.chmod(0o755)


@pytest.fixture
def small_disk(tmp_path: Path):
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)], capture_output=True, encoding="utf-8"
    )
    if mounted.returncode:
        pytest.skip(f"mounting a small tmpfs is not permitted here: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("left", [0, 1_500_000])
def test_a_full_disk_is_one_line_and_leaves_no_partial_file(
    small_disk: Path, tmp_path: Path, left: int
) -> None:
    (tmp_path / "good.xml").write_text(GUIDE, encoding="utf-8")
    programmes = (PROGRAMME.format(i, f"{i:x} {i * i:x}") for i in range(60_000))
    (tmp_path / "large.xml").write_text(f"<tv>{''.join(programmes)}</tv>", encoding="utf-8")
    home = small_disk / "home"
    assert guidespace("ingest", "--home", home, "--feed", tmp_path / "good.xml").returncode == exits.DONE
    free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
    (small_disk / "ballast").write_bytes(bytes(free - left))
    done = guidespace("ingest", "--home", home, "--feed", tmp_path / "large.xml")
    assert done.returncode == exits.UNAVAILABLE and "Traceback" not in done.stderr, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("guidespace: ")]
    assert "no space left on the disk" in line
    assert not list(home.rglob("*.tmp"))
    (small_disk / "ballast").unlink()
    assert (
        guidespace("ingest", "--home", home, "--feed", tmp_path / "good.xml").returncode == exits.DONE
    )  # and all is in order


def raised(*errors: Exception) -> Exception:
    """Returns the last of several errors, each raised while the previous one was handled."""
    found: Exception | None = None
    for error in errors:
        try:
            raise error from found
        except Exception as caught:
            found = caught
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("errors", "named"),
    [
        ([OSError(errno.ENOSPC, "No space left on device", "/a", None, "/b")], "disk (/b). Free"),
        ([OSError(errno.EDQUOT, "Disk quota exceeded", "/a")], "disk (/a). Free"),
        (
            [OSError(errno.ENOSPC, "No space left on device", "/a"), RuntimeError("in MLflow")],
            "disk (/a). Free",
        ),
        (
            [RuntimeError("(sqlite3.OperationalError) database or disk is full"), KeyError("run")],
            "disk. Free",
        ),
        ([RuntimeError("I/O error: No space left on device (os error 28)")], "disk. Free"),
    ],
)
def test_every_error_of_a_full_disk_is_recognised(errors: list[Exception], named: str) -> None:
    found = exits.expected_error(raised(*errors))
    assert found is not None and found[0] == exits.UNAVAILABLE and named in found[1]
    assert (
        exits.expected_error(raised(OSError(errno.EIO, "Input/output error", "/a"), KeyError("run"))) is None
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [(FeedError("a"), 2), (FeedUnreachable("a"), 4), (LedgerError("a"), 1), (HomeLocked("a"), 2)],
)
def test_an_expected_error_carries_its_exit_code(error: Exception, code: int) -> None:
    assert exits.expected_error(error) == (code, "a")
    assert exits.expected_error(KeyError("a")) is None


def test_the_pages_name_every_code() -> None:
    text = (ROOT / "docs" / "json.md").read_text(encoding="utf-8").split("## Exit codes")[1]
    assert set(map(int, re.findall(r"^\| (\d+) \|", text, re.MULTILINE))) == {
        exits.DONE,
        exits.FAILED,
        exits.REFUSED,
        exits.INCOMPLETE,
        exits.UNAVAILABLE,
        exits.INTERRUPTED,
        exits.TERMINATED,
    }
