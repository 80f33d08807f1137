"""Feeds by URL: retries, limits, conditional requests; object stores."""

import gzip
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from guides import guide, local_settings, locations, read, rows

from tasks.ingest.sources.download import Validators, download
from tasks.ingest.sources.feeds import FeedError
from tasks.ingest.sources.resolve import resolve
from tests import object_store


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    class Handler(BaseHTTPRequestHandler):
        failures = 0
        requests: list[tuple[str, str | None, str | None]] = []

        def do_GET(self) -> None:
            Handler.requests.append(
                (self.path, self.headers["If-None-Match"], self.headers["If-Modified-Since"])
            )
            if (
                self.headers["If-None-Match"] == '"v1"'
                or self.headers["If-Modified-Since"] == "Sat, 01 Mar 2025 00:00:00 GMT"
            ):
                self.send_response(304)
                self.end_headers()
            elif self.path.startswith("/flaky") and Handler.failures < 2:
                Handler.failures += 1
                self.send_error(503)
            elif self.path.startswith("/missing"):
                self.send_error(404)
            elif self.path.startswith("/secret") and self.headers["Authorization"] != "Basic bWU6c2VjcmV0":
                self.send_error(401)
            else:
                self.send_response(200)
                if self.path.startswith("/tagged"):
                    self.send_header("ETag", '"v1"')
                if self.path.startswith("/dated"):
                    self.send_header("Last-Modified", "Sat, 01 Mar 2025 00:00:00 GMT")
                self.end_headers()
                self.wfile.write(gzip.compress(guide(programmes=20), mtime=0))

        def log_message(self, format: str, *args: object) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, args=(0.01,))
    thread.start()
    yield httpd
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def test_urls(tmp_path: Path, server: ThreadingHTTPServer) -> None:
    port = server.server_port
    outcome = read(tmp_path, f"http://me:secret@127.0.0.1:{port}/secret.xml.gz")[0]
    assert (outcome.source, outcome.counts.stored) == (f"http://127.0.0.1:{port}/secret.xml.gz", 20)
    assert read(tmp_path, f"http://me:secret@127.0.0.1:{port}/secret.xml.gz")[0].unchanged
    assert list((tmp_path / "downloads").iterdir()) == []
    with pytest.raises(FeedError, match="the server answered 404"):
        read(tmp_path, f"http://127.0.0.1:{port}/missing.xml")


def test_retries_and_size_limits(tmp_path: Path, server: ThreadingHTTPServer) -> None:
    url, pauses = f"http://127.0.0.1:{server.server_port}", []
    flaky = download(
        f"{url}/flaky", tmp_path / "f", local_settings(size_cap_bytes=10_000), pause=pauses.append
    )
    assert flaky.problem == ""
    assert len(pauses) == 2 and 0.5 <= pauses[0] <= 1.5 and 1.0 <= pauses[1] <= 3.0
    large = download(f"{url}/any", tmp_path / "f", local_settings(size_cap_bytes=100))
    assert "larger than 100 bytes" in large.problem
    refused = download(
        "http://127.0.0.1:1/x", tmp_path / "f", local_settings(size_cap_bytes=100), pause=pauses.append
    ).problem
    assert refused.startswith("cannot be fetched (ConnectError") and refused.endswith("4 times")


@pytest.mark.parametrize("path", ["/tagged.xml?token=a", "/dated.xml"])
def test_an_unchanged_url_costs_one_request_and_no_bytes(
    tmp_path: Path, server: ThreadingHTTPServer, path: str
) -> None:
    url = f"http://127.0.0.1:{server.server_port}{path}"
    first = read(tmp_path, url)[0]
    received = server.RequestHandlerClass.requests  # type: ignore[attr-defined]
    before = len(received)
    again = read(tmp_path, url)
    assert [(outcome.source, outcome.counts, outcome.unchanged) for outcome in again] == [
        (first.source, first.counts, True)
    ]
    assert len(received) == before + 1 and (received[-1][1] or received[-1][2])
    assert rows(tmp_path, "SELECT source, etag IS NULL, last_modified IS NULL FROM validators") == [
        (first.source, path == "/dated.xml", path != "/dated.xml")
    ]


def test_a_url_with_a_changed_zone_is_downloaded_again(tmp_path: Path, server: ThreadingHTTPServer) -> None:
    url = f"http://127.0.0.1:{server.server_port}/tagged.xml"
    zones = ("*/tagged.xml=Europe/Paris",)
    unchanged = [read(tmp_path, url, zones=zones)[0].unchanged for zones in ((), zones, zones, ())]
    assert unchanged == [False, False, True, False]


def test_a_failed_feed_is_downloaded_again(tmp_path: Path, server: ThreadingHTTPServer) -> None:
    url = f"http://127.0.0.1:{server.server_port}/tagged.xml"
    with pytest.raises(FeedError, match="larger than 500 bytes"):
        read(tmp_path, url, size_cap_bytes=500)
    assert rows(tmp_path, "SELECT count(*) FROM validators") == [(0,)]
    assert read(tmp_path, url)[0].counts.stored == 20


def test_object_stores_by_fsspec(tmp_path: Path) -> None:
    import fsspec

    store = fsspec.filesystem("memory")
    for name in ("b", "a"):
        store.pipe(f"/bucket/{name}.xml.gz", gzip.compress(guide(programmes=3)))
    try:
        names = [url.rpartition("/")[2] for url in locations(["memory://bucket/*.gz"])]
        assert names == ["a.xml.gz", "b.xml.gz"]
        outcomes = read(tmp_path, "memory://bucket/*.gz")
        assert [outcome.counts.stored for outcome in outcomes] == [3, 3] and list(
            (tmp_path / "downloads").iterdir()
        ) == []
        assert all(outcome.unchanged for outcome in read(tmp_path, "memory://bucket/*.gz"))
        validators = Validators(etag=rows(tmp_path, "SELECT etag FROM validators ORDER BY source")[0][0])
        assert download(
            "memory://bucket/a.xml.gz", tmp_path / "f", local_settings(size_cap_bytes=10_000), validators
        ).unchanged
        with pytest.raises(FeedError, match=r"cannot be fetched \(FileNotFoundError\)"):
            read(tmp_path, "memory://bucket/none.xml")
        with pytest.raises(FeedError, match="the pattern matches no file"):
            resolve(["memory://bucket/x*"])
        with pytest.raises(FeedError, match="nosuch"):
            read(tmp_path, "nosuch://bucket/none.xml")
    finally:
        store.rm("/bucket", recursive=True)


@pytest.fixture
def bucket() -> Iterator[Any]:
    """File system with an empty bucket ``guides`` on a test server."""
    with object_store.bucket("guides") as system:
        yield system


@pytest.mark.slow
def test_s3_objects_patterns_and_changes(tmp_path: Path, bucket: Any) -> None:
    for name in ("b", "a"):
        bucket.pipe(f"guides/day/{name}.xml", guide(programmes=3))
    bucket.pipe("guides/day/notes.txt", b"no guide")
    assert locations(["s3://guides/day/*.xml"]) == ["s3://guides/day/a.xml", "s3://guides/day/b.xml"]
    outcomes = read(tmp_path, "s3://guides/day/*.xml")
    assert [(outcome.source, outcome.counts.stored) for outcome in outcomes] == [
        ("s3://guides/day/a.xml", 3),
        ("s3://guides/day/b.xml", 3),
    ]
    assert all(outcome.unchanged for outcome in read(tmp_path, "s3://guides/day/*.xml"))
    bucket.pipe("guides/day/a.xml", guide(programmes=5))
    again = read(tmp_path, "s3://guides/day/*.xml")
    assert [(outcome.unchanged, outcome.counts.seen) for outcome in again] == [(False, 5), (True, 3)]
    assert rows(tmp_path, "SELECT count(*) FROM schedule WHERE source = 's3://guides/day/a.xml'") == [(5,)]
    assert list((tmp_path / "downloads").iterdir()) == []


@pytest.mark.slow
def test_s3_refuses_in_one_line(tmp_path: Path, bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket.pipe("guides/a.xml", guide(programmes=100))
    with pytest.raises(FeedError, match=r"s3://guides/none.xml: cannot be fetched \(FileNotFoundError\)"):
        read(tmp_path, "s3://guides/none.xml")
    with pytest.raises(FeedError, match="the pattern matches no file"):
        resolve(["s3://guides/none*.xml"])
    with pytest.raises(FeedError, match=r"larger than 1,000 bytes"):
        read(tmp_path, "s3://guides/a.xml", size_cap_bytes=1000)
    assert rows(tmp_path, "SELECT count(*) FROM feeds") == [(0,)]
    type(bucket).clear_instance_cache()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    pauses: list[float] = []
    answer = download(
        "s3://guides/a.xml", tmp_path / "f", local_settings(size_cap_bytes=10_000), pause=pauses.append
    )
    assert (
        answer.problem.startswith("cannot be fetched (EndpointConnectionError")
        and answer.problem.endswith("4 times")
        and len(pauses) == 3
    )


@pytest.mark.parametrize("url", ["s3://guides/a.xml", "s3://guides/*.xml"])
def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    registry = sys.modules["fsspec.registry"]
    monkeypatch.setattr(registry, "_registry", {})
    monkeypatch.setattr(registry, "registry", registry._registry)
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(FeedError, match=r"Install s3fs to access S3") as caught:
        read(tmp_path, url)
    assert "\n" not in str(caught.value)
