"""Nothing that is secret in a feed's URL is anywhere in the home or in what is printed, after real runs
against a server on loopback."""

import contextlib
import gzip
import os
import re
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from storage.home.workspace import Workspace
from tests.flows.command import ROOT, SAMPLE, guidespace
from tests.secret_parameters import NAMES

VALUES = {name: f"Zk9v{number:03}Lq7x" for number, name in enumerate(NAMES)}
SECRETS = ("annabelK8s", "swordfishK8s", *VALUES.values(), "Zk9vfragment", "Zk9vpath")
LOOPBACK = ("--set", "ingest.private_addresses=true")
DESCRIPTION = "A kitchen on the harbour where two inspectors cook"


def described() -> bytes:
    """Sample guide with a description of every programme."""
    text = gzip.decompress(SAMPLE.read_bytes()).decode()
    names = r"<title[^>]*>[^<]*</title>(?:\s*<sub-title[^>]*>[^<]*</sub-title>)?"
    return gzip.compress(re.sub(names, rf"\g<0><desc>{DESCRIPTION}.</desc>", text).encode(), 1)


@pytest.fixture(scope="module")
def feed() -> Iterator[str]:
    """Sample guide with descriptions behind a URL with a secret in every part."""

    content = described()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = all(value in self.path for value in VALUES.values())
            self.send_response(200 if found else 403)
            self.end_headers()
            self.wfile.write(content if found else b"")

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    query = "&".join(f"{name}={value}" for name, value in VALUES.items())
    yield f"http://annabelK8s:swordfishK8s@127.0.0.1:{server.server_port}/a;jsessionid=Zk9vpath/guide.xml.gz?country=de&{query}#Zk9vfragment"
    server.shutdown()
    thread.join()
    server.server_close()


def texts_of(home: Path) -> Iterator[tuple[str, str]]:
    """Returns all content of a home as text: files as they are and decompressed, and tables row by row."""
    for file in sorted(home.rglob("*")):
        name = str(file.relative_to(home))
        yield name, name
        if not file.is_file():
            continue
        content = file.read_bytes()
        yield name, content.decode("latin-1")
        if content[:2] == b"\x1f\x8b":
            yield name, gzip.decompress(content).decode("latin-1")
        if content[:4] == b"PAR1":
            yield name, str(pq.read_table(file).to_pylist())
        if content[:6] == b"SQLite":
            with contextlib.closing(sqlite3.connect(file)) as connection:
                yield name, "\n".join(connection.iterdump())
    with duckdb.connect(str(home / "catalogue.duckdb"), read_only=True) as connection:
        for (table,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            yield f"catalogue: {table}", str(connection.execute(f"FROM {table}").fetchall())


def leaks(home: Path, *printed: str) -> set[tuple[str, str]]:
    texts = [*texts_of(home), *(("printed", text) for text in printed)]
    assert any(
        "127.0.0.1" in text or "env:MY_GUIDE" in text for name, text in texts if name == "catalogue: feeds"
    )  # it sees sources
    return {(name, secret) for name, text in texts for secret in SECRETS if secret in text}


@pytest.mark.slow
def test_a_night_stores_no_secret_of_its_feeds(tmp_path: Path, feed: str) -> None:
    home = tmp_path / "home"
    done = guidespace(
        "nightly",
        "--preset",
        "smoke",
        "--home",
        home,
        "--feed",
        feed,
        *LOOPBACK,
        PREFECT_HOME=str(home / "prefect"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    status = guidespace("status", "--home", home)
    assert "/a/guide.xml.gz?country=de" in status.stdout
    with contextlib.closing(sqlite3.connect(home / "prefect" / "prefect.db")) as connection:
        assert "guide.xml.gz?country=de" in str(
            connection.execute("SELECT parameters FROM flow_run").fetchall()
        )
    assert leaks(home, done.stdout, done.stderr, status.stdout) == set()
    holders = {name for name, text in texts_of(home) if DESCRIPTION in text}
    (guide,) = (file.relative_to(home) for file in home.rglob("descriptions.parquet"))
    assert "catalogue: details" in holders
    assert {name for name in holders if not name.startswith("catalogue")} == {str(guide)}  # its authors' text
    assert guide.parts[:2] == ("artifacts", "guide") and list(home.rglob("descriptions.npy"))


@pytest.mark.slow
def test_ingest_of_a_variable_stores_no_secret_even_if_it_fails(tmp_path: Path, feed: str) -> None:
    home = tmp_path / "home"
    done = guidespace("ingest", "--home", home, "--feed", "env:MY_GUIDE", *LOOPBACK, MY_GUIDE=feed)
    assert done.returncode == 0 and "env:MY_GUIDE" in done.stdout, done.stderr
    refused = guidespace("ingest", "--home", home, "--feed", feed.replace(VALUES["sid"], ""), *LOOPBACK)
    assert refused.returncode != 0 and "the server answered 403" in refused.stderr
    again = guidespace("ingest", "--home", home, "--feed", feed, *LOOPBACK)
    assert (
        leaks(home, done.stdout, done.stderr, refused.stdout, refused.stderr, again.stdout, again.stderr)
        == set()
    )


@pytest.mark.parametrize("command", ["ingest", "nightly"])
def test_invalid_urls_are_one_line_and_exit_code_2(tmp_path: Path, command: str) -> None:
    done = guidespace(
        command, "--home", tmp_path / "home", "--feed", "http://annabelK8s:swordfishK8s@[::bad/"
    )
    assert done.returncode == 2
    assert (
        done.stderr.startswith("guidespace: http://[::bad/: not a valid URL; expected one such as https://")
        and done.stderr.count("\n") == 1
    )


def test_the_lock_contains_no_command_line_and_is_private(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "writer.lock").write_text("", encoding="utf-8")
    (tmp_path / "home" / "writer.lock").chmod(0o666)
    code = f"from storage.home.workspace import Workspace\nhome = Workspace({str(tmp_path / 'home')!r})\n"
    code += "with home.writing('ingest of 1 feed'): print('held', flush=True); input()"
    command = [sys.executable, "-c", code, "https://annabelK8s:swordfishK8s@example.org/?key=Zk9vpath"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        lock = tmp_path / "home" / "writer.lock"
        content, words, mode = (
            lock.read_text(encoding="utf-8"),
            Workspace(tmp_path / "home").holder() or "",
            stat.S_IMODE(lock.stat().st_mode),
        )
        holder.communicate("\n")
    assert not any(secret in content + words for secret in SECRETS) and "example.org" not in content + words
    assert f"process {holder.pid} on " in words and words.endswith("(ingest of 1 feed)") and mode == 0o600


@pytest.mark.slow
def test_the_credentials_of_a_prefect_server_are_not_printed(tmp_path: Path) -> None:
    url = "http://annabelK8s:swordfishK8s@127.0.0.1:9/api"
    command = [
        sys.executable,
        "-m",
        "flows",
        "nightly",
        "--feed",
        str(SAMPLE),
        "--home",
        str(tmp_path / "home"),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PREFECT_API_URL": url}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, encoding="utf-8"
    ) as run:
        assert run.stdout is not None
        lines = [run.stdout.readline(), run.stdout.readline()]
        run.kill()
    assert lines[1] == "Prefect server: http://127.0.0.1:9/api\n"
