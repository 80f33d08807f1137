"""The merged guide over HTTP, from a real server."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path

import httpx
import pytest
import uvicorn

from flows.cli.serve import listen
from flows.serving.app import make_app
from flows.serving.conditions import accepts_gzip
from flows.serving.reloader import ModelReloader
from storage.formats.model_file import ModelIdentity, write_model_file
from storage.home.merged_guide import GENRES_FILE, merged_file
from storage.home.workspace import Workspace
from tasks.enrich.output import write_output

GUIDE = b"<tv>" + b'<programme channel="one"/>' * 50_000 + b"</tv>"
IDENTITY = {"Accept-Encoding": "identity"}


@contextmanager
def running(reloader: ModelReloader, token: str = "") -> Iterator[httpx.Client]:
    listener = listen("127.0.0.1", 0)
    app = make_app(reloader, token)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=30) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()


def write(home: Path, content: bytes) -> None:
    merged_file(home).parent.mkdir(exist_ok=True)
    write_output(str(merged_file(home)), [content])


@pytest.fixture(scope="module")
def reloader(toy_model: Path, tmp_path_factory: pytest.TempPathFactory) -> ModelReloader:
    folder = tmp_path_factory.mktemp("guide")
    write_model_file(toy_model, ModelIdentity(version="3", digest="a" * 64), file := folder / "model.zip")
    return ModelReloader(Workspace(folder / "home").home, str(file))


@pytest.fixture
def home(reloader: ModelReloader) -> Path:
    return reloader.home


@pytest.fixture(scope="module")
def client(reloader: ModelReloader) -> Iterator[httpx.Client]:
    with running(reloader) as client:
        missing = client.get("/guide.xml")
        assert missing.status_code == 503 and "run `guidespace guide`" in missing.json()["reason"]
        write(reloader.home, GUIDE)
        merged_file(reloader.home).with_name(GENRES_FILE).write_bytes(b"<genres/>")
        yield client


def test_compressed_by_path_and_by_header(client: httpx.Client, home: Path) -> None:
    packed = merged_file(home).read_bytes()
    file = client.get("/guide.xml.gz", headers=IDENTITY)
    assert file.content == packed and file.headers["Content-Type"] == "application/gzip"
    assert "Content-Encoding" not in file.headers
    plain = client.get("/guide.xml", headers=IDENTITY)
    assert plain.content == GUIDE and int(plain.headers["Content-Length"]) == len(GUIDE)
    with client.stream("GET", "/guide.xml", headers={"Accept-Encoding": "gzip"}) as encoded:
        assert b"".join(encoded.iter_raw()) == packed and encoded.headers["Content-Encoding"] == "gzip"
    assert encoded.headers["ETag"] != plain.headers["ETag"]
    assert encoded.headers["Vary"] == plain.headers["Vary"] == "Accept-Encoding"
    assert client.get("/genres.xml").content == b"<genres/>"


@pytest.mark.parametrize("path", ["/guide.xml", "/guide.xml.gz", "/genres.xml"])
def test_head_and_conditional_requests(client: httpx.Client, path: str) -> None:
    full, head = client.get(path, headers=IDENTITY), client.head(path, headers=IDENTITY)
    assert head.status_code == 200 and head.content == b""
    for name in ("Content-Length", "ETag", "Last-Modified", "Content-Type"):
        assert head.headers[name] == full.headers[name]
    tag, modified = full.headers["ETag"], full.headers["Last-Modified"]
    for conditions in (
        {"If-None-Match": tag},
        {"If-None-Match": f'"other", W/{tag}'},
        {"If-None-Match": "*"},
        {"If-Modified-Since": modified},
        {"If-Modified-Since": formatdate(time.time() + 3600, usegmt=True)},
    ):
        for method in ("GET", "HEAD"):
            answer = client.request(method, path, headers={**IDENTITY, **conditions})
            assert (answer.status_code, answer.content, answer.headers["ETag"]) == (304, b"", tag), conditions
    for conditions in (
        {"If-None-Match": '"other"', "If-Modified-Since": modified},  # If-None-Match has precedence
        {"If-Modified-Since": formatdate(0, usegmt=True)},
        {"If-Modified-Since": "yesterday"},
    ):
        assert client.get(path, headers={**IDENTITY, **conditions}).status_code == 200, conditions


def test_a_download_ends_with_the_guide_it_began_with(client: httpx.Client, home: Path) -> None:
    noise = os.urandom(1 << 22).hex().encode()  # more than the buffers of the sockets hold
    write(home, noise)
    with client.stream("GET", "/guide.xml", headers=IDENTITY) as answer:
        parts = answer.iter_raw()
        first = next(parts)
        write(home, GUIDE)
        assert client.get("/guide.xml").content == GUIDE
        assert first + b"".join(parts) == noise


def test_an_equal_guide_is_not_modified(client: httpx.Client, home: Path) -> None:
    write(home, GUIDE)
    os.utime(merged_file(home), (1e9, 1e9))
    write(home, GUIDE)
    assert client.head("/guide.xml").headers["Last-Modified"] == "Sun, 09 Sep 2001 01:46:40 GMT"


def test_a_token_in_the_header_or_the_path(reloader: ModelReloader, client: httpx.Client) -> None:
    write(reloader.home, GUIDE)
    assert client.get("/anything/guide.xml").status_code == 404  # no token is set
    with running(reloader, "s3cret") as guarded:
        for path in ("/guide.xml", "/s3cre%C3%A9/guide.xml"):
            answer = guarded.get(path)
            assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert guarded.get("/guide.xml", headers={"Authorization": "Bearer s3cret"}).content == GUIDE
        assert guarded.get("/s3cret/guide.xml").content == GUIDE
        packed = guarded.head("/s3cret/guide.xml.gz")
        assert packed.status_code == 200 and packed.headers["Content-Type"] == "application/gzip"
        assert guarded.get("/s3cret/other.xml").status_code == 404
        assert guarded.post("/s3cret/similar", json={"titles": ["News"]}).status_code == 404
        metrics = guarded.get("/metrics", headers={"Authorization": "Bearer s3cret"}).text
    assert 'path="/guide.xml",status="200"' in metrics and "s3cret" not in metrics


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("*", True),
        ("gzip;q=0, *", False),
        ("", False),
        ("gzip;q=x", False),
    ],
)
def test_accepted_encodings(header: str, expected: bool) -> None:
    assert accepts_gzip(header) is expected
