"""Feeds by URL: tried again, capped, not read twice while unchanged."""

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from guides import guide, read, rows

from tasks.ingest.sources.download import Limits, Validators, download
from tasks.ingest.sources.feeds import FeedError
from tasks.ingest.sources.resolve import resolve


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
    thread = threading.Thread(target=httpd.serve_forever)
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


def test_downloads_are_tried_again_and_capped(tmp_path: Path, server: ThreadingHTTPServer) -> None:
    url, pauses = f"http://127.0.0.1:{server.server_port}", []
    assert (
        download(f"{url}/flaky", tmp_path / "f", Limits(size_cap_bytes=10_000), pause=pauses.append).problem
        == ""
    )
    assert len(pauses) == 2 and 0.5 <= pauses[0] <= 1.5 and 1.0 <= pauses[1] <= 3.0
    assert (
        "larger than 100 bytes" in download(f"{url}/any", tmp_path / "f", Limits(size_cap_bytes=100)).problem
    )
    refused = download(
        "http://127.0.0.1:1/x", tmp_path / "f", Limits(size_cap_bytes=100), pause=pauses.append
    ).problem
    assert refused.startswith("cannot be fetched (ConnectError") and refused.endswith("4 times")


@pytest.mark.parametrize("path", ["/tagged.xml?token=a", "/dated.xml"])
def test_an_unchanged_url_costs_one_request_and_no_bytes(
    tmp_path: Path, server: ThreadingHTTPServer, path: str
) -> None:
    url = f"http://127.0.0.1:{server.server_port}{path}"
    first = read(tmp_path, url)[0]
    asked = server.RequestHandlerClass.requests  # type: ignore[attr-defined]
    before = len(asked)
    again = read(tmp_path, url)
    assert [(outcome.source, outcome.counts, outcome.unchanged) for outcome in again] == [
        (first.source, first.counts, True)
    ]
    assert len(asked) == before + 1 and (asked[-1][1] or asked[-1][2])
    assert rows(tmp_path, "SELECT source, etag IS NULL, last_modified IS NULL FROM validators") == [
        (first.source, path == "/dated.xml", path != "/dated.xml")
    ]


def test_an_unchanged_url_is_asked_for_in_full_when_its_zone_has_changed(
    tmp_path: Path, server: ThreadingHTTPServer
) -> None:
    url = f"http://127.0.0.1:{server.server_port}/tagged.xml"
    zones = ("*/tagged.xml=Europe/Paris",)
    assert [read(tmp_path, url, zones=zones)[0].unchanged for zones in ((), zones, zones, ())] == [
        False,
        False,
        True,
        False,
    ]


def test_a_feed_that_fails_is_asked_for_again_in_full(tmp_path: Path, server: ThreadingHTTPServer) -> None:
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
        assert [url.rpartition("/")[2] for url in resolve(["memory://bucket/*.gz"])] == [
            "a.xml.gz",
            "b.xml.gz",
        ]
        outcomes = read(tmp_path, "memory://bucket/*.gz")
        assert [outcome.counts.stored for outcome in outcomes] == [3, 3] and list(
            (tmp_path / "downloads").iterdir()
        ) == []
        assert all(outcome.unchanged for outcome in read(tmp_path, "memory://bucket/*.gz"))
        known = Validators(etag=rows(tmp_path, "SELECT etag FROM validators ORDER BY source")[0][0])
        assert download(
            "memory://bucket/a.xml.gz", tmp_path / "f", Limits(size_cap_bytes=10_000), known
        ).unchanged
        with pytest.raises(FeedError, match=r"cannot be fetched \(FileNotFoundError\)"):
            read(tmp_path, "memory://bucket/none.xml")
        with pytest.raises(FeedError, match="the pattern matches no file"):
            resolve(["memory://bucket/x*"])
        with pytest.raises(FeedError, match="nosuch"):
            read(tmp_path, "nosuch://bucket/none.xml")
    finally:
        store.rm("/bucket", recursive=True)
