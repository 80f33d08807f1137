"""Feeds from private addresses are refused: by name, by redirect, and inside other URLs."""

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from guides import guide, read

from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources import private
from tasks.ingest.sources.download import download
from tasks.ingest.sources.feeds import FeedError
from tasks.ingest.sources.private import PrivateAddress, check_address, is_private
from tasks.ingest.sources.resolve import resolve

REFUSED = r"not fetched: its host has a private address \(.*\); ingest.private_addresses=true allows it"
CLOSED = IngestSettings(size_cap_bytes=1 << 20)


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    """Serves a guide; /away redirects to the host in the query."""

    class Handler(BaseHTTPRequestHandler):
        requests: list[str] = []

        def do_GET(self) -> None:
            self.requests.append(f"{self.headers['Host']}{self.path}")
            is_away = self.path.startswith("/away")
            self.send_response(302 if is_away else 200)
            if is_away:
                self.send_header(
                    "Location", f"http://{self.path.partition('?')[2]}:{self.server.server_port}/g"
                )
            self.end_headers()
            self.wfile.write(b"" if is_away else guide(programmes=3))

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as served:
        thread = threading.Thread(target=served.serve_forever, args=(0.01,))
        thread.start()
        yield served
        served.shutdown()
        thread.join()


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
        "224.0.0.1", "::1", "::", "fe80::1%eth0", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::7f00:1",
        "2002:7f00:1::", "ff02::1",
    ],
)  # fmt: skip
def test_private(address: str) -> None:
    assert is_private(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_public(address: str) -> None:
    assert not is_private(address)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1"])
def test_loopback_is_refused(tmp_path: Path, server: ThreadingHTTPServer, host: str) -> None:
    url = f"http://{host}:{server.server_port}/g"
    with pytest.raises(FeedError, match=REFUSED):
        read(tmp_path, url, private_addresses=False)
    assert server.RequestHandlerClass.requests == []  # type: ignore[attr-defined]


def test_redirects_and_dns_rebinding(
    tmp_path: Path, server: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address of this machine counts as public."""
    requests: list[str] = []
    answers = {"public.test": ["127.0.0.1"], "inner.test": ["169.254.169.254"], "turns.test": ["127.0.0.1"]}
    real = socket.getaddrinfo

    def answer(host: str, port: int, *more: object, **named: object) -> list:
        requests.append(host)
        addresses = answers.get(host, [host])
        if host == "turns.test":
            answers[host] = ["169.254.169.254"]  # from the second question on
        return [about for address in addresses for about in real(address, port, *more, **named)]

    monkeypatch.setattr(private.socket, "getaddrinfo", answer)
    monkeypatch.setattr(private, "is_private", lambda address: address != "127.0.0.1")
    port = server.server_port
    assert download(f"http://public.test:{port}/g", tmp_path / "f", CLOSED).problem == ""
    again = download(f"http://public.test:{port}/away?public.test", tmp_path / "f", CLOSED)
    assert again.problem == ""
    sent = download(f"http://public.test:{port}/away?inner.test", tmp_path / "f", CLOSED)
    assert "private address (169.254.169.254)" in sent.problem and not sent.unreachable
    requests.clear()
    assert download(f"http://turns.test:{port}/g", tmp_path / "f", CLOSED).problem == ""
    assert requests.count("turns.test") == 1  # what was checked is what was connected to
    assert server.RequestHandlerClass.requests[-1] == f"turns.test:{port}/g"  # type: ignore[attr-defined]


def test_requests_through_a_proxy_are_checked(
    tmp_path: Path, server: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    refused = download("http://127.0.0.1:9/g", tmp_path / "f", CLOSED)
    assert "private address (127.0.0.1)" in refused.problem
    assert download("http://only-the-proxy-knows.invalid/g", tmp_path / "f", CLOSED).problem == ""
    assert len(server.RequestHandlerClass.requests) == 1  # type: ignore[attr-defined]


def test_other_schemes(tmp_path: Path) -> None:
    for url in ("ftp://127.0.0.1/g.xml", "sftp://10.0.0.1/g.xml"):
        with pytest.raises(FeedError, match=REFUSED):
            read(tmp_path, url, private_addresses=False)
    with pytest.raises(FeedError, match=REFUSED):
        resolve(["ftp://127.0.0.1/*.xml"])
    for inner in ("https://8.8.8.8/g.zip", "http://127.0.0.1/g.zip"):
        with pytest.raises(PrivateAddress, match="http inside another URL cannot be checked"):
            check_address(f"zip://g.xml::{inner}")
    check_address("s3://10.0.0.1/g.xml")  # a bucket
