"""Models at a URL of a real server: downloads, changes, failures."""

import base64
import datetime
import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from flows import followed_model
from flows.champion import find_champion, open_models
from flows.followed_model import FollowedModel, prune_models
from storage.errors import ExpectedError
from storage.formats.model_file import ModelIdentity, write_model_file
from storage.home.workspace import Workspace
from storage.stages import ROOT
from tasks.ingest.sources.feeds import FeedUnreachable


class ModelServer(ThreadingHTTPServer):
    """Serves ``content`` with its ETag and digest; the other attributes make it misbehave."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), ModelHandler)
        self.content = b""
        self.headers: dict[str, str] = {}
        self.cut, self.status = 0, 200
        self.requests: list[tuple[int, str | None]] = []  # status, Authorization
        self.url = f"http://127.0.0.1:{self.server_port}/model"


class ModelHandler(BaseHTTPRequestHandler):
    server: ModelServer

    def do_GET(self) -> None:
        server = self.server
        digest = hashlib.sha256(server.content)
        etag = f'"{digest.hexdigest()}"'
        status = 304 if self.headers["If-None-Match"] == etag and server.status == 200 else server.status
        server.requests.append((status, self.headers["Authorization"]))
        self.send_response(status)
        encoded = base64.b64encode(digest.digest()).decode()
        sent = {"ETag": etag, "Repr-Digest": f"sha-256=:{encoded}:"}
        sent |= {"Content-Length": str(len(server.content))} if status == 200 else {"Content-Length": "0"}
        for name, value in {**sent, **server.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if status == 200:
            self.wfile.write(server.content[: len(server.content) - server.cut])

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setattr(followed_model, "CHECK_SECONDS", 0.0)
    monkeypatch.setattr("tasks.ingest.sources.download.MAX_ATTEMPTS", 1)
    with ModelServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return Workspace(tmp_path / "home").home


def packed(folder: Path, version: int) -> bytes:
    """Creates a model file whose similarity vectors contain the version."""
    (model := folder / f"v{version}").mkdir(exist_ok=True)
    np.save(model / "similarity.npy", np.full((2, 3), version, dtype=np.float32))
    for name in ("lexicon.json", "rows.safetensors", "titles.parquet", "tokens.parquet"):
        (model / name).write_bytes(b"{}")
    write_model_file(model, ModelIdentity(version=str(version), digest=f"{version:064x}"), folder / "m.zip")
    return (folder / "m.zip").read_bytes()


def vectors_of(folder: Path) -> float:
    return float(np.load(folder / "similarity.npy")[0, 0])


def test_a_model_is_downloaded_once_and_again_when_it_changes(
    server: ModelServer, home: Path, tmp_path: Path
) -> None:
    server.content = packed(tmp_path, 1)
    first = find_champion(home, server.url)
    assert (first.version, first.digest, vectors_of(first.folder)) == ("1", f"{1:064x}", 1.0)
    assert find_champion(home, server.url) == first
    (left := first.folder.parent / "tmpkilled.tmp").mkdir()  # by a killed process
    os.utime(left, (0, 0))
    for version in (2, 3):
        server.content = packed(tmp_path, version)
        champion = find_champion(home, server.url)
        assert (champion.version, vectors_of(champion.folder)) == (str(version), version)
    assert [status for status, _ in server.requests] == [200, 304, 200, 200]
    folders = {folder.name for folder in champion.folder.parent.iterdir() if folder.is_dir()}
    assert (
        len(folders) == 2
        and not left.exists()
        and champion.folder.name in folders
        and not first.folder.exists()
    )


def test_at_most_one_request_per_minute_is_sent(
    server: ModelServer, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed_model, "CHECK_SECONDS", 60.0)
    server.content = packed(tmp_path, 1)
    for _ in range(3):
        find_champion(home, server.url)
    assert len(server.requests) == 1


FAILURES = [
    ({"status": 503}, "the server answered 503"),
    ({"status": 404}, "the server answered 404"),
    ({"cut": 100}, "cannot be fetched (RemoteProtocolError"),
    ({"headers": {"Repr-Digest": f"sha-256=:{'A' * 43}=:"}}, "differs from the header Repr-Digest"),
    ({"headers": {"Content-Length": "9" * 15}}, "larger than 4,294,967,296 bytes"),
    ({"content": b"<html>Sign in</html>"}, "the model file is damaged"),
]


@pytest.mark.parametrize(("fault", "reason"), FAILURES)
def test_the_last_good_model_is_used_with_a_warning(
    server: ModelServer,
    home: Path,
    tmp_path: Path,
    fault: dict[str, object],
    reason: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    good, server.content = packed(tmp_path, 1), packed(tmp_path, 2)
    for name, value in fault.items():
        setattr(server, name, value)
    with pytest.raises(ExpectedError) as caught:
        find_champion(home, server.url)
    assert reason in str(caught.value) and "ingest." not in str(caught.value)
    bad = server.content
    server.content, server.status, server.cut, server.headers = good, 200, 0, {}
    champion = find_champion(home, server.url)
    assert capsys.readouterr().err == ""
    server.content = bad
    for name, value in fault.items():
        setattr(server, name, value)
    assert find_champion(home, server.url) == champion and vectors_of(champion.folder) == 1.0
    (line,) = capsys.readouterr().err.splitlines()
    assert reason in line and "the last good version of the model, 1, is used" in line
    assert [*home.rglob("*.tmp"), *home.rglob("model.zip")] == []


def test_without_a_server(server: ModelServer, home: Path, tmp_path: Path) -> None:
    server.content = packed(tmp_path, 1)
    champion = find_champion(home, server.url)
    server.server_close()
    warnings: list[str] = []
    models = open_models(home, server.url, warnings.append)
    assert models.champion() == champion
    assert len(warnings) == 1 and "the last good version" in warnings[0]
    with pytest.raises(FeedUnreachable):
        find_champion(home, f"{server.url}/other")


def test_a_changed_copy_is_not_used(server: ModelServer, home: Path, tmp_path: Path) -> None:
    server.content = packed(tmp_path, 1)
    champion = find_champion(home, server.url)
    (champion.folder / "lexicon.json").write_text('{"changed": 1}', encoding="utf-8")
    assert find_champion(home, server.url) == champion
    assert (champion.folder / "lexicon.json").read_text(encoding="utf-8") == "{}"
    assert [status for status, _ in server.requests] == [200, 200]


@pytest.mark.parametrize("content", ["{", "[]", "null", '{"folder": "0123456789abcdef"}'])
def test_a_damaged_state_is_replaced(server: ModelServer, home: Path, tmp_path: Path, content: str) -> None:
    server.content = packed(tmp_path, 1)
    champion = find_champion(home, server.url)
    state_file = champion.folder.parent / "state.json"
    state_file.write_text(content, encoding="utf-8")
    assert find_champion(home, server.url) == champion == find_champion(home, server.url)
    assert [status for status, _ in server.requests] == [200, 200, 304]


def test_secrets_are_sent_and_not_shown(
    server: ModelServer, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.content, server.status = packed(tmp_path, 1), 401
    with pytest.raises(ExpectedError, match="401 Unauthorized; set GUIDESPACE_MODEL_TOKEN"):
        find_champion(home, server.url)
    server.status = 200
    monkeypatch.setenv("GUIDESPACE_MODEL_TOKEN", "t0ken\n")  # as in a file of secrets
    find_champion(home, server.url)
    monkeypatch.setenv("GUIDESPACE_MODEL_TOKEN", "t0\nken")
    warnings: list[str] = []
    FollowedModel(home, server.url, warnings.append).champion()
    (warning,) = warnings
    assert "invalid in a header" in warning and "ken" not in warning.replace("TOKEN", "")
    monkeypatch.delenv("GUIDESPACE_MODEL_TOKEN")
    monkeypatch.setenv("MODEL_URL", server.url.replace("//", "//user:pa55word@"))
    models = FollowedModel(home, "env:MODEL_URL", warnings.append)
    models.champion()
    basic = "Basic " + base64.b64encode(b"user:pa55word").decode()
    assert [sent for _, sent in server.requests] == [None, "Bearer t0ken", basic]
    assert models.name == "env:MODEL_URL"
    server.status = 404
    models.champion()
    assert len(warnings) == 2 and "pa55word" not in warnings[1]
    states = [file.read_text(encoding="utf-8") for file in home.rglob("state.json")]
    assert len(states) == 2 and not any("pa55word" in text or "t0ken" in text for text in states)


def test_a_file_is_read_again_when_it_changes(home: Path, tmp_path: Path) -> None:
    packed(tmp_path, 1)
    file = str(tmp_path / "m.zip")
    first = find_champion(home, file)
    assert (first.version, vectors_of(first.folder)) == ("1", 1.0) and find_champion(home, file) == first
    packed(tmp_path, 2)
    second = find_champion(home, file)
    assert (second.version, vectors_of(second.folder)) == ("2", 2.0)
    for missing, problem in (
        (str(tmp_path / "missing.zip"), r"missing.zip: no such file"),
        ("env:NO_SUCH_VARIABLE", "NO_SUCH_VARIABLE: this environment variable is not set"),
        ("http://user:pa/ss@host:1/m", "http://host:1/m: not a valid URL"),
    ):
        with pytest.raises(ExpectedError, match=problem):
            find_champion(home, missing)


def test_a_registered_name_is_not_a_file(home: Path) -> None:
    assert not isinstance(open_models(home, "guidespace-titles"), FollowedModel)
    assert open_models(home, None).name == "guidespace-titles"


def test_a_wrong_model_creates_no_home(server: ModelServer, tmp_path: Path) -> None:
    server.content = b"<html>Sign in</html>"
    (tmp_path / "damaged.zip").write_bytes(b"PK")
    absent = tmp_path / "absent"
    wrong = ["TYPO", "a" * 300, server.url, "http://127.0.0.1:9/model", str(tmp_path / "damaged.zip"), "x/y"]
    for model in wrong:
        with pytest.raises(ExpectedError):
            find_champion(absent, model)
        assert not (absent / "home.json").exists() and not (absent / "models").exists(), model
    server.content = packed(tmp_path, 1)
    assert find_champion(absent, server.url).version == "1" and (absent / "home.json").exists()


def test_copies_that_nothing_has_used_are_removed(home: Path, tmp_path: Path) -> None:
    packed(tmp_path, 1)
    folder = find_champion(home, str(tmp_path / "m.zip")).folder
    kept = folder.parent / "notes.txt"
    kept.write_text("of a person", encoding="utf-8")
    now = datetime.datetime.now(datetime.UTC)
    assert prune_models(home, now - datetime.timedelta(days=1)).count == 0
    assert prune_models(home, now, dry_run=True).count == 1 and folder.exists()
    removed = prune_models(home, now)
    assert (removed.count, removed.bytes > 0, folder.exists(), kept.exists()) == (1, True, False, True)
    assert find_champion(home, str(tmp_path / "m.zip")).folder == folder


def test_a_recent_copy_is_opened_without_http(
    server: ModelServer, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.content = packed(tmp_path, 1)
    find_champion(home, server.url)
    code = (
        "import sys; from flows.champion import find_champion; find_champion(*sys.argv[1:]); "
        "print([name for name in ('httpx', 'fsspec', 'torch', 'mlflow', 'prefect') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(home), server.url],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, len(server.requests)) == ("[]\n", 1)
