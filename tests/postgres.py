"""PostgreSQL on loopback, with a data folder of its own; Debian's package is enough."""

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ports import free_port

USER = "guidespace"


def find_program(name: str) -> str:
    """Path of a program of PostgreSQL's server, which Debian leaves out of the PATH; skips without it."""
    newest = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)
    found = shutil.which(name) or next(map(str, newest), None)
    if found is None:
        pytest.skip(f"needs PostgreSQL: no {name} in the PATH (apt install postgresql)")
    return found


@contextmanager
def running(*databases: str) -> Iterator[str]:
    """Starts a server with databases for a ``with`` block; yields ``user:password@host:port``."""
    initdb, postgres = find_program("initdb"), find_program("postgres")
    psycopg2 = pytest.importorskip("psycopg2", reason="psycopg2 is not installed: pip install -e '.[dev]'")
    own = {"user": "postgres", "group": "postgres"} if os.getuid() == 0 else {}  # it refuses root
    password = secrets.token_hex(8)
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="guidespace-postgres-") as name:
        folder = Path(name)
        (folder / "password").write_text(password, encoding="utf-8")
        if own:
            shutil.chown(folder, **own)
            shutil.chown(folder / "password", **own)
        command = [initdb, "-D", folder / "data", "-U", USER, "--pwfile", folder / "password"]
        command += ["--auth=scram-sha-256", "--encoding=UTF8", "--no-sync"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder, **own)
        command = [postgres, "-D", folder / "data", "-h", "127.0.0.1", "-p", str(port), "-k", "", "-F"]
        with open(folder / "log", "wb") as log:
            server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, **own)
        try:
            address = f"{USER}:{password}@127.0.0.1:{port}"
            _create(psycopg2, f"postgresql://{address}/postgres", databases, folder / "log")
            yield address
        finally:
            server.send_signal(signal.SIGINT)  # ends connections, too
            server.wait(30)


def _create(psycopg2, url: str, databases: tuple[str, ...], log: Path) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            connection = psycopg2.connect(url)
            break
        except psycopg2.OperationalError:
            assert time.monotonic() < deadline, log.read_text(encoding="utf-8")
            time.sleep(0.1)
    connection.autocommit = True
    with connection.cursor() as cursor:
        for database in databases:
            cursor.execute(f"CREATE DATABASE {database}")
    connection.close()
