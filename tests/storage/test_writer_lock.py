"""A home has one writer; other writers wait or are refused, and a killed writer holds no lock."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path

import pytest

from storage.artifacts import Corpus
from storage.home.workspace import HomeError, HomeLocked, Workspace
from storage.stages import ROOT


@pytest.fixture
def home(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "home")


def process(code: str, *arguments: str, **options) -> subprocess.Popen[str]:
    """Runs another Python process in the checkout."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        **options,
    )


HOLD = """
    import sys
    from storage.home.workspace import Workspace
    with Workspace(sys.argv[1]).writing("nightly run of 3 feeds"):
        print("holding", flush=True)
        sys.stdin.read()
"""


def test_a_second_writer_is_refused_and_the_error_names_the_first(home: Workspace):
    with process(HOLD, str(home.home), stdin=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdin is not None
        assert holder.stdout.readline() == "holding\n"
        with (
            pytest.raises(
                HomeLocked,
                match=rf"is being written by process {holder.pid} on \S+ since \d{{4}}-\d\d-\d\d .*"
                r"\(nightly run of 3 feeds\)\. Wait for it to end",
            ),
            home.writing("mine"),
        ):
            raise AssertionError("two writers")
        assert home.holder() is not None
        holder.stdin.close()
        assert holder.wait(60) == 0
    with home.writing("mine"):
        assert f"process {os.getpid()} " in (home.holder() or "")
    assert home.holder() is None


def test_the_next_writer_removes_the_draft_of_a_killed_one(home: Workspace):
    with home.publishing(Corpus, "key") as draft:
        (draft.folder / "file.txt").write_text("old", encoding="utf-8")
    before = draft.artifact
    code = """
        import os, signal, sys
        from storage.artifacts import Corpus
        from storage.home.workspace import Workspace
        with Workspace(sys.argv[1]).publishing(Corpus, "key") as draft:
            (draft.folder / "file.txt").write_text("new")
            os.kill(os.getpid(), signal.SIGKILL)
    """
    with process(code, str(home.home)) as killed:
        assert killed.wait(60) == -signal.SIGKILL
    left = home.home / "artifacts" / "corpus"
    assert home.read(Corpus, "key") == before and len(list(left.glob("*.tmp"))) == 1
    (left / "key.partial.tmp").write_text("a file of a killed training", encoding="utf-8")
    with home.writing("the next run"):
        assert [path.name for path in left.iterdir()] == ["key"]


def test_the_next_flow_run_gets_the_id_of_a_killed_one(home: Workspace):
    hold = HOLD.replace('feeds")', 'feeds", flow_run="1-2")')
    with process(hold, str(home.home), stdin=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "holding\n"
        holder.send_signal(signal.SIGKILL)
        holder.wait(60)
    for what in ("a check", "ingest of 1 feed"):
        with home.writing(what) as died:
            assert died == "1-2" and what in str(home.holder())
        assert home.holder() is None
    with home.writing("the next night", flow_run="3-4") as died:
        assert died == "1-2"
    with home.writing("the one after it", flow_run="5-6") as died:
        assert died == ""


def test_the_same_process_cannot_write_twice(home: Workspace):
    with home.writing("first"), pytest.raises(HomeLocked, match="first"), home.writing("second"):
        raise AssertionError("two writers")
    with pytest.raises(KeyError), home.writing("failing"):
        raise KeyError("inside")
    with home.writing("again"):
        pass


def test_a_home_without_a_writer_has_no_holder(home: Workspace):
    assert home.holder() is None
    (home.home / "writer.lock").write_text("{", encoding="utf-8")
    assert home.holder() is None


def test_a_writer_may_wait_for_another(home: Workspace) -> None:
    waits: list[str] = []
    ended = threading.Event()

    def write_first() -> None:
        with home.writing("first"):
            ended.wait(30)

    first = threading.Thread(target=write_first)
    first.start()
    while not home.holder():
        time.sleep(0.01)
    with (
        pytest.raises(HomeLocked, match="first"),
        home.writing("second", wait_seconds=0.2, report_wait=waits.append),
    ):
        pass
    assert len(waits) == 1 and "first" in waits[0] and "waiting up to" in waits[0]
    threading.Timer(0.3, ended.set).start()
    with home.writing("second", wait_seconds=60, report_wait=waits.append):
        assert "second" in str(home.holder())
    first.join()


@pytest.fixture
def another_user():
    """Steps into a user who may not write what this one made; yields a folder that both can reach."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)

        @contextlib.contextmanager
        def stepping_in():
            for place, _, files in os.walk(folder):
                for name in (place, *(os.path.join(place, file) for file in files)):
                    os.chmod(name, 0o555 if name == place else 0o444)
            before = os.geteuid()
            if before == 0:
                os.seteuid(65534)
            try:
                yield
            finally:
                os.seteuid(before)
                for place, _, _ in os.walk(folder):
                    os.chmod(place, 0o755)

        yield Path(folder), stepping_in


def test_a_user_without_write_access_can_read_but_not_write(another_user):
    folder, stepping_in = another_user
    workspace = Workspace(folder / "home")
    with workspace.publishing(Corpus, "key") as draft:
        (draft.folder / "file").write_text("x", encoding="utf-8")
    with workspace.writing("a first run"):
        pass
    with stepping_in():
        reader = Workspace(folder / "home", create=False)
        assert reader.read(Corpus, "key") == draft.artifact
        with (
            pytest.raises(HomeError, match=r"cannot be written by this user \(Permission denied\)"),
            reader.writing("a test"),
        ):
            pass
